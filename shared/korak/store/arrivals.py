"""An imported run, written page by page in one transaction: all of it, or nothing."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from korak.core import exporting
from korak.core.exporting import Kind
from korak.core.opening import Version
from korak.core.rows import Event, Instance
from korak.errors import Conflict, Invalid, Issue
from korak.store import runs
from korak.store.applying import list_shapes
from korak.store.database import Database, Session, is_data_fault
from korak.store.plans import Plans
from korak.store.sealing import TABLES
from korak.store.statements import get_statement

STATEMENTS: Final[Mapping[Kind, tuple[str, str]]] = {
    exporting.WAITS: ("waits_open", "wait"),
    exporting.SCOPES: ("scopes_add", "scope"),
    exporting.STEPS: ("copies_steps", "step"),
    exporting.SIGNALS: ("copies_signals", "signal"),
    exporting.EVENTS: ("copies_events", "event"),
    exporting.FAILURES: ("failures_keep", "failure"),
    exporting.COMPENSATIONS: ("compensations_keep", "compensation"),
    exporting.ARTIFACTS: ("copies_artifacts", "artifact"),
    exporting.CHUNKS: ("copies_chunks", "chunk"),
    exporting.EFFECTS: ("copies_effects", "effect"),
}
"""The statement that writes each kind of row, and what it calls them."""

BLOCK: Final = 1_000
"""Row ids that are taken at once."""

REFUSED: Final[Mapping[str, str]] = {
    "22001": "a text is too long",
    "22003": "a number is too large",
    "23502": "something is missing",
    "23505": "something that may be there once stands in it twice",
    "54000": "a value is too large",
}
"""What the database's refusals mean, by SQLSTATE: its own words tell of tables, and may hold values."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The digest of a document with its owner, and what it is to become."""

    key: str
    definition_id: int
    ulid: str
    now: datetime


class Landing:
    """Writes the rows of one import. `take` gives row ids, of which `stock` has seen to it that there are some."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._free: dict[str, deque[int]] = {table: deque() for table in TABLES}
        self.instance_id: int = 0

    async def begin(self) -> None:
        """Take the instance's row id."""
        [row] = await self._session.fetch("ids_take", table="workflow_instances", count=1)
        self.instance_id = row["id"]

    async def stock(self, count: int) -> None:
        """Have so many ids of each kind of row, in the order in which they are taken."""
        for table, free in self._free.items():
            if len(free) < count and table != "workflow_instances":
                rows = await self._session.fetch("ids_take", table=table, count=max(count, BLOCK))
                free.extend(row["id"] for row in rows)

    def take(self, table: str) -> int:
        """The next row id of a table."""
        return self._free[table].popleft()

    async def is_free(self, ulid: str) -> bool:
        """Whether no instance has that ULID."""
        return not await self._session.fetch("ulids_find", ulid=ulid)

    async def claim(self, claim: Claim) -> str | None:
        """Claim the document; the ULID of the instance that it has made before, if it has."""
        given = {"key": claim.key, "definition_id": claim.definition_id, "ulid": claim.ulid, "now": claim.now}
        if await self._session.fetch("copies_claim", instance_id=self.instance_id, **given):
            return None
        [row] = await self._session.fetch("copies_find", key=claim.key)
        return str(row["instance_ulid"])

    async def write(self, kind: Kind, rows: list[Any]) -> None:
        """Write a page of rows of one kind."""
        name, group = STATEMENTS[kind]
        shape = {"shape": list_shapes(rows)} if kind is exporting.WAITS else {}
        read = get_statement(name).groups[group].read
        await self._session.fetch(name, **{group: [read(row) for row in rows]}, **shape)

    async def settle(self, instance: Instance, event: Event, *, parent: str | None, parent_step: str | None) -> None:
        """Write the instance itself, and the line that tells of its import."""
        await self.write(exporting.EVENTS, [event])
        for name in ("instances_start", "instances_change"):
            read = get_statement(name).groups["instance"].read
            await self._session.fetch(name, instance=[read(instance)])
        if parent is not None:
            given = {"parent": parent, "step": parent_step, "owner": instance.owner_scope, "id": instance.id}
            await self._session.fetch("copies_join", **given)


@asynccontextmanager
async def land(database: Database) -> AsyncIterator[Landing]:
    """The transaction of one import. Raises Invalid("invalid_export") where the database refuses a row, Conflict where
    the run's own id is another's.
    """
    try:
        async with database.transaction() as connection:
            landing = Landing(Session(connection))
            await landing.begin()
            yield landing
    except Exception as error:
        if runs.is_taken(error):
            raise Conflict("id_taken") from error
        if not is_data_fault(error):
            raise
        detail = REFUSED.get(str(getattr(error, "sqlstate", None))[:5], "a value doesn't fit where it stands")
        issue = Issue("invalid_export", "", {"detail": detail})
        raise Invalid("invalid_export", issues=[issue], detail=detail) from error


async def find_version(database: Database, plans: Plans, owner_scope: str, key: str, checksum: str) -> Version:
    """The version with that checksum. Raises Conflict("version_missing")."""
    async with database.acquire() as connection:
        session = Session(connection)
        rows = await session.fetch("starts_resolve", wanted=[(0, owner_scope, key, None, checksum)])
        if not rows or rows[0]["version_id"] is None:
            raise Conflict("version_missing", key=key, checksum=checksum)
        [row] = rows
        found = await plans.get(session, [row["version_id"]])
    return Version(row["definition_id"], row["version_id"], row["checksum"], found[row["version_id"]])
