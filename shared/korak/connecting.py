"""Connecting a service to what the settings name: its database and its broker."""

from __future__ import annotations

from contextlib import AsyncExitStack

from korak.broker.opening import open_broker
from korak.broker.port import Broker, Puller
from korak.config import Settings
from korak.store.channels import Channels
from korak.store.database import Database


def make_database(settings: Settings, name: str) -> Database:
    """The database, not entered yet. Raises SettingsError where none is set."""
    group = settings.database
    return Database(group.require_url(), group.schema, pool=group.pool, name=f"korak {name}")


async def connect_broker(stack: AsyncExitStack, settings: Settings, *, puller: Puller | None = None) -> Broker:
    """RabbitMQ where its address is set, else the Postgres broker; `puller` where steps are consumed."""
    if settings.broker.url is not None:
        return await stack.enter_async_context(open_broker(settings.broker.url))
    channels = Channels(settings.database.require_url(), settings.database.schema)
    notifier = await stack.enter_async_context(channels)
    return await stack.enter_async_context(open_broker(None, notifier=notifier, puller=puller))
