"""Named statements that are each a transaction of their own, on one held connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from korak.errors import TransientError
from korak.store.database import TRANSIENT, Database, Hot, Runner


class Single:
    """A `Runner` whose statements commit alone. Several may ask at once: they stand in line for the connection."""

    def __init__(self, database: Database) -> None:
        self._hot = Hot(database)
        self._busy = asyncio.Lock()

    async def fetch(self, name: str, /, **given: Any) -> list[asyncpg.Record]:
        """Run the statement of that name. TransientError where it failed for a reason that passes."""
        async with self._busy:
            try:
                return await self._hot.fetch(name, **given)
            except TRANSIENT as error:
                raise TransientError("unavailable", what="The database", why=str(error)) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Runner]:
        """Several statements that commit together."""
        async with self._busy, self._hot.transaction() as runner:
            yield runner

    async def close(self) -> None:
        """Let the connection go."""
        await self._hot.close()
