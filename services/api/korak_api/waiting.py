"""`?wait=`: callers who wait for an instance to end, told by the broker, and by a look every second."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Self

from korak.broker.port import Broker
from korak.loop import run_every, wait
from korak.store import instances
from korak.store.database import Database

LOOK: Final = 1.0
"""Seconds between two looks for what the broker didn't tell."""


class Watch:
    """One caller's wait for one instance."""

    def __init__(self, waiter: Waiter, ulid: str) -> None:
        self.ulid = ulid
        self.ended = asyncio.Event()
        self._waiter = waiter

    async def wait(self, seconds: float) -> None:
        """Return once the instance has ended, the time is over, or the service stops."""
        await wait(seconds, self.ended, self._waiter.stop)


class Waiter:
    """All the waits of one process. An async context manager."""

    def __init__(self, database: Database, broker: Broker, stop: asyncio.Event) -> None:
        self.stop = stop
        self._database = database
        self._broker = broker
        self._watches: dict[str, set[Watch]] = {}
        self._asked = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        looking = run_every(self.stop, self._look, lambda _: LOOK, wake=self._asked)
        self._tasks = [asyncio.create_task(looking), asyncio.create_task(self._listen())]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @contextmanager
    def watch(self, ulid: str, *, is_new: bool = False) -> Iterator[Watch]:
        """Watch an instance from here on. One that may have ended already (not `is_new`) is looked at right away."""
        watch = Watch(self, ulid)
        self._watches.setdefault(ulid, set()).add(watch)
        if not is_new:
            self._asked.set()
        try:
            yield watch
        finally:
            watches = self._watches[ulid]
            watches.discard(watch)
            if not watches:
                del self._watches[ulid]

    async def _listen(self) -> None:
        async with self._broker.ended() as ended:
            async for ulids in ended:
                self._tell(ulids)

    async def _look(self) -> None:
        if self._watches:
            async with self._database.acquire() as connection:
                self._tell(await instances.list_ended(connection, list(self._watches)))

    def _tell(self, ulids: list[str] | set[str]) -> None:
        for ulid in ulids:
            for watch in self._watches.get(ulid, ()):
                watch.ended.set()
