"""Wakers for tests, each with connections of its own, whose time is passed in."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta

from korak.broker.notify import NotifyBroker
from korak.broker.port import Broker
from korak.clock import ManualClock
from korak.metrics import Metrics
from korak.store.channels import Channels
from korak.store.database import Database
from korak_waker.passing import Limits
from korak_waker.report import Report
from korak_waker.service import open_waker
from korak_waker.waker import Waker
from tests.support.flows import NOW, Flows


@dataclass
class Wakers:
    """Makes wakers, and makes passes with one of them."""

    stack: AsyncExitStack
    flows: Flows
    url: str
    metrics: Metrics
    broker: Broker
    waker: Waker | None = None

    @classmethod
    async def open(cls, stack: AsyncExitStack, flows: Flows, url: str, metrics: Metrics) -> Wakers:
        """On the Postgres broker."""
        channels = await stack.enter_async_context(Channels(url, "korak"))
        return cls(stack, flows, url, metrics, await stack.enter_async_context(NotifyBroker(channels)))

    async def make(self, *, batch: int = 500, clock: ManualClock | None = None) -> Waker:
        """Another waker."""
        database = await self.stack.enter_async_context(Database(self.url, "korak", name="waker under test"))
        return await self.stack.enter_async_context(
            open_waker(
                database,
                self.broker,
                policy=self.flows.policy,
                clock=clock or ManualClock(NOW),
                metrics=self.metrics,
                limits=Limits(batch),
            )
        )

    async def run(self, seconds: float = 0.0, *, may_reclaim: bool = True) -> Report:
        """One pass so many seconds after NOW."""
        if self.waker is None:
            self.waker = await self.make()
        return await self.waker.run_once(at(seconds), may_reclaim=may_reclaim)


def at(seconds: float) -> datetime:
    """So many seconds after NOW."""
    return NOW + timedelta(seconds=seconds)
