"""What joins runs, in memory: commands on their way to children, and the ends of runs (`korak.store.kin`)."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from korak.core.changes import Cascade
from korak.core.rows import Delivery, Instance, StepRun, copy
from korak.model import DeliveryKind, StepStatus, WaitKind, WaitStatus
from tests.support.memory import Depending, Family, Memory


def advance_cascade(memory: Memory, now: datetime, count: int, instance: int | None = None) -> list[int] | None:
    """Bring a command, of this run or of any, to the next page of its children (cascades_advance.sql); which have it.

    None where nothing is to do.
    """
    cascades = [each for each in memory.cascades if instance in (None, each.instance_id)]
    if not cascades:
        return None
    cascade = min(cascades, key=lambda cascade: (cascade.instance_id, cascade.seq))
    place = (cascade.instance_id, cascade.seq)
    page = _list_page(memory, cascade, count)
    told = [family for family in page if not family.instance.is_ended or _is_bidden(family)]
    for family in told:
        source = f"{(cascade.sender or {}).get('instance')}:{cascade.seq}"
        row = Delivery(0, family.instance.id, "*", cascade.kind, source, now)
        row.sender = cascade.sender
        memory.send(family, row)
    if len(page) == count:
        memory.cursors[place] = page[-1].instance.id
    else:
        memory.cursors.pop(place, None)
        memory.cascades = [each for each in memory.cascades if each is not cascade]
    return [family.instance.id for family in told]


def _is_bidden(family: Family) -> bool:
    return any(row.kind is DeliveryKind.RETRY and row.taken_at is None for row in family.signals.values())


def _list_page(memory: Memory, cascade: Cascade, count: int) -> list[Family]:
    """None for a cascade that a later one has overtaken."""
    if any(each.instance_id == cascade.instance_id and each.seq > cascade.seq for each in memory.cascades):
        return []
    cursor = memory.cursors.get((cascade.instance_id, cascade.seq), 0)
    return [each for each in memory.list_children(cascade.instance_id) if each.instance.id > cursor][:count]


def wake_parents(memory: Memory, ulids: Collection[str], now: datetime) -> list[int]:
    """Wake the steps that wait for these children, which have ended (children_wake.sql); their ids."""
    woken: list[int] = []
    for family in memory.families.values():
        for wait in family.open_waits:
            is_its = wait.kind is WaitKind.CHILD and wait.event_key in ulids and wait.status is WaitStatus.PENDING
            if is_its and _wake(family, wait.step_run_id, now):
                woken.append(wait.step_run_id)
    return woken


def look(memory: Memory, rows: Collection[Depending], now: datetime) -> list[int]:
    """Tell those who wait for runs what has ended of them (dependencies_tell.sql); who woke.

    Runs that wait for one another are not looked for.
    """
    woken: list[int] = []
    for row in rows:
        awaited, family = memory.families[row.awaited_id].instance, memory.families[row.instance_id]
        if awaited.ended_at is None:
            continue
        delivery = Delivery(0, row.instance_id, "*", DeliveryKind.ENDED, name_end(awaited), now)
        delivery.step_run_id, delivery.wait_id = row.step_run_id, row.wait_id
        delivery.payload = {"instance": awaited.ulid, "status": awaited.status}
        if memory.send(family, delivery) and _wake(family, row.step_run_id, now):
            woken.append(row.step_run_id)
    return woken


def name_end(instance: Instance) -> str:
    """The source of what is told of a run's end: one that goes on comes to another."""
    assert instance.ended_at is not None, instance
    return f"{instance.ulid}@{round(instance.ended_at.timestamp() * 1_000_000)}"


def _wake(family: Family, step_id: int, now: datetime) -> bool:
    step: StepRun = family.steps[step_id]
    if step.status is not StepStatus.WAITING or step.ready_at is not None:
        return False
    step = family.steps[step_id] = copy(step)
    step.ready_at = step.sent_at = now
    return True
