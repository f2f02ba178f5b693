"""Finding what woke a step: deliveries, due times, conditions and kept events, as they came, fire its waits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf

from korak.core import tallying
from korak.core.draft import Draft
from korak.core.roots import get_roots
from korak.core.rows import Delivery, StepRun, Wait
from korak.core.snapshot import Kept
from korak.core.waiting import AWAITED
from korak.graphs.conditions import compile_condition
from korak.graphs.ordering import equal
from korak.graphs.paths import lookup, parse
from korak.model import (
    DeliveryKind,
    EventType,
    Json,
    JsonObject,
    SignalKind,
    WaitKind,
    WaitStatus,
)
from korak.steps.waits import Signal

TIMED = {WaitKind.TIMER: SignalKind.TIMER, WaitKind.TIMEOUT: SignalKind.TIMEOUT}
EVENTS = (DeliveryKind.EVENT, WaitKind.EVENT)
TOLD = {WaitKind.CHILD: DeliveryKind.CHILD, WaitKind.WORKFLOWS: DeliveryKind.ENDED}
"""The waits for other runs, each with what is addressed to it."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Something that may wake a step: when it came, and the wait that it is for."""

    at: datetime
    wait: Wait
    payload: Json = None
    delivery: Delivery | None = None
    kept: Kept | None = None


def choose(draft: Draft, step: StepRun) -> Signal | None:
    """What wakes the step: the earliest arrival that fires. Its wait is fired and the siblings are cancelled (WT-6)."""
    for arrival in sorted(_list_arrivals(draft, step), key=_get_turn):
        if arrival.delivery is not None and arrival.delivery.id not in draft.deliveries:
            continue
        signal = _fire(draft, step, arrival)
        if signal is not None:
            return signal
    return None


def _get_turn(arrival: Arrival) -> tuple[datetime, float]:
    """Of what came at the same instant the row that was written first, and a time that is over last."""
    return arrival.at, inf if arrival.delivery is None else arrival.delivery.id


def _list_arrivals(draft: Draft, step: StepRun) -> Iterator[Arrival]:
    waits = [wait for wait in draft.list_waits(step) if wait.status is WaitStatus.PENDING]
    for wait in waits:
        if wait.sent_at is not None and wait.due_at is not None and wait.kind is not WaitKind.RETRY:
            yield Arrival(wait.due_at, wait)
        if wait.kind in TOLD:
            yield from _list_ends(draft, step, wait)
        if wait.kind in AWAITED:
            yield from _list_deliveries(draft, step, wait)
            for kept in draft.snapshot.kept.get(step.id, ()) if wait.looks_back else ():
                if kept.name == wait.event_key and does_match(wait.match, kept.payload):
                    yield Arrival(kept.created_at, wait, kept.payload, kept=kept)


def _list_deliveries(draft: Draft, step: StepRun, wait: Wait) -> Iterator[Arrival]:
    for delivery in draft.deliveries.values():
        if is_for(delivery, step, wait):
            yield Arrival(delivery.created_at, wait, delivery.payload, delivery=delivery)


def _list_ends(draft: Draft, step: StepRun, wait: Wait) -> Iterator[Arrival]:
    """Of each run that is waited for its last end: one that went on after an earlier end has come to another since."""
    newest: dict[str, Delivery] = {}
    for delivery in sorted(draft.deliveries.values(), key=lambda delivery: delivery.id):
        if is_for(delivery, step, wait):
            newest[_get_teller(delivery)] = delivery
    for delivery in newest.values():
        yield Arrival(delivery.created_at, wait, delivery.payload, delivery=delivery)


def _get_teller(delivery: Delivery) -> str:
    """The run whose end is told, by its ULID."""
    told = delivery.payload if isinstance(delivery.payload, dict) else {}
    return str(told.get("child") or told.get("instance"))


def is_for(delivery: Delivery, step: StepRun, wait: Wait) -> bool:
    """Whether a signal or event in this instance is one that the wait takes (WT-2).

    One that was opened in this very decision takes none yet: it has its look right after the commit. One of several
    that has its own and waits for the others takes no second.
    """
    if wait.kind in TOLD or delivery.kind in TOLD.values():
        return (delivery.kind, delivery.wait_id) == (TOLD.get(wait.kind), wait.id) and wait.status is WaitStatus.PENDING
    if wait.id < 0 or (wait.mode is not None and wait.payload is not None):
        return False
    if delivery.name != wait.event_key or wait.status is not WaitStatus.PENDING:
        return False
    is_of_kind = delivery.kind is DeliveryKind.SIGNAL or (delivery.kind, wait.kind) == EVENTS
    is_mine = delivery.step_run_id is None or delivery.execution_id == step.execution_id
    return is_of_kind and is_mine and does_match(wait.match, delivery.payload)


def does_match(match: JsonObject | None, payload: Json) -> bool:
    """Whether the payload has every value of `match` at its path."""
    if not match:
        return True
    if not isinstance(payload, dict):
        return False
    return all(equal(lookup(parse(path), payload), value) for path, value in match.items())


def _fire(draft: Draft, step: StepRun, arrival: Arrival) -> Signal | None:
    wait = draft.edit_wait(arrival.wait)
    if wait.kind is WaitKind.CONDITION:
        return _look_at_condition(draft, step, wait)
    if wait.kind in TOLD:
        return _hear(draft, step, wait, arrival)
    if wait.kind in TIMED:
        return _close(draft, step, wait, Signal(TIMED[wait.kind], outcome=wait.outcome, wait=wait.id, at=draft.now))
    if wait.mode is not None and wait.payload is not None:
        return None
    wait.payload = arrival.payload if arrival.payload is not None else {}
    _consume(draft, arrival)
    if wait.mode is not None:
        return _look_at_group(draft, step, wait)
    kind = SignalKind.EVENT if wait.kind is WaitKind.EVENT else SignalKind.SIGNAL
    signal = Signal(kind, wait.event_key, arrival.payload, wait.outcome, wait.id, draft.now)
    return _close(draft, step, wait, signal)


def _hear(draft: Draft, step: StepRun, wait: Wait, arrival: Arrival) -> Signal | None:
    """A child's end is what was waited for; of several runs each is counted until it is clear what comes of them."""
    _consume(draft, arrival)
    for other in list(draft.deliveries.values()):
        is_same = arrival.delivery is not None and _get_teller(other) == _get_teller(arrival.delivery)
        if is_same and is_for(other, step, wait):
            draft.take(other)
    told = arrival.payload if isinstance(arrival.payload, dict) else {}
    if wait.kind is WaitKind.CHILD:
        return _close(draft, step, wait, Signal(SignalKind.CHILD, wait.event_key, told, wait=wait.id, at=draft.now))
    tally = tallying.Tally.from_json(wait.payload).hear(told)
    wait.payload = tally.to_json()
    if not tally.is_settled:
        return None
    return _close(draft, step, wait, Signal(SignalKind.ENDED, None, wait.payload, wait=wait.id, at=draft.now))


def _consume(draft: Draft, arrival: Arrival) -> None:
    if arrival.delivery is not None:
        draft.take(arrival.delivery)
        told: JsonObject = {"name": arrival.delivery.name, "source_id": arrival.delivery.source_id}
        draft.record(EventType.SIGNAL_RECEIVED, None, told)
    elif arrival.kept is not None:
        _consume_kept(draft, arrival.kept, arrival.wait)


def _consume_kept(draft: Draft, kept: Kept, wait: Wait) -> None:
    """An event kept from before is this wait's: a taken row says so, and no wait of this run takes it again."""
    delivery = Delivery(
        id=0,
        instance_id=draft.instance.id,
        owner_scope=draft.instance.owner_scope,
        kind=DeliveryKind.EVENT,
        source_id=kept.source_id,
        created_at=draft.now,
        step_run_id=wait.step_run_id,
        wait_id=wait.id,
        name=kept.name,
        payload=kept.payload,
    )
    draft.add_taken(delivery)
    draft.record(EventType.SIGNAL_RECEIVED, None, {"name": kept.name, "source_id": kept.source_id})


def _look_at_condition(draft: Draft, step: StepRun, wait: Wait) -> Signal | None:
    roots = get_roots(draft, draft.scopes.rows, draft.now, scope_id=step.scope_id)
    if compile_condition(wait.condition).holds(roots):
        signal = Signal(SignalKind.CONDITION, outcome=wait.outcome, wait=wait.id, at=draft.now)
        return _close(draft, step, wait, signal)
    wait.due_at, wait.sent_at = draft.now + timedelta(seconds=wait.poll_seconds or draft.policy.poll), None
    return None


def _look_at_group(draft: Draft, step: StepRun, wait: Wait) -> Signal | None:
    group = [draft.waits[other.id] for other in draft.list_waits(step) if other.mode is not None]
    if wait.mode == "all" and any(other.payload is None for other in group):
        return None
    payload: JsonObject = {str(other.event_key): other.payload for other in group if other.payload is not None}
    for other in group:
        if other.id != wait.id and other.payload is not None:
            draft.move_wait(other, WaitStatus.FIRED)
    return _close(draft, step, wait, Signal(SignalKind.SIGNAL, None, payload, wait.outcome, wait.id, draft.now))


def _close(draft: Draft, step: StepRun, wait: Wait, signal: Signal) -> Signal:
    draft.move_wait(wait, WaitStatus.FIRED)
    draft.cancel_waits(step)
    return signal
