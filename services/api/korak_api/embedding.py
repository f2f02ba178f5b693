"""The API inside another process, on its database: a client that needs no address, no token and no server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import httpx

from korak import surveying
from korak.catalogue import load_registry
from korak.client import AsyncKorak
from korak.clock import Clock
from korak.config import Settings, load_settings
from korak.connecting import connect_broker, make_database
from korak.metrics import Metrics
from korak.model import OwnerRole
from korak.owners.scopes import parse_owner
from korak.owners.tokens import Credential
from korak.service import Health
from korak.store.clocks import measure
from korak.store.database import Database, Session
from korak_api.app import make_app
from korak_api.resources import Ground
from korak_api.service import connect, watch

URL: Final = "http://korak.inside"
WHO: Final = "in process"


class Insider:
    """Who asks is this process itself."""

    def __init__(self, owner: str) -> None:
        self._credential = Credential.for_owner(parse_owner(owner), frozenset({OwnerRole.ADMIN}), name=WHO)

    async def identify(self, header: str | None) -> Credential:
        """The one there is."""
        return self._credential

    def forget(self) -> None:
        """There is no token that could have been revoked."""


@asynccontextmanager
async def embed(
    settings: Settings | None = None, *, owner: str = "*", database: Database | None = None
) -> AsyncIterator[AsyncKorak]:
    """A client of the API in this process. It may all that an admin of `owner` may (`*`: the application).

    Without `settings` they are the environment's; `database` is a pool that is open already, else one is opened. Chains
    are published from here too, so `settings` name the modules of their handlers (KORAK_STEPS, KORAK_CHAINS). Raises
    SchemaOlder where the database wasn't migrated.
    """
    given = load_settings(os.environ) if settings is None else settings
    stop, clock, metrics = asyncio.Event(), Clock(), Metrics()
    async with AsyncExitStack() as stack:
        if database is None:
            database = await stack.enter_async_context(make_database(given, "embedded"))
        await surveying.require(database)
        broker = await connect_broker(stack, given, metrics)
        async with database.acquire() as connection:
            await measure(Session(connection), clock)
        ground = Ground(given, database, broker, load_registry(given), clock, metrics, Health())
        resources = await connect(stack, ground, stop, credentials=Insider(owner))
        watching = asyncio.create_task(watch(stop, resources))
        stack.callback(watching.cancel)
        stack.callback(stop.set)
        transport = httpx.ASGITransport(make_app(resources))
        yield await stack.enter_async_context(AsyncKorak(URL, WHO, transport=transport))
