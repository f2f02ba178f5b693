"""What must hold of compensations and hooks: of a run that is undone each one runs to an end once, newest first.

What failed may be tried again by hand: then this holds of each call.
"""

from __future__ import annotations

from itertools import groupby
from typing import cast

from korak.core.changes import Changes
from korak.core.snapshot import Snapshot
from korak.graphs.plans import Plan
from korak.model import CompensationStatus, EventType, InstanceStatus, StepRole, StepStatus
from tests.support.memory import Family, Memory

SEQUENCE = (StepRole.COMPENSATE, StepRole.ON_DEADLINE, StepRole.ON_CANCEL)


def check_undoing(memory: Memory, family: Family) -> None:
    """What stands of it, after every step."""
    plan = memory.plans[family.instance.version_id]
    if family.compensations:
        _check_hooks(family)
    live = [step for step in family.live if step.role is not StepRole.STEP]
    assert sum(step.role in SEQUENCE for step in live) <= 1
    if not live and not list_cleaning(family):
        _check_done(plan, family)


def list_cleaning(family: Family) -> list[str]:
    """The children that are to clean up before the run does."""
    kept = (family.instance.walk or {}).get("cleaning")
    return cast("list[str]", kept.get("children") or []) if isinstance(kept, dict) else []


def has_undoing_failed(family: Family) -> bool:
    """Whether something of a run could not be undone, or a hook of its settings has failed."""
    is_lost = bool((family.instance.walk or {}).get("lost"))
    return is_lost or any(row.status is CompensationStatus.FAILED for row in family.compensations.values())


def list_copied(family: Family) -> set[int]:
    """The attempts that a fork has from where it came: it doesn't undo them."""
    begun = [
        event.seq
        for event in family.events
        if event.type is EventType.INSTANCE_FORKED and "source" in (event.data or {})
    ]
    before = family.events[: begun[0] - 1] if begun else []
    return {event.step_run_id for event in before if event.step_run_id is not None}


def check_fork(memory: Memory, changes: Changes) -> None:
    """Nothing that a fork has from where it came was undone by then."""
    if changes.fork is None:
        return
    rows = memory.families[changes.instance.id].compensations.values()
    undone = {(row.node_id, row.visit) for row in rows if row.status is not CompensationStatus.KEPT}
    made = memory.families[changes.fork.instance.id]
    copied = map(made.steps.__getitem__, list_copied(made))
    assert not undone.intersection((step.node_id, step.visit) for step in copied)


def count_undone(family: Family) -> int:
    """How many compensations of an instance were run to an end."""
    return sum(
        row.status in (CompensationStatus.COMPLETED, CompensationStatus.FAILED) for row in family.compensations.values()
    )


def check_view(changes: Changes, stands: Snapshot) -> None:
    """What an engine keeps of an open run is the newest that is kept."""
    if not changes.instance.is_ended:
        assert set(changes.after.compensations) == set(stands.compensations)


def check_kept(memory: Memory, family: Family) -> None:
    """Every completed visit of a node that can be undone has pushed one, at the number of its event."""
    plan = memory.plans[family.instance.version_id]
    copied = list_copied(family)
    completed = [
        (event.seq, event.step_run_id)
        for event in family.events
        if event.type is EventType.STEP_COMPLETED
        and event.step_run_id not in copied
        and plan.find(event.node_id or "", StepRole.COMPENSATE) is not None
    ]
    rows = family.compensations.values()
    assert sorted((row.seq, row.step_run_id) for row in rows) == completed


def _check_hooks(family: Family) -> None:
    rows = family.compensations.values()
    for _, called in groupby(sorted(rows, key=lambda row: row.call), key=lambda row: row.call):
        each = list(called)
        kept = [row.seq for row in each if row.status is CompensationStatus.KEPT]
        undone = [row.seq for row in each if row.status is not CompensationStatus.KEPT]
        assert not kept or not undone or max(kept) < min(undone)
    for row in rows:
        attempts = [step for step in family.steps.values() if step.hook_order == row.seq]
        live = sum(step.status is not None and step.status.is_live for step in attempts)
        done = sum(step.status is StepStatus.COMPLETED for step in attempts)
        expected = {
            CompensationStatus.KEPT: (0, 0),
            CompensationStatus.UNDOING: (1, 0),
            CompensationStatus.COMPLETED: (0, 1),
            CompensationStatus.FAILED: (0, 0),
        }
        assert row.status is not None
        assert (live, done) == expected[row.status], (row, attempts)
        assert row.status is not CompensationStatus.FAILED or attempts
        assert all((step.node_id, step.visit) == (row.node_id, row.visit) for step in attempts)
        assert all(step.call <= row.call for step in attempts)
        if row.status is CompensationStatus.KEPT:
            assert all(step.call < row.call for step in attempts)
    order = [
        (step.hook_order, step.call)
        for step in family.steps.values()
        if step.hook_order is not None and step.attempt == 1
    ]
    assert len(set(order)) == len(order)


def _check_done(plan: Plan, family: Family) -> None:
    """Where no hook lives there is none left to be made."""
    instance, settings = family.instance, plan.settings
    is_cancelled = instance.status is InstanceStatus.CANCELLED
    if is_cancelled or (instance.status is InstanceStatus.FAILED and settings.compensate_on_failure):
        assert all(row.status is not CompensationStatus.KEPT for row in family.compensations.values())
    made = {step.role for step in family.steps.values()}
    visits = {step.visit for step in family.steps.values() if step.role is StepRole.ON_CANCEL}
    assert (StepRole.ON_CANCEL in made) == (is_cancelled and settings.on_cancel is not None)
    assert visits <= {1}
    assert not (instance.walk or {}).get("owed")
