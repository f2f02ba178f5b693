"""A network that loses, doubles, delays and reorders what is sent over it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random


@dataclass(frozen=True, slots=True)
class Faults:
    """How likely each thing is that goes wrong, once for each occasion."""

    lost: float = 0.08
    doubled: float = 0.08
    statement: float = 0.004
    answer: float = 0.02
    dies: float = 0.0015
    freezes: float = 0.0015
    jumps: float = 0.004
    strays: float = 0.02

    @property
    def is_none(self) -> bool:
        """Whether nothing goes wrong any more."""
        return not (self.lost or self.answer or self.dies)


NONE = Faults(0, 0, 0, 0, 0, 0, 0, 0)


class Network:
    """Nudges on their way to engines: ids of steps, each with the time at which it arrives."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._under_way: list[tuple[datetime, int]] = []
        self.faults = Faults()

    def send(self, step_ids: list[int], now: datetime) -> None:
        """Nudge for these steps."""
        for step_id in step_ids:
            if self._random.random() < self.faults.lost:
                continue
            self._under_way.append((self._arrives(now), step_id))
            if self._random.random() < self.faults.doubled:
                self._under_way.append((self._arrives(now), step_id))

    def _arrives(self, now: datetime) -> datetime:
        delay = self._random.choice([0.0, 0.0, 0.01, 0.5, 5.0, 90.0]) if not self.faults.is_none else 0.0
        return now + timedelta(seconds=delay)

    def take(self, limit: int, now: datetime) -> list[int]:
        """Some of what has arrived, in any order."""
        arrived = [nudge for nudge in self._under_way if nudge[0] <= now]
        self._random.shuffle(arrived)
        for nudge in arrived[:limit]:
            self._under_way.remove(nudge)
        return [step_id for _, step_id in arrived[:limit]]

    def purge(self) -> None:
        """A broker that was restarted with its queues empty."""
        self._under_way.clear()
