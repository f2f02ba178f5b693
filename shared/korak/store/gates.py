"""How much may be sent directly: a queue's broker holds a bounded number of ids, and none while a backlog stands."""

from __future__ import annotations

import time
from collections.abc import Iterable

from korak.store.database import Database, Session

FRESH = 0.25
"""Seconds for which what was read of a queue is believed."""


class Gate:
    """The room of each queue, as this process last saw it. Several senders may overshoot by what each believed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._room: dict[str, int] = {}
        self._read_at: dict[str, float] = {}

    async def refresh(self, queues: Iterable[str]) -> None:
        """Look again at queues that weren't looked at for a while."""
        now = time.monotonic()
        stale = [queue for queue in queues if now - self._read_at.get(queue, -FRESH) >= FRESH]
        if not stale:
            return
        async with self._database.acquire() as connection:
            rows = await Session(connection).fetch("queues_room", queues=stale)
        for row in rows:
            self._room[row["queue"]] = row["room"]
            self._read_at[row["queue"]] = now

    def take(self, queue: str) -> bool:
        """Whether one more id may be sent; a queue that was never looked at is taken to have room."""
        room = self._room.get(queue)
        if room is None:
            return True
        self._room[queue] = room - 1
        return room > 0
