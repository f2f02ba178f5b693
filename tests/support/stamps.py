"""What a waker writes without an instance's lock: stamps on waits, steps and deliveries (waits_due.sql and its kin)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from korak.core.rows import Delivery, StepRun, Wait, copy
from korak.model import DeliveryKind, ParkedFor, StepStatus, WaitKind, WaitStatus
from tests.support.memory import Emit, Family, Memory

Row = TypeVar("Row", StepRun, Wait)

HURRIED = (
    DeliveryKind.CANCEL,
    DeliveryKind.PAUSE,
    DeliveryKind.RESUME,
    DeliveryKind.RETRY,
    DeliveryKind.CHILD,
    DeliveryKind.ENDED,
)
AWAITED = (WaitKind.SIGNAL, WaitKind.EVENT)


def stamp_due(family: Family, now: datetime) -> int:
    """Due waits, stamped, and their steps ready; how many there were."""
    due = [wait for wait in family.open_waits if _is_due(wait, now)]
    for wait in due:
        family.waits[wait.id] = _with(wait, sent_at=now)
        _ready(family, wait, now)
    return len(due)


def _is_due(wait: Wait, now: datetime) -> bool:
    is_open = wait.status is WaitStatus.PENDING and wait.sent_at is None
    return is_open and wait.due_at is not None and wait.due_at <= now


def repeat_waits(family: Family, now: datetime, after: timedelta) -> int:
    """Waits whose due time was told to nobody: their steps are ready again."""
    lost = [wait for wait in family.open_waits if wait.sent_at is not None and wait.sent_at <= now - after]
    return sum(_ready(family, wait, now) for wait in lost if wait.status is WaitStatus.PENDING)


def _ready(family: Family, wait: Wait, now: datetime) -> bool:
    step = family.steps[wait.step_run_id]
    wanted = StepStatus.QUEUED if wait.kind is WaitKind.RETRY else StepStatus.WAITING
    if step.status is not wanted or step.ready_at is not None or step.parked_for is not None:
        return False
    family.steps[step.id] = _with(step, ready_at=now, sent_at=None)
    return True


def repeat_steps(family: Family, now: datetime, after: timedelta) -> list[int]:
    """Ready steps that were sent and not claimed, or never sent: sent now; their ids."""
    ready = [step for step in family.live if step.ready_at is not None]
    lost = [step for step in ready if step.sent_at is None or step.sent_at <= now - after]
    for step in lost:
        family.steps[step.id] = _with(step, sent_at=now)
    return [step.id for step in lost]


def wake_signals(family: Family, now: datetime, rows: list[Delivery]) -> None:
    """Make the waiting steps ready that these are for."""
    for row in rows:
        for wait in family.open_waits:
            step = family.steps[wait.step_run_id]
            is_its = wait.status is WaitStatus.PENDING and wait.kind in AWAITED and wait.event_key == row.name
            is_parked = step.status is StepStatus.WAITING and step.ready_at is None
            if is_its and is_parked and row.step_run_id in (None, step.id):
                family.steps[step.id] = _with(step, ready_at=now, sent_at=None)


def list_untaken(family: Family, now: datetime, soon: timedelta, after: timedelta) -> list[Delivery]:
    """Deliveries that nobody took for a while, stamped."""
    untaken = []
    for row in family.signals.values():
        patience = soon if row.kind in HURRIED and row.id not in family.stamps else after
        is_over = family.stamps.get(row.id, row.created_at) <= now - patience
        if is_over and row.taken_at is None and row.buffered_at is None:
            untaken.append(row)
    family.stamps |= {row.id: now for row in untaken}
    return untaken


def unpark(family: Family, now: datetime, reason: ParkedFor = ParkedFor.ENGINE) -> int:
    """Steps that waited for an engine with their type are ready: there is one; or a hold is over."""
    parked = [step for step in family.live if step.parked_for is reason]
    for step in parked:
        family.steps[step.id] = _with(step, parked_for=None, ready_at=now, sent_at=None)
    return len(parked)


def rouse(memory: Memory, step_ids: Iterable[int], now: datetime) -> int:
    """Steps that were parked for a limit are ready: there is room. Those that aren't parked any more are forgotten."""
    count = 0
    for step_id in step_ids:
        family = memory.find(step_id)
        step = None if family is None else family.steps.get(step_id)
        memory.rooms.forget(step_id)
        if family is not None and step is not None and step.parked_for is ParkedFor.LIMIT:
            family.steps[step_id] = _with(step, parked_for=None, ready_at=now, sent_at=None)
            count += 1
    return count


def rouse_waiting(memory: Memory, now: datetime) -> int:
    """The net below what gives room back, and what wakes those that wait for time."""
    for step_id in list(memory.rooms.parked):
        family = memory.find(step_id)
        if family is None or family.steps[step_id].parked_for is not ParkedFor.LIMIT:
            memory.rooms.forget(step_id)
    count = 0
    for key, room in list(memory.rooms.rooms.items()):
        room.window.advance(now)
        count += rouse(memory, memory.rooms.choose(key), now)
    return count


def match_events(memory: Memory, now: datetime) -> None:
    """Address every event that wasn't matched yet to the waits that it fits; the digest has been compared before."""
    for emit in memory.emits:
        if emit.matched_at is None:
            emit.matched_at = now
            for family in memory.families.values():
                _address(memory, family, emit, now)


def _address(memory: Memory, family: Family, emit: Emit, now: datetime) -> None:
    """An instance that has had the event, or has it lying there, doesn't get it again."""
    if any((row.name, row.source_id) == (emit.name, emit.source_id) for row in family.signals.values()):
        return
    for wait in family.open_waits:
        is_named = wait.kind is WaitKind.EVENT and wait.event_key == emit.name
        if is_named and all(emit.payload.get(path) == value for path, value in (wait.match or {}).items()):
            row = Delivery(0, family.instance.id, wait.owner_scope, DeliveryKind.EVENT, emit.source_id, now)
            row.step_run_id, row.wait_id = wait.step_run_id, wait.id
            row.name, row.payload = emit.name, emit.payload
            memory.send(family, row)


def _with(row: Row, **columns: Any) -> Row:
    twin = copy(row)
    for name, value in columns.items():
        setattr(twin, name, value)
    return twin
