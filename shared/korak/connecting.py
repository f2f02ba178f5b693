"""Connecting a service to what the settings name: its database and its broker."""

from __future__ import annotations

from contextlib import AsyncExitStack

from korak.broker.counting import CountingBroker
from korak.broker.opening import open_broker
from korak.broker.port import Broker, Puller
from korak.config import Settings
from korak.metrics import Metrics
from korak.store.channels import Channels
from korak.store.database import Database


def make_database(settings: Settings, name: str) -> Database:
    """The database, not entered yet. Raises SettingsError where none is set."""
    group = settings.database
    return Database(group.require_url(), group.schema, pool=group.pool, name=f"korak {name}")


async def connect_broker(
    stack: AsyncExitStack, settings: Settings, metrics: Metrics, *, puller: Puller | None = None
) -> Broker:
    """RabbitMQ where its address is set, else the Postgres broker; `puller` where steps are consumed."""

    def count(queue: str, way: str, messages: int) -> None:
        metrics.messages.labels(queue, way).inc(messages)

    if settings.broker.url is not None:
        return await stack.enter_async_context(CountingBroker(open_broker(settings.broker.url), count))
    channels = Channels(settings.database.require_url(), settings.database.schema)
    notifier = await stack.enter_async_context(channels)
    broker = open_broker(None, notifier=notifier, puller=puller)
    return await stack.enter_async_context(CountingBroker(broker, count))
