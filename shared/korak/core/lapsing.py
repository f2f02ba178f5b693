"""What becomes of rows that nobody took: when their visit is over, and when the run is."""

from __future__ import annotations

from collections.abc import Iterable

from korak.core import firing
from korak.core.draft import Draft
from korak.core.rows import Delivery, StepRun
from korak.model import DeliveryKind, StepRole, StepStatus


def discard(draft: Draft, steps: Iterable[StepRun]) -> None:
    """The steps moved on: what was for their visits alone will never be delivered (WT-7, WT-8)."""
    if not draft.deliveries:
        return
    visits = {step.execution_id for step in steps}
    for delivery in list(draft.deliveries.values()):
        if delivery.execution_id in visits:
            drop(draft, delivery)


def drop(draft: Draft, delivery: Delivery) -> None:
    """What was for a visit that is over comes to nothing; of a signal its sender may hear that."""
    if delivery.kind is DeliveryKind.SIGNAL:
        draft.discard(delivery)
    elif delivery.kind is DeliveryKind.EVENT or delivery.kind in firing.TOLD.values():
        draft.take(delivery)


def is_awaited(draft: Draft, delivery: Delivery) -> bool:
    """Whether somebody may still take it: an attempt of the visit that it is for, which may park again (WT-8, WT-9).

    A signal that names no visit is for whoever comes.
    """
    if delivery.step_run_id is None:
        return delivery.kind is DeliveryKind.SIGNAL
    lives = (step for step in draft.steps.values() if step.role is StepRole.STEP)
    return any(step.execution_id == delivery.execution_id and _may_take(draft, step, delivery) for step in lives)


def _may_take(draft: Draft, step: StepRun, delivery: Delivery) -> bool:
    """Whether the attempt could wait for it: one that waits already has its waits."""
    if delivery.kind is not DeliveryKind.SIGNAL or step.status is not StepStatus.WAITING:
        return True
    asked = (wait for wait in draft.list_waits(step) if wait.mode is None or wait.payload is None)
    return any(wait.event_key == delivery.name for wait in asked)


def close(draft: Draft) -> None:
    """The run ended: signals stay with it for a manual retry, all else that was addressed to it is taken."""
    for delivery in list(draft.deliveries.values()):
        if delivery.kind is DeliveryKind.SIGNAL:
            draft.buffer(delivery)
        else:
            draft.take(delivery)
