"""What an engine holds: the claimed attempts by id, and how many more it may take."""

from __future__ import annotations

import asyncio
from datetime import datetime

from korak_engine.work import Work


class Slots:
    """Bounded concurrency: a slot is reserved before a claim, then belongs to an attempt and those that follow it."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._reserved = 0
        self._held: dict[int, Work] = {}
        self._changed = asyncio.Event()

    @property
    def free(self) -> int:
        """How many attempts may still be claimed."""
        return max(0, self._size - self._reserved - len(self._held))

    @property
    def held(self) -> list[Work]:
        """The attempts that are held now."""
        return list(self._held.values())

    def runs(self, step_id: int) -> bool:
        """Whether that attempt is at work here: one whose result is written may be ready again before it is dropped."""
        work = self._held.get(step_id)
        return work is not None and not work.is_settled

    def get_types(self) -> set[str]:
        """The types of what is held."""
        return {work.step.node_type for work in list(self._held.values())}

    def get_oldest_claim(self, default: datetime) -> datetime:
        """When the attempt that is held longest was claimed."""
        return min((work.step.claimed_at or default for work in self._held.values()), default=default)

    def reserve(self, count: int) -> None:
        """Keep slots for steps that are being claimed."""
        self._reserved += count

    def release(self, count: int) -> None:
        """Give back slots that were kept for a claim."""
        self._reserved -= count
        self._changed.set()

    def put(self, work: Work) -> None:
        """An attempt takes a slot."""
        self._held[work.step.id] = work

    def drop(self, work: Work) -> None:
        """An attempt leaves its slot."""
        if self._held.get(work.step.id) is work:
            del self._held[work.step.id]
        self._changed.set()

    def shrink(self) -> None:
        """A slot is lost for good: something in it never ends."""
        self._size -= 1

    def grow(self) -> None:
        """A slot that was lost has come back."""
        self._size += 1
        self._changed.set()

    async def wait_for_free(self) -> int:
        """How many are free, once at least one is."""
        while not self.free:
            self._changed.clear()
            await self._changed.wait()
        return self.free

    async def wait_for_none_held(self) -> None:
        """Until nothing is held any more."""
        while self._held:
            self._changed.clear()
            await self._changed.wait()
