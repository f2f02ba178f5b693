"""The database of the commands that work on it: the one that is set, else the one that `korak dev` runs here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from korak.client.finding import find_left
from korak.commands.running import read_settings
from korak.config import Settings
from korak.errors import SettingsError

if TYPE_CHECKING:
    from korak.store.database import Database

T = TypeVar("T")


def read_database_settings(steps: str | None = None) -> Settings:
    """The settings, with the database of a `korak dev` here where none is set. Raises SettingsError."""
    settings = read_settings(steps)
    if settings.database.url:
        return settings
    left = find_left("database.json")
    if "url" not in left:
        raise SettingsError(message="Which database? Set KORAK_DATABASE__URL, or run korak dev in this directory.")
    given = replace(settings.database, url=left["url"], effect_url=left.get("effect_url"))
    return settings.model_copy(update={"database": given})


def with_database(settings: Settings, work: Callable[[Database], Awaitable[T]]) -> T:
    """What `work` gives, which has the database to itself until then. Raises SchemaOlder, TransientError."""
    from korak import surveying
    from korak.store.database import Database

    async def run() -> T:
        async with Database(settings.database.url, settings.database.schema, pool=2, name="korak command") as database:
            await surveying.require(database)
            return await work(database)

    return asyncio.run(run())
