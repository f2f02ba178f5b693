"""Room under keys with limits: their rows locked after all instances, taken from and given back to in one transaction.

`in_use` and the slots change together, under the key's lock; so a dead engine's slots come back with the transaction
that takes its steps over, and whoever parks is seen by whoever gives room back afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from korak.core.changes import Changes
from korak.core.rates import Window
from korak.core.rooms import Demand, Denial, FlowKey, Parked, Room, get_rank, get_width, take
from korak.core.rows import StepRun
from korak.errors import TransientError
from korak.model import FlowKind
from korak.store.database import Runner
from korak.store.rows import read

MOST = 100
"""How many parked steps of a key are looked at in one go."""

DAY: timedelta = timedelta(days=1)


class Rouser(Protocol):
    """Marks, before they are written, the roused steps that will be sent right after the commit."""

    def rouse(self, steps: Sequence[StepRun], now: datetime) -> None:
        """Mark those that there is room for."""
        ...


@dataclass(eq=False, slots=True)
class Admission:
    """The keys that a batch needs, locked until its transaction ends, and what is written of them."""

    now: datetime
    rooms: dict[FlowKey, Room]
    widths: dict[FlowKey, float]
    granted: list[Demand] = field(default_factory=list)

    def admit(self, answers: Sequence[object]) -> Iterator[tuple[int, Denial]]:
        """Give room to all that ask, best first; the places of those that got none, and why."""
        asking = [
            (get_rank(answer.demands), place, answer.demands)
            for place, answer in enumerate(answers)
            if isinstance(answer, Changes) and answer.demands
        ]
        for _, place, demands in sorted(asking, key=lambda asked: asked[:2]):
            denial = take(demands, self.rooms)
            if denial is None:
                self.granted += demands
            else:
                yield place, denial


async def hold_rooms(runner: Runner, answers: Iterable[object], now: datetime) -> Admission | None:
    """Lock the keys of all that asks for room or gives some back, which then is there; None where nothing does."""
    batch = [answer for answer in answers if isinstance(answer, Changes)]
    demands = [demand for changes in batch for demand in changes.demands]
    steps, runs = _list_freed(batch)
    if not (demands or steps or runs):
        return None
    held = await runner.fetch("flow_held", steps=steps, runs=runs) if steps or runs else []
    widths = {demand.key: demand.width for demand in demands}
    ids = await _find(runner, widths, now) if widths else {}
    rooms = await _lock(runner, {*ids.values(), *(row["flow_key_id"] for row in held)})
    if not widths.keys() <= rooms.keys():
        raise TransientError(message="a key with limits was deleted just now")
    for key, width in widths.items():
        rooms[key].window.width = width or 1.0
        rooms[key].window.advance(now)
    by_id = {room.id: room for room in rooms.values()}
    for row in held:
        by_id[row["flow_key_id"]].give_back(row["weight"])
    return Admission(now, rooms, widths)


def _list_freed(batch: Iterable[Changes]) -> tuple[list[int], list[int]]:
    batch = list(batch)
    steps = [step_id for changes in batch for step_id in changes.freed]
    return steps, [changes.instance.id for changes in batch if changes.leaves]


async def _find(runner: Runner, keys: Collection[FlowKey], now: datetime) -> dict[FlowKey, int]:
    """The ids of keys. What is missing is opened before any is locked."""
    found = await _look_up(runner, keys)
    missing = sorted(_spread(key) for key in keys if key not in found)
    if missing:
        await runner.fetch("flow_open", wanted=[(*key, _get_idle(now, 0.0)) for key in missing])
        found = await _look_up(runner, keys)
    return found


async def _look_up(runner: Runner, keys: Collection[FlowKey]) -> dict[FlowKey, int]:
    rows = await runner.fetch("flow_find", wanted=[_spread(key) for key in keys])
    return {_get_key(row): row["id"] for row in rows}


def _spread(key: FlowKey) -> tuple[str, str, str]:
    return key.owner_scope, key.kind, key.name


def _get_key(row: Any) -> FlowKey:
    return FlowKey(row["owner_scope"], FlowKind(row["kind"]), row["key"])


async def _lock(runner: Runner, ids: Collection[int]) -> dict[FlowKey, Room]:
    rows = await runner.fetch("flow_lock", ids=sorted(ids)) if ids else []
    return {
        (key := _get_key(row)): Room(
            row["id"], key, row["in_use"], Window(list(row["counters"]), row["counted_at"]), row["has_parked"]
        )
        for row in rows
    }


def _get_idle(now: datetime, per: float) -> datetime:
    """When a key may be forgotten. It changes once a day, so that counting is an update without an index."""
    return (now + timedelta(seconds=per)).replace(hour=0, minute=0, second=0, microsecond=0) + 2 * DAY


async def settle_rooms(runner: Runner, admission: Admission, batch: Sequence[Changes], rouser: Rouser) -> None:
    """Write slots, counters and what parked steps wait for; make ready who there is room for. After the steps."""
    steps, runs = _list_freed(batch)
    if steps or runs:
        await runner.fetch("flow_return", steps=steps, runs=runs)
    slots = [_get_slot(admission, demand) for demand in admission.granted if demand.key.kind is FlowKind.CONCURRENCY]
    if slots:
        await runner.fetch("flow_take", slot=slots, now=admission.now)
    parkings = [
        (step.id, denial.key_id, denial.ceiling, denial.weight, denial.until)
        for changes in batch
        for step, denial in changes.parkings
    ]
    if parkings:
        await runner.fetch("flow_park", parked=parkings)
    await _count(runner, admission)
    freed = [room for room in admission.rooms.values() if room.freed and room.has_parked]
    roused = await rouse(runner, freed, rouser, admission.now)
    if roused:
        batch[0].roused += roused


def _get_slot(admission: Admission, demand: Demand) -> tuple[int, int, int | None, int]:
    step_id = None if demand.is_of_run else demand.step.id
    return admission.rooms[demand.key].id, demand.step.instance_id, step_id, demand.weight


async def _count(runner: Runner, admission: Admission) -> None:
    taken = {demand.key for demand in admission.granted}
    rows = []
    for room in admission.rooms.values():
        if room.key not in taken and not room.freed:
            continue
        is_rate = room.key.kind is FlowKind.RATE
        counters = "{" + ",".join(map(str, room.window.counters)) + "}" if is_rate else None
        per = admission.widths.get(room.key, 0.0) * len(room.window.counters)
        rows.append((room.id, room.in_use, counters, room.window.counted_at, _get_idle(admission.now, per)))
    if rows:
        await runner.fetch("flow_count", room=rows)


async def rouse(runner: Runner, rooms: Iterable[Room], rouser: Rouser, now: datetime) -> list[StepRun]:
    """Make the best parked steps ready for which there is room under these locked keys; those that others hold not.

    Best first.
    """
    by_id = {room.id: room for room in rooms}
    if not by_id:
        return []
    count = min(MOST, max(2 * room.freed + 8 for room in by_id.values()))
    rows = await runner.fetch("flow_parked", ids=sorted(by_id), count=count)
    chosen: set[int] = set()
    for room in by_id.values():
        parked = [row for row in rows if row["limit_key"] == room.id]
        chosen |= set(room.choose([Parked(row["id"], row["limit_ceiling"], row["limit_weight"]) for row in parked]))
    steps = sorted((_read_step(row, now) for row in rows if row["id"] in chosen), key=_get_turn)
    if not steps:
        return []
    rouser.rouse(steps, now)
    rows = await runner.fetch("flow_rouse", step=[(step.id, step.sent_at) for step in steps], now=now)
    done = {row["id"] for row in rows}
    return [step for step in steps if step.id in done]


def _get_turn(step: StepRun) -> tuple[int, datetime, int]:
    """Best first, of whatever keys: by priority, then by age."""
    return -step.priority, step.created_at, step.id


def _read_step(row: Any, now: datetime) -> StepRun:
    columns = {name: value for name, value in row.items() if not name.startswith("limit_")}
    step = read(StepRun, {**columns, "parked_for": None, "role": "step", "probe": None, "error_category": None})
    step.ready_at = now
    return step


async def rouse_waiting(
    runner: Runner, after: int, count: int, now: datetime, rouser: Rouser
) -> tuple[list[StepRun], int]:
    """Of the next keys that steps are parked for: who may go now. Then the last key that was looked at, 0 at the end.

    In a transaction of the caller's. It is the net below what is given back, and what wakes those that wait for time.
    """
    ids = [row["id"] for row in await runner.fetch("flow_waited", after=after, count=count)]
    rooms = await _lock(runner, ids)
    for room in rooms.values():
        room.freed = MOST
        if room.key.kind is FlowKind.RATE:
            room.window.width = get_width(float(room.key.name.split(" ", maxsplit=1)[0]))
            room.window.advance(now)
    steps = await rouse(runner, rooms.values(), rouser, now)
    return steps, (ids[-1] if len(ids) == count else 0)
