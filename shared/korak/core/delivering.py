"""Rows addressed to an instance, under its lock: commands are obeyed first, then signals and events are handed out."""

from __future__ import annotations

from contextlib import suppress

from korak.core import claiming, commanding, containers, firing, lapsing, telling, undoing
from korak.core.draft import Draft
from korak.core.rows import Delivery, StepRun
from korak.errors import Conflict
from korak.model import DeliveryKind, JsonObject, StepStatus

COMMANDS = (DeliveryKind.CANCEL, DeliveryKind.PAUSE, DeliveryKind.RESUME, DeliveryKind.RETRY)


def obey(draft: Draft) -> None:
    """Carry out the commands that lie there, in the order they came. One that comes too late changes nothing.

    Whoever sent it was told that it lies there, no more; the fact that is answered next stands for itself.
    """
    for delivery in sorted(draft.deliveries.values(), key=lambda delivery: delivery.id):
        is_answer = delivery.kind is DeliveryKind.CHILD and delivery.wait_id is None
        if (is_answer or delivery.kind in COMMANDS) and delivery.taken_at is None:
            draft.take(delivery)
            with suppress(Conflict):
                _carry_out(draft, delivery)


def _carry_out(draft: Draft, delivery: Delivery) -> None:
    given: JsonObject = delivery.payload if isinstance(delivery.payload, dict) else {}
    match delivery.kind:
        case DeliveryKind.CANCEL:
            telling.promise(draft, delivery.sender)
            reason = given.get("reason")
            commanding.cancel(draft, reason if isinstance(reason, str) else None, delivery.sender)
        case DeliveryKind.PAUSE:
            commanding.pause(draft, delivery.sender)
        case DeliveryKind.CHILD:
            telling.hear_cleaned(draft, delivery.sender)
        case DeliveryKind.RETRY:
            _retry(draft, delivery)
        case _:
            commanding.resume(draft, delivery.sender)


def _retry(draft: Draft, delivery: Delivery) -> None:
    """The parent tries again: a failed run goes on. One that can't, or has done it meanwhile, tells its end again.

    What could not be undone of it is tried again by hand alone.
    """
    if not undoing.is_final(draft):
        with suppress(Conflict):
            commanding.retry(draft, delivery.sender)
    if draft.instance.is_ended:
        telling.tell_end(draft)


def deliver(draft: Draft) -> None:
    """Hand out the signals and events: to the step that waits for one, else keep a signal and discard a late event.

    One at a time: a body that ends by one of them may end its container, and who waits beside it gets the next no more.
    """
    for delivery in sorted(draft.deliveries.values(), key=lambda delivery: delivery.id):
        current = draft.deliveries.get(delivery.id)
        if current is not None:
            _hand_out(draft, current)
            containers.proceed(draft)


def _hand_out(draft: Draft, delivery: Delivery) -> None:
    if draft.instance.is_ended:
        lapsing.close(draft)
    elif draft.instance.paused_at is not None:
        if delivery.kind is DeliveryKind.SIGNAL:
            draft.buffer(delivery)
    elif (step := _find_taker(draft, delivery)) is not None:
        _wake(draft, step, delivery)
    elif not lapsing.is_awaited(draft, delivery):
        lapsing.drop(draft, delivery)
    elif delivery.kind is DeliveryKind.SIGNAL:
        draft.buffer(delivery)


def _find_taker(draft: Draft, delivery: Delivery) -> StepRun | None:
    for wait in list(draft.waits.values()):
        step = draft.get_step(wait.step_run_id)
        if step is not None and step.status is StepStatus.WAITING and firing.is_for(delivery, step, wait):
            return step
    return None


def _wake(draft: Draft, step: StepRun, delivery: Delivery) -> None:
    node = draft.plan.nodes.get(step.node_id)
    if node is None or not (node.is_pure or delivery.kind is DeliveryKind.CHILD):
        draft.make_ready(step)
    else:
        claiming.wake(draft, node, step, None)
