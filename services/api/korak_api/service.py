"""The API service: its composition root."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Final

import structlog

from korak.catalogue import load_registry
from korak.clock import Clock
from korak.commander import Commander
from korak.config import Settings
from korak.connecting import connect_broker, make_database
from korak.dispatch import Dispatcher
from korak.errors import TransientError
from korak.informing import Informer
from korak.loop import run_every
from korak.matching import Matcher
from korak.metrics import Metrics
from korak.policy import get_policy
from korak.service import Health
from korak.serving import listen, serve
from korak.store.clocks import measure
from korak.store.database import Session
from korak.store.gates import Gate
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak_api.app import make_app
from korak_api.credentials import Credentials, Identifying
from korak_api.feeds import Feeds
from korak_api.importer import Importer
from korak_api.resources import Ground, Resources, get_graph_limits
from korak_api.spooling import Spools
from korak_api.starting import Starts
from korak_api.waiting import Waiter

CHECK: Final = 30.0
"""Seconds between two measurements of the database's clock."""

RECHECK: Final = 1.0
"""The same while the database can't be reached."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def run(stop: asyncio.Event, settings: Settings) -> None:
    """Answer HTTP until `stop` is set."""
    if stop.is_set():
        return
    registry = load_registry(settings)
    metrics, health, clock = Metrics(settings.metrics.directory), Health(), Clock()
    async with AsyncExitStack() as stack:
        stack.callback(metrics.close)
        listener = listen(settings.api.host, settings.api.port, setting="KORAK_API__PORT")
        stack.callback(listener.close)
        database = await stack.enter_async_context(make_database(settings, "api"))
        broker = await connect_broker(stack, settings, metrics)
        ground = Ground(settings, database, broker, registry, clock, metrics, health)
        resources = await connect(stack, ground, stop)
        watching = asyncio.create_task(watch(stop, resources))
        try:
            host, port = listener.getsockname()[:2]
            log.info("listening", host=host, port=port)
            await serve(stop, make_app(resources), listener)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def connect(
    stack: AsyncExitStack, ground: Ground, stop: asyncio.Event, *, credentials: Identifying | None = None
) -> Resources:
    """Everything that calls use, on a database and a broker that are there."""
    settings, database, clock = ground.settings, ground.database, ground.clock
    plans = Plans()
    gate = Gate(database)
    loader = Loader(plans, get_policy(settings))
    informer = await stack.enter_async_context(Informer(database, ground.broker, loader, gate, clock))
    dispatcher = Dispatcher(ground.broker, gate, listener=informer)
    commander = await stack.enter_async_context(Commander(database, loader, dispatcher, clock))
    starts = Starts(settings, database, plans, dispatcher=dispatcher, clock=clock, metrics=ground.metrics)
    waiter = Waiter(database, ground.broker, stop)
    return Resources(
        settings=settings,
        clock=clock,
        database=database,
        catalogue=ground.catalogue,
        limits=get_graph_limits(settings),
        plans=plans,
        metrics=ground.metrics,
        health=ground.health,
        credentials=credentials or Credentials(database, clock),
        starts=await stack.enter_async_context(starts),
        opener=starts.opener,
        importer=Importer(database, plans, get_policy(settings)),
        spools=Spools(settings.api.max_copy),
        commander=commander,
        informer=informer,
        matcher=Matcher(database, ground.broker, gate),
        waiter=await stack.enter_async_context(waiter),
        feeds=Feeds(database, waiter, clock, plans),
    )


async def watch(stop: asyncio.Event, resources: Resources) -> None:
    """Keep the clock right, and tell whether the database can be reached."""

    async def look() -> float:
        try:
            async with resources.database.acquire() as connection:
                await measure(Session(connection), resources.clock)
        except TransientError as error:
            resources.health.mark("database", error.message)
            resources.health.mark("service")
            return RECHECK
        resources.health.mark("database")
        resources.health.mark("service")
        return CHECK

    def fail(error: Exception) -> None:
        resources.health.mark("database", str(error))
        resources.health.mark("service")

    await run_every(stop, look, lambda pause: pause, on_error=fail)
