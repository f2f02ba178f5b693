"""Where deliveries stand that have come and that nobody has taken yet."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

from korak.broker.port import Delivery

D = TypeVar("D", bound=Delivery)


class Shelf(Generic[D]):
    """The deliveries of one consumer, oldest first, until it stops."""

    def __init__(self) -> None:
        self._deliveries: deque[D] = deque()
        self._changed = asyncio.Event()
        self.is_stopped: bool = False

    def put(self, delivery: D) -> None:
        """One more."""
        self._deliveries.append(delivery)
        self._changed.set()

    async def take(self, limit: int) -> list[Delivery]:
        """At least one delivery, and more up to that many ids; none once it is stopped and empty."""
        while not self._deliveries:
            if self.is_stopped:
                return []
            self._changed.clear()
            await self._changed.wait()
        taken: list[Delivery] = []
        ids = 0
        while self._deliveries and (not taken or ids < limit):
            delivery = self._deliveries.popleft()
            taken.append(delivery)
            ids += len(delivery.message)
        return taken

    def stop(self) -> bool:
        """Nobody waits here any more; False where it was stopped before."""
        if self.is_stopped:
            return False
        self.is_stopped = True
        self._changed.set()
        return True

    def clear(self) -> list[D]:
        """What stands here, and then doesn't."""
        cleared = list(self._deliveries)
        self._deliveries.clear()
        return cleared
