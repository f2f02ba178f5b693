"""Who is written together, and who waits in line alone: what was passed over twice waits for a lock."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from korak_engine.entries import Entry

PATIENCE = 5.0
"""Seconds that what was passed over twice waits for its instance's lock."""

PASSES = 2


class Skippable(Protocol):
    """Something that may be passed over because others hold its instance."""

    skips: int


T = TypeVar("T", bound=Skippable)

SMALLEST = 16
"""So many of one instance are written together, however few of it run here."""


def arrange(batch: Sequence[T], get_instance: Callable[[T], int]) -> Iterator[tuple[list[T], float | None]]:
    """The parts of a batch, each with its patience: first all together, then one instance a part."""
    together = [one for one in batch if one.skips < PASSES]
    if together:
        yield together, None
    alone: dict[int, list[T]] = {}
    for one in batch:
        if one.skips >= PASSES:
            alone.setdefault(get_instance(one), []).append(one)
    for part in alone.values():
        yield part, PATIENCE


class Line:
    """The entries that wait to be written. Those of one instance are never with two recorders at a time.

    Of an instance of which many run here, `count` of them, half are written at a time: the other half runs meanwhile.
    """

    def __init__(self, limit: int, count: Callable[[int], int] = lambda _: 0) -> None:
        self._limit = limit
        self._count = count
        self._waiting: deque[Entry] = deque()
        self._busy: set[int] = set()
        self._changed = asyncio.Event()

    def put(self, entry: Entry) -> None:
        """One more."""
        self._waiting.append(entry)
        self._changed.set()

    async def take(self) -> list[Entry]:
        """What there is of instances that no other recorder is at, up to the limit; at least one."""
        while not (batch := self._pick()):
            self._changed.clear()
            await self._changed.wait()
        self._busy.update(entry.instance_id for entry in batch)
        return batch

    def release(self, batch: Sequence[Entry]) -> None:
        """What was taken is written: others may write more of its instances."""
        self._busy.difference_update(entry.instance_id for entry in batch)
        self._changed.set()

    def _pick(self) -> list[Entry]:
        batch: list[Entry] = []
        passed: list[Entry] = []
        taken: Counter[int] = Counter()
        while self._waiting and len(batch) < self._limit:
            entry = self._waiting.popleft()
            instance_id = entry.instance_id
            if instance_id in self._busy or taken[instance_id] >= max(SMALLEST, self._count(instance_id) // 2):
                passed.append(entry)
            else:
                taken[instance_id] += 1
                batch.append(entry)
        self._waiting.extendleft(reversed(passed))
        return batch
