"""The escalator service: takes the messages about escalations, of which there are none yet."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import structlog

from korak.broker.messages import FireEscalation
from korak.broker.port import Consumer
from korak.config import Settings
from korak.connecting import connect_broker
from korak.metrics import Metrics
from korak.service import Health
from korak.serving import serve_health

PREFETCH = 32

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def run(stop: asyncio.Event, settings: Settings) -> None:
    """Take escalations until `stop` is set, then give back what wasn't taken."""
    if stop.is_set():
        return
    health, metrics = Health(), Metrics(settings.metrics.directory)
    async with AsyncExitStack() as stack:
        broker = await connect_broker(stack, settings, metrics)
        consumer = broker.escalations(PREFETCH)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(serve_health(stop, settings.health, health, metrics))
            tasks.create_task(consume(consumer))
            health.mark("service")
            await stop.wait()
            health.mark("service", "stopping")
            await consumer.stop()


async def consume(consumer: Consumer) -> None:
    """Ack what comes, until the consumer stops: no table holds escalations yet, so a message means nothing."""
    while deliveries := await consumer.get(PREFETCH):
        for delivery in deliveries:
            message = delivery.message
            ids = message.escalations if isinstance(message, FireEscalation) else ()
            log.warning("escalations_unknown", escalations=ids)
            await delivery.ack()
