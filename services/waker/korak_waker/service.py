"""The waker service: its composition root, its loops, and one pass by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from korak.answering import Answerer
from korak.broker.port import Broker
from korak.clock import Clock
from korak.config import Settings
from korak.connecting import connect_broker
from korak.core.snapshot import Policy
from korak.dispatch import Dispatcher
from korak.informing import Informer
from korak.matching import Matcher
from korak.metrics import Metrics
from korak.policy import get_policy
from korak.releasing import Releaser
from korak.service import Health
from korak.serving import serve_health
from korak.starting import Opener
from korak.store.database import Database, Hot
from korak.store.gates import Gate
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.single import Single
from korak.store.starts import Starter
from korak.store.transacting import Transactor
from korak_waker.inbox import Inbox
from korak_waker.looping import Loops
from korak_waker.passing import Limits, Tools
from korak_waker.report import Report
from korak_waker.waker import Waker

BLOCK = 200
"""Ids that are taken at once for what the inbox starts."""


async def run(stop: asyncio.Event, settings: Settings) -> None:
    """Wake what is due until `stop` is set; a pass that has begun is finished."""
    if stop.is_set():
        return
    health, metrics = Health(), Metrics(settings.metrics.directory)
    async with AsyncExitStack() as stack:
        loops = await _open(stack, settings, metrics, health)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve_health(stop, settings.health, health, metrics))
            for loop in loops.list_all(stop):
                tasks.create_task(loop)
            health.mark("service")
            await stop.wait()
            health.mark("service", "stopping")


async def wake_once(settings: Settings) -> Report:
    """One pass now (WK-5), as `korak wake` makes it. Who asks for it by hand also takes expired leases over."""
    async with AsyncExitStack() as stack:
        loops = await _open(stack, settings, Metrics(), Health())
        await loops.measure()
        return await loops.waker.run_once(loops.clock.now(), may_reclaim=True)


async def _open(stack: AsyncExitStack, settings: Settings, metrics: Metrics, health: Health) -> Loops:
    group = settings.database
    database = Database(
        group.require_url(), group.schema, pool=group.pool, timeout=settings.wake.timeout, name="korak waker"
    )
    await stack.enter_async_context(database)
    broker = await connect_broker(stack, settings, metrics)
    clock, engine = Clock(), settings.engine
    limits = Limits(
        settings.wake.batch,
        engine.requeue_after,
        engine.lease,
        engine.grace,
        starts=settings.limits.max_starts_per_minute,
        key_ttl=settings.idempotency.ttl,
        event_ttl=settings.events.ttl,
    )
    waker = await stack.enter_async_context(
        open_waker(database, broker, policy=get_policy(settings), clock=clock, metrics=metrics, limits=limits)
    )
    releaser, runner = Releaser(database, broker, limits.batch), Single(database)
    stack.push_async_callback(releaser.close)
    stack.push_async_callback(runner.close)
    return Loops(waker, releaser, runner, broker, clock, metrics, health, settings.wake.interval)


@asynccontextmanager
async def open_waker(
    database: Database, broker: Broker, *, policy: Policy, clock: Clock, metrics: Metrics, limits: Limits
) -> AsyncIterator[Waker]:
    """A waker on its own connections."""
    runner, hot, starting = Single(database), Hot(database), Hot(database)
    gate = Gate(database)
    plans = Plans()
    loader = Loader(plans, policy)
    informer = Informer(database, broker, loader, gate, clock)
    dispatcher, matcher = Dispatcher(broker, gate, listener=informer), Matcher(database, broker, gate)
    answerer = Answerer(Transactor(hot, loader, Ids(), dispatcher), dispatcher)
    opener = Opener(Starter(policy, Ids(BLOCK), limits.key_ttl, dispatcher), plans, limits.starts)
    inbox = Inbox(starting, opener, dispatcher, matcher, ttl=limits.event_ttl, size=limits.batch)
    releaser = Releaser(database, broker, limits.batch)
    try:
        tools = Tools(runner, hot, answerer, dispatcher, matcher, broker, metrics, limits)
        async with informer:
            yield Waker(tools, releaser, inbox, clock, lambda: database.losses)
    finally:
        await runner.close()
        await starting.close()
        await hot.close()
        await releaser.close()
