"""Room under keys with limits, in memory: what `korak.store.rooms` does, on rows that are replaced as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from korak.core.changes import Changes
from korak.core.rooms import Demand, Denial, FlowKey, Parked, Room, get_rank, take
from korak.core.rows import StepRun
from korak.model import FlowKind

Place = tuple[int, int | None]
"""Who holds a slot: an instance, and the step of it that does; None for the run itself."""


@dataclass(eq=False)
class Held:
    """The keys of one transaction as they will be, and who got room."""

    rooms: dict[FlowKey, Room]
    granted: list[Demand] = field(default_factory=list)


class Rooms:
    """All keys, slots, and what parked steps wait for."""

    def __init__(self) -> None:
        self.rooms: dict[FlowKey, Room] = {}
        self.slots: dict[Place, list[tuple[FlowKey, int]]] = {}
        self.parked: dict[int, tuple[StepRun, Denial]] = {}

    def admit(self, answers: list[Any], again: Callable[[int, Denial], Any], now: datetime) -> Held | None:
        """Find room for what was decided; what got none is decided again, in its place. None where nobody asks."""
        batch = [answer for answer in answers if isinstance(answer, Changes)]
        if not any(changes.demands or changes.freed or changes.leaves for changes in batch):
            return None
        held = Held({key: _copy(room) for key, room in self.rooms.items()})
        for demand in (demand for changes in batch for demand in changes.demands):
            room = held.rooms.setdefault(demand.key, Room(len(held.rooms) + 1, demand.key))
            room.window.width = demand.width or 1.0
            room.window.advance(now)
        for place in list_freed(batch):
            for key, weight in self.slots.get(place, ()):
                held.rooms[key].give_back(weight)
        asking = [(get_rank(a.demands), at, a.demands) for at, a in enumerate(answers) if _asks(a)]
        for _, at, demands in sorted(asking, key=lambda asked: asked[:2]):
            denial = take(demands, held.rooms)
            if denial is None:
                held.granted += demands
            else:
                answers[at] = again(at, denial)
        return held

    def settle(self, held: Held, batch: Sequence[Changes]) -> list[int]:
        """Keep what came of it; the parked steps that there is room for now."""
        for place in list_freed(batch):
            self.slots.pop(place, None)
        for demand in held.granted:
            if demand.key.kind is FlowKind.CONCURRENCY:
                place = (demand.step.instance_id, None if demand.is_of_run else demand.step.id)
                self.slots.setdefault(place, []).append((demand.key, demand.weight))
        for changes in batch:
            self.parked |= {step.id: (step, denial) for step, denial in changes.parkings}
        freed = [key for key, room in held.rooms.items() if room.freed]
        for room in held.rooms.values():
            room.freed = 0
        self.rooms = held.rooms
        return [step_id for key in freed for step_id in self.choose(key)]

    def choose(self, key: FlowKey) -> list[int]:
        """The steps that are parked for a key and fit."""
        parked = [(step, denial) for step, denial in self.parked.values() if denial.key == key]
        parked.sort(key=lambda each: (-each[0].priority, each[0].created_at, each[0].id))
        return self.rooms[key].choose([Parked(step.id, denial.ceiling, denial.weight) for step, denial in parked])

    def forget(self, step_id: int) -> None:
        """The step isn't parked any more."""
        self.parked.pop(step_id, None)
        for room in self.rooms.values():
            room.has_parked = any(denial.key == room.key for _, denial in self.parked.values())

    def has_room(self, step_id: int) -> bool:
        """Whether a parked step would fit now."""
        _, denial = self.parked[step_id]
        return self.rooms[denial.key].taken <= denial.ceiling

    def check(self) -> None:
        """What is held is what is counted."""
        held: Counter[FlowKey] = Counter()
        for slots in self.slots.values():
            for key, weight in slots:
                held[key] += weight
        counted = {key: room.in_use for key, room in self.rooms.items() if room.in_use}
        assert dict(held) == counted, (held, counted)


def _copy(room: Room) -> Room:
    return replace(room, window=replace(room.window, counters=list(room.window.counters)))


def list_freed(batch: Iterable[Changes]) -> list[Place]:
    """Who gives back what it held."""
    steps = [(changes.instance.id, step_id) for changes in batch for step_id in changes.freed]
    return [*steps, *((changes.instance.id, None) for changes in batch if changes.leaves)]


def _asks(answer: Any) -> bool:
    return isinstance(answer, Changes) and bool(answer.demands)
