"""What a waker does again and again: passes, releases, and measuring the database's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

from korak.broker.port import Broker
from korak.clock import Clock
from korak.errors import TransientError
from korak.loop import Backoff, run_every, wait
from korak.metrics import Metrics
from korak.releasing import Releaser
from korak.service import Health
from korak.store.clocks import measure
from korak.store.database import Runner
from korak_waker.waker import Waker

CLOCK = 30.0
"""Seconds between two measurements of the database's clock."""

BUSY, IDLE = 0.04, 0.1
"""Seconds between two looks for room in the queues: while something waits to be sent, and while nothing does."""

INBOX = 0.2
"""Seconds between two looks into the inbox."""

SHORTEST = 0.02
"""Seconds between two passes at the least."""

BACKOFF = Backoff(most=2.0)


@dataclass(eq=False)
class Loops:
    """The loops of one waker. `runner` is theirs alone; `interval` is the longest pause between two passes."""

    waker: Waker
    releaser: Releaser
    runner: Runner
    broker: Broker
    clock: Clock
    metrics: Metrics
    health: Health
    interval: float
    _is_measured: asyncio.Event = field(default_factory=asyncio.Event)

    def list_all(self, stop: asyncio.Event) -> Iterator[Coroutine[Any, Any, None]]:
        """The loops, each until `stop` is set."""
        yield self._measure(stop)
        yield self._wake(stop)
        yield self._begin(stop)
        if not self.broker.pulls:
            yield self._release(stop)

    async def measure(self) -> None:
        """Correct the clock to the database's. TransientError where it can't be asked."""
        await measure(self.runner, self.clock)
        self._is_measured.set()

    async def _measure(self, stop: asyncio.Event) -> None:
        await run_every(stop, self.measure, lambda _: CLOCK, backoff=BACKOFF)

    async def _wake(self, stop: asyncio.Event) -> None:
        await wait(None, self._is_measured, stop)
        await run_every(stop, self._pass, lambda pause: pause, backoff=BACKOFF, on_error=self._count("wake"))

    async def _begin(self, stop: asyncio.Event) -> None:
        async def begin() -> None:
            begun = await self.waker.inbox.run_once(self.clock.now())
            if begun:
                self.metrics.wake_handled.labels("inbox").inc(begun)

        await wait(None, self._is_measured, stop)
        await run_every(stop, begin, lambda _: INBOX, backoff=BACKOFF, on_error=self._count("inbox"))

    async def _release(self, stop: asyncio.Event) -> None:
        async def release() -> None:
            sent = await self.releaser.run_once(self.clock.now())
            if sent:
                self.metrics.wake_handled.labels("released").inc(sent)

        await wait(None, self._is_measured, stop)
        await run_every(
            stop,
            release,
            lambda _: BUSY if self.releaser.has_backlog else IDLE,
            backoff=BACKOFF,
            on_error=self._count("release"),
        )

    async def _pass(self) -> float:
        """One pass; the pause after it: until something is due, or the interval if that is sooner."""
        now = self.clock.now()
        report = await self.waker.run_once(now)
        self.health.mark("database", "a pass was interrupted" if report.interrupted else None)
        self.health.mark("broker", None if self.broker.is_connected else "not connected")
        try:
            due_at = await self.waker.get_next_due(now)
        except TransientError:
            due_at = None
        if due_at is None:
            return self.interval
        return min(self.interval, max(SHORTEST, (due_at - self.clock.now()).total_seconds()))

    def _count(self, duty: str) -> Any:
        return lambda _: self.metrics.loop_errors.labels(duty).inc()
