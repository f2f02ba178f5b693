"""The engine's lease, renewed from a thread of its own, which also watches that the loop isn't blocked."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib.metadata import version

from ulid import ULID

from korak.clock import Clock
from korak.errors import TransientError
from korak.loop import run_every
from korak.store import engines
from korak.store.clocks import measure
from korak.store.database import Database, Hot, Runner
from korak_engine.identity import Identity

log: logging.Logger = logging.getLogger(__name__)

LATE = 1.0
"""Seconds by which the loop is late when that is logged, with its stack."""

BLOCKED = 1 / 6
"""The part of the limit for a blocked loop by which it is late when the engine claims no more."""

BEAT = 0.2
EXIT_BLOCKED = 70
CLOCK_EVERY = 30.0


@dataclass(frozen=True, slots=True)
class Holder:
    """What the lease knows of its engine.

    `on_closed` is called on the loop when somebody closed the row; `on_late`, in the thread, with how late the loop is.
    """

    identity: Identity
    types: list[str]
    get_oldest: Callable[[datetime], datetime]
    get_types: Callable[[], set[str]]
    on_closed: Callable[[], None]
    on_late: Callable[[float], None]


class Lease:
    """Keeps the engine's row: entered once it is registered, and closed when it is left."""

    def __init__(
        self,
        holder: Holder,
        make_database: Callable[[], Database],
        clock: Clock,
        *,
        lease: float,
        block_limit: float,
    ) -> None:
        self._holder = holder
        self._block_limit = block_limit
        self._identity = holder.identity
        self._make_database = make_database
        self._seconds = lease
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._beat = clock.monotonic()
        self._oldest: datetime | None = None
        self._stop = threading.Event()
        self._late = 0.0
        self._seen = self._looked_at = self._beat
        self._renew_at = self._measure_at = 0.0
        self._has_dropped = threading.Event()
        self._has_dropped.set()
        self._is_registered = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="korak-lease", daemon=True)
        self._length = timedelta(seconds=lease)

    async def __aenter__(self) -> Lease:
        self._beating = asyncio.create_task(self._keep_beating())
        self._thread.start()
        try:
            await self._is_registered.wait()
        except asyncio.CancelledError:
            self._stop.set()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the row: what this engine still holds is taken over at once."""
        self._stop.set()
        await asyncio.to_thread(self._thread.join, 10)
        self._beating.cancel()

    async def _keep_beating(self) -> None:
        async def beat() -> None:
            self._beat = self._clock.monotonic()
            self._oldest = self._holder.get_oldest(self._clock.now())

        await run_every(asyncio.Event(), beat, lambda _: BEAT)

    # from here on: the thread

    def _run(self) -> None:
        asyncio.run(self._renew_always())

    async def _renew_always(self) -> None:
        async with self._make_database() as database:
            hot = Hot(database)
            while not self._stop.is_set():
                self._watch()
                if self._late >= self._block_limit:
                    await self._give_up(hot)
                try:
                    await self._do_what_is_due(hot)
                except TransientError as error:
                    log.warning("the lease can't be renewed now: %s", error.message)
                self._stop.wait(BEAT)
            await self._close(hot, "drained")

    async def _do_what_is_due(self, hot: Hot) -> None:
        async with hot.alone() as runner:
            if self._clock.monotonic() >= self._measure_at:
                await measure(runner, self._clock)
                self._measure_at = self._clock.monotonic() + CLOCK_EVERY
            if self._identity.is_open and self._clock.monotonic() >= self._renew_at:
                await self._renew(runner)
            elif not self._identity.is_open and self._has_dropped.is_set():
                await self._register(runner)

    async def _register(self, runner: Runner) -> None:
        now = self._clock.now()
        self._identity.engine_id = await engines.register(runner, self._announce(), now, self._length)
        self._identity.is_open = True
        self._renew_at = self._clock.monotonic() + self._seconds / 3
        self._loop.call_soon_threadsafe(self._is_registered.set)

    async def _renew(self, runner: Runner) -> None:
        now = self._clock.now()
        oldest = min(self._oldest or now, now) - timedelta(seconds=1)
        if await engines.renew(runner, self._identity.engine_id, now, self._length, oldest):
            self._renew_at = self._clock.monotonic() + self._seconds / 3
            return
        log.warning("engine %s was closed by others; it drops what it holds", self._identity.engine_id)
        self._identity.is_open = False
        self._has_dropped.clear()
        self._loop.call_soon_threadsafe(self._drop)

    def _drop(self) -> None:
        self._holder.on_closed()
        self._has_dropped.set()

    def _announce(self) -> engines.Announcement:
        return engines.Announcement(
            str(ULID()),
            socket.gethostname(),
            os.getpid(),
            version("korak"),
            sorted(self._identity.queues),
            self._holder.types,
        )

    def _watch(self) -> None:
        """Add up how late the loop is. A process that was stopped as a whole has not blocked its loop."""
        now = self._clock.monotonic()
        before = self._late
        self._late = 0.0 if self._beat != self._seen else self._late + min(now - self._looked_at, 2 * BEAT)
        self._seen, self._looked_at = self._beat, now
        for step in (LATE, BLOCKED * self._block_limit):
            if before < step <= self._late:
                frame = sys._current_frames().get(self._loop_thread)
                stack = "".join(traceback.format_stack(frame, limit=20)) if frame else ""
                types = ", ".join(self._holder.get_types())
                log.warning("the loop has been blocked for %.1f s, running %s\n%s", self._late, types, stack)
        self._holder.on_late(self._late)

    async def _give_up(self, hot: Hot) -> None:
        log.error("the loop has been blocked for %.0f s: this engine closes itself and exits", self._late)
        await self._close(hot, "blocked")
        os._exit(EXIT_BLOCKED)

    async def _close(self, hot: Hot, reason: str) -> None:
        try:
            async with hot.alone() as runner:
                await engines.close(runner, self._identity.engine_id, self._clock.now(), reason)
        except TransientError as error:
            log.warning("the engine's row can't be closed now: %s", error.message)
