"""Imported instances: written whole, and their ready steps nudged for."""

from __future__ import annotations

from korak.core.changes import Changes
from korak.dispatch import Dispatcher
from korak.store import copies
from korak.store.database import Database
from korak.store.sealing import Ids

BLOCK = 500
"""Ids that are taken at once."""


class Importer:
    """Writes what the core has read from documents. One a process."""

    def __init__(self, database: Database, dispatcher: Dispatcher) -> None:
        self._database = database
        self._dispatcher = dispatcher

    async def write(self, changes: Changes) -> None:
        """Write one. Raises Invalid where the database refuses a row of it; then nothing is stored."""
        await copies.write(self._database, changes, Ids(BLOCK), self._dispatcher)
        await self._dispatcher.send([changes])
