"""Telling, after a commit, those who wait for what has ended. What is lost here the waker finds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, Self

from korak.broker.messages import ResumeStep
from korak.broker.port import Broker
from korak.clock import Clock
from korak.core.changes import Changes
from korak.errors import TransientError
from korak.loop import wait
from korak.model import SignalKind
from korak.store import kin
from korak.store.database import Database
from korak.store.kin import Woken
from korak.store.single import Single

log: logging.Logger = logging.getLogger(__name__)

FRESH: Final = 1.0
"""Seconds for which it is believed that nobody waits for runs that aren't its children."""


class Informer:
    """An async context manager. It works beside its callers, on a connection of its own; what comes is gathered."""

    def __init__(self, database: Database, broker: Broker, clock: Clock) -> None:
        self._runner = Single(database)
        self._broker = broker
        self._clock = clock
        self._ended: list[str] = []
        self._awaited: list[int] = []
        self._waits: list[int] = []
        self._is_any = False
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._runner.close()

    def hear(self, batch: Iterable[Changes]) -> None:
        """These are committed."""
        for changes in batch:
            if changes.is_ended and self._is_any:
                self._awaited.append(changes.instance.id)
            if changes.outward is not None:
                self._read(changes)
        if self._ended or self._waits or self._awaited:
            self._arrived.set()

    def _read(self, changes: Changes) -> None:
        outward = changes.outward
        if outward is not None and outward.end is not None:
            self._ended.append(changes.instance.ulid)
        if outward is not None and outward.dependencies:
            self._waits.extend({each.wait.id for each in outward.dependencies})
            self._is_any = True

    async def _work(self) -> None:
        looked_at = self._clock.monotonic() - FRESH
        while True:
            try:
                if self._clock.monotonic() - looked_at >= FRESH:
                    self._is_any = await kin.is_any_waiting(self._runner)
                    looked_at = self._clock.monotonic()
                await self._tell()
            except TransientError as error:
                log.warning("who waits for other runs isn't told now: %s", error.message)
            except Exception:
                log.exception("who waits for other runs isn't told")
            await wait(FRESH, self._arrived)

    async def _tell(self) -> None:
        self._arrived.clear()
        ended, self._ended = self._ended, []
        waits, self._waits = self._waits, []
        awaited, self._awaited = self._awaited, []
        now, is_sent = self._clock.now(), not self._broker.pulls
        woken: list[Woken] = []
        if ended:
            woken += await kin.wake_parents(self._runner, ended, now, is_sent=is_sent)
        if waits:
            woken += await kin.look(self._runner, waits, now, is_sent=is_sent)
        if awaited:
            woken += await kin.tell_waiters(self._runner, awaited, now, is_sent=is_sent)
        await self._nudge(woken)

    async def _nudge(self, woken: Iterable[Woken]) -> None:
        queues: dict[str, list[int]] = {}
        for each in woken:
            queues.setdefault(each.queue, []).append(each.step)
        for queue, steps in queues.items():
            await self._broker.send(queue, [ResumeStep(tuple((step, None, SignalKind.CHILD) for step in steps))])
