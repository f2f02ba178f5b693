"""A service runs on a schema that it knows: looked at as soon as the database answers, and told in one line."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

import korak_migrations
from korak.config import Settings
from korak.errors import SchemaError, SchemaOlder
from korak.loop import wait
from korak.service import Service
from korak.store import checking
from korak.store.database import Database

FIRST: Final = 2.0
"""Seconds that the first look may take before the service begins: each waits by itself for a database to come back."""

AGAIN: Final = 1.0
"""Seconds until the next look where the database couldn't be asked."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


async def serve(stop: asyncio.Event, settings: Settings, service: Service) -> None:
    """Run a service until `stop` is set. Raises SchemaOlder; on a newer schema it goes on, and says so in the log."""
    looking = asyncio.create_task(_look(stop, settings))
    try:
        await asyncio.wait({looking}, timeout=FIRST)
        if not looking.done():
            looking.add_done_callback(lambda _: stop.set() if _get_error(looking) else None)
        if _get_error(looking) is None:
            await service(stop, settings)
        if error := _get_error(looking):
            raise error
    finally:
        looking.cancel()


async def require(database: Database) -> None:
    """Refuse to work on an older schema. Raises SchemaOlder, and TransientError where the database doesn't answer."""
    fault = await find_fault(database)
    if isinstance(fault, SchemaOlder):
        raise fault


async def find_fault(database: Database) -> SchemaError | None:
    """What is to be said of the database's schema. Raises TransientError where it can't be asked."""
    async with database.acquire() as connection:
        found = await checking.get_revision(connection)
    return await asyncio.to_thread(korak_migrations.compare, found, database.schema)


async def _look(stop: asyncio.Event, settings: Settings) -> None:
    group = settings.database
    if not group.url:
        return  # the service says what is to be set
    async with Database(group.url, group.schema, pool=1, timeout=FIRST, name="korak start") as database:
        while not stop.is_set():
            try:
                fault = await find_fault(database)
            except Exception:  # whatever it is, the service meets it too and tells of it
                await wait(AGAIN, stop)
                continue
            if isinstance(fault, SchemaOlder):
                raise fault
            if fault is not None:
                log.warning(fault.code, **fault.params)
            return


def _get_error(looking: asyncio.Task[None]) -> BaseException | None:
    return looking.exception() if looking.done() and not looking.cancelled() else None
