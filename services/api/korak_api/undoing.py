"""What of an instance is to be undone or was, and whether a failed one may be cancelled or retried."""

from __future__ import annotations

from collections.abc import Mapping

from korak.core.budgets import find_used_up
from korak.core.rows import Instance
from korak.core.undoing import list_lost
from korak.model import ClosedReason, CompensationStatus, InstanceStatus
from korak.store.instances import View
from korak_api.rendering import Shown


def show_compensation(view: View) -> Shown | None:
    """Compensations by how far they are; None where there are none.

    `kept` would run if the run were cancelled; `pending` are to run now, the one that runs among them.
    """
    counts = view.undoing.counts
    if not counts:
        return None
    kept, undoing = (counts.get(status, 0) for status in (CompensationStatus.KEPT, CompensationStatus.UNDOING))
    is_due = _is_undone(view)
    return {
        "kept": 0 if is_due else kept,
        "pending": undoing + (kept if is_due else 0),
        "completed": counts.get(CompensationStatus.COMPLETED, 0),
        "failed": counts.get(CompensationStatus.FAILED, 0),
    }


def may_cancel(view: View) -> bool:
    """Whether a cancel would do something: the run is open, or it has failed and something of it hasn't cleaned up."""
    instance = view.instance
    if not instance.is_ended:
        return True
    is_kept = view.undoing.counts.get(CompensationStatus.KEPT, 0) > 0 and not view.undoing.on_failure
    return _has_failed(instance) and (is_kept or view.undoing.has_on_cancel)


def may_retry(view: View, ceilings: Mapping[str, int | None]) -> bool:
    """Whether the run failed where it can be tried again, and hasn't used up what it may use; nor has the run that it
    failed by, which is what a retry goes to.

    Of one that was undone: whether something could not be, and nothing is to be undone now.
    """
    instance = view.instance
    if _is_undone(view):
        counts = view.undoing.counts
        is_busy = any(counts.get(status, 0) for status in (CompensationStatus.KEPT, CompensationStatus.UNDOING))
        return not is_busy and bool(counts.get(CompensationStatus.FAILED, 0) or list_lost(instance))
    has_failed = instance.status is InstanceStatus.FAILED and instance.failed_node_id is not None
    is_used_up = view.plan is not None and find_used_up(instance, view.plan, ceilings) is not None
    return has_failed and not is_used_up and not is_stuck_below(view, ceilings)


def is_stuck_below(view: View, ceilings: Mapping[str, int | None]) -> bool:
    """Whether the run failed by another one that can't go on: a retry would only hear that once more.

    One that was undone doesn't go on: its retry is of what could not be undone.
    """
    child = view.culprit
    if _is_undone(view) or child is None or child.instance.status is not InstanceStatus.FAILED:
        return False
    return _is_undone(child) or not may_retry(child, ceilings)


def _is_undone(view: View) -> bool:
    status = view.instance.status
    return status is InstanceStatus.CANCELLED or (status is InstanceStatus.FAILED and view.undoing.on_failure)


def _has_failed(instance: Instance) -> bool:
    return instance.status is InstanceStatus.FAILED and instance.closed_reason is not ClosedReason.REFUSED
