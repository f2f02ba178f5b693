"""One instance with everything below it, read in one look of the database; and an imported one, written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

import asyncpg
from sqlalchemy import BigInteger, String, Table, select

from korak.core.changes import Changes
from korak.core.exporting import Contents
from korak.core.rows import Artifact, Delivery, Event, Failure, Instance, Scope, StepRun, Wait, get_columns
from korak.errors import Invalid, Issue
from korak.store.applying import apply
from korak.store.database import Connection, Database, Session, is_data_fault
from korak.store.querying import Query, parameter
from korak.store.rows import read
from korak.store.sealing import Ids, seal
from korak.store.tables import (
    workflow_artifacts,
    workflow_definitions,
    workflow_events,
    workflow_failures,
    workflow_instances,
    workflow_scopes,
    workflow_signals,
    workflow_step_runs,
    workflow_versions,
    workflow_waits,
)
from korak.store.transacting import Stamper

Row = TypeVar("Row")

_ID = parameter("id", BigInteger())
_INSTANCE = Query(
    select(*(workflow_instances.c[name] for name in get_columns(Instance))).where(
        workflow_instances.c.ulid == parameter("ulid", String()),
        workflow_instances.c.owner_scope == parameter("owner", String()),
    )
)
_VERSION = Query(
    select(
        workflow_definitions.c.key,
        workflow_versions.c.number,
        workflow_versions.c.label,
        workflow_versions.c.checksum,
        workflow_versions.c.graph,
        workflow_versions.c.contracts,
    )
    .join(workflow_definitions, workflow_definitions.c.id == workflow_versions.c.definition_id)
    .where(workflow_versions.c.id == _ID)
)


def _below(table: Table, row: type[Any], *order: str) -> Query:
    columns = [table.c[name] for name in get_columns(row) if name in table.c]
    return Query(select(*columns).where(table.c.instance_id == _ID).order_by(*(table.c[name] for name in order)))


_STEPS = _below(workflow_step_runs, StepRun, "created_at", "id")
_SCOPES = _below(workflow_scopes, Scope, "created_at", "step_run_id", "item_index")
_WAITS = _below(workflow_waits, Wait, "created_at", "id")
_SIGNALS = _below(workflow_signals, Delivery, "id")
_EVENTS = _below(workflow_events, Event, "seq")
_FAILURES = _below(workflow_failures, Failure, "id")
_ARTIFACTS = _below(workflow_artifacts, Artifact, "key")


async def load(database: Database, owner_scope: str, ulid: str) -> tuple[Contents, asyncpg.Record] | None:
    """The owner's instance as it stood at one moment, and the version that it runs; None where there is none."""
    async with database.acquire() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        row = await _INSTANCE.fetch_one(connection, ulid=ulid, owner=owner_scope)
        if row is None:
            return None
        version = await _VERSION.fetch_one(connection, id=row["version_id"])
        assert version is not None, "winst_version_fk"
        return await _load(connection, read(Instance, row)), version


async def _load(connection: Connection, instance: Instance) -> Contents:
    async def list_rows(query: Query, row: type[Row]) -> list[Row]:
        return [read(row, each) for each in await query.fetch(connection, id=instance.id)]

    return Contents(
        instance,
        await list_rows(_STEPS, StepRun),
        await list_rows(_SCOPES, Scope),
        await list_rows(_WAITS, Wait),
        await list_rows(_SIGNALS, Delivery),
        await list_rows(_EVENTS, Event),
        await list_rows(_FAILURES, Failure),
        await list_rows(_ARTIFACTS, Artifact),
    )


REFUSED: Final[Mapping[str, str]] = {
    "22001": "a text is too long",
    "22003": "a number is too large",
    "23502": "something is missing",
    "23505": "something that may be there once stands in it twice",
}
"""What the database's refusals mean, by SQLSTATE: its own words tell of tables, and may hold values."""


async def write(database: Database, changes: Changes, ids: Ids, stamper: Stamper) -> None:
    """Write an imported instance whole. Raises Invalid("invalid_export") where the database refuses a row of it."""
    batch: Sequence[Changes] = [changes]
    try:
        async with database.transaction() as connection:
            runner = Session(connection)
            await stamper.prepare(batch)
            await ids.reserve(runner, batch)
            seal(changes, ids)
            stamper.stamp(changes)
            await apply(runner, batch)
    except Exception as error:
        if not is_data_fault(error):
            raise
        detail = REFUSED.get(str(getattr(error, "sqlstate", None))[:5], "a value doesn't fit where it stands")
        issue = Issue("invalid_export", "", {"detail": detail})
        raise Invalid("invalid_export", issues=[issue], detail=detail) from error
