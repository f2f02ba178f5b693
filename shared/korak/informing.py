"""Telling, after a commit, whom it concerns: who waits for what has ended, and whom a run bids something.

What is lost here the waker finds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final, Self

from korak.bidding import Bidder
from korak.broker.messages import ResumeStep
from korak.broker.port import Broker
from korak.clock import Clock
from korak.core.changes import Changes
from korak.dispatch import Dispatcher
from korak.errors import TransientError
from korak.model import SignalKind
from korak.store import kin
from korak.store.database import Database
from korak.store.gates import Gate
from korak.store.kin import Told, Woken
from korak.store.loading import Loader
from korak.store.single import Single

log: logging.Logger = logging.getLogger(__name__)

GATHER: Final = 0.025
"""Seconds between two looks for who waits for runs that aren't its children; the first one is made at once."""

LAST: Final = 2.0
"""Seconds for what is still to be told when its process ends."""


class Informer:
    """An async context manager. It works beside its callers, on connections of its own; what comes is gathered."""

    def __init__(self, database: Database, broker: Broker, loader: Loader, gate: Gate, clock: Clock) -> None:
        self._runner = Single(database)
        self._broker = broker
        self._clock = clock
        self._bidder = Bidder(database, loader, Dispatcher(broker, gate, listener=self), clock)
        self._ended: list[str] = []
        self._awaited: list[int] = []
        self._waits: list[int] = []
        self._is_gathering = False
        self._is_leaving = False
        self._arrived = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(self._bidder.work()), asyncio.create_task(self._work())]
        return self

    async def __aexit__(self, *_: object) -> None:
        bidding, telling = self._tasks
        self._bidder.leave()
        await asyncio.wait({bidding}, timeout=LAST)
        self._is_leaving = True
        self._arrived.set()
        await asyncio.wait({telling}, timeout=LAST)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._bidder.close()
        await self._runner.close()

    def hear(self, batch: Iterable[Changes]) -> None:
        """These are committed."""
        for changes in batch:
            if changes.is_ended:
                self._awaited.append(changes.instance.id)
            if changes.outward is not None:
                self._read(changes)
        if self._ended or self._waits or (self._awaited and not self._is_gathering):
            self._arrived.set()

    def remind(self, instance_id: int) -> None:
        """What is addressed to a run lies there, committed, since somebody else held it: it is brought to it soon."""
        self._bidder.bid([instance_id])

    def _read(self, changes: Changes) -> None:
        outward = changes.outward
        if outward is None:
            return
        if outward.end is not None:
            self._ended.append(changes.instance.ulid)
        if outward.dependencies:
            self._waits.extend({each.wait.id for each in outward.dependencies})
        self._bidder.hear(outward)

    async def _work(self) -> None:
        while not self._is_leaving:
            await self._arrived.wait()
            self._arrived.clear()
            try:
                await self._tell()
            except TransientError as error:
                log.warning("who waits for other runs isn't told now: %s", error.message)
            except Exception:
                log.exception("who waits for other runs isn't told")

    async def _tell(self) -> None:
        ended, self._ended = self._ended, []
        waits, self._waits = self._waits, []
        awaited = self._take_awaited()
        now, is_sent = self._clock.now(), not self._broker.pulls
        told = Told()
        if ended:
            told.add(await kin.wake_parents(self._runner, ended, now, is_sent=is_sent))
        if waits or awaited:
            told.add(await kin.tell(self._runner, now, is_sent=is_sent, waits=waits, awaited=awaited))
        self._bidder.bid(sorted(told.missed))
        await self._nudge(told.woken)

    def _take_awaited(self) -> list[int]:
        """What has ended; nothing so soon after the last time, since hardly any of it is waited for."""
        if not self._awaited or (self._is_gathering and not self._is_leaving):
            return []
        awaited, self._awaited = self._awaited, []
        self._is_gathering = True
        asyncio.get_running_loop().call_later(GATHER, self._gathered)
        return awaited

    def _gathered(self) -> None:
        self._is_gathering = False
        if self._awaited:
            self._arrived.set()

    async def _nudge(self, woken: Iterable[Woken]) -> None:
        queues: dict[str, list[int]] = {}
        for each in woken:
            queues.setdefault(each.queue, []).append(each.step)
        for queue, steps in queues.items():
            await self._broker.send(queue, [ResumeStep(tuple((step, None, SignalKind.CHILD) for step in steps))])
