"""One instance with everything below it, read page by page in one look of the database, as lines."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any, Final

import orjson
from sqlalchemy import BigInteger, ColumnElement, String, Table, and_, select

from korak.core import exporting
from korak.core.exporting import Kind, Writer, write_end, write_head
from korak.core.rows import Instance, get_columns
from korak.errors import Conflict, NotFound
from korak.graphs.hygiene import canonical
from korak.model import JsonObject
from korak.store.database import Connection, Database, Session
from korak.store.querying import Query, parameter
from korak.store.rows import read
from korak.store.tables import (
    workflow_artifacts,
    workflow_chunks,
    workflow_compensations,
    workflow_definitions,
    workflow_events,
    workflow_failures,
    workflow_idempotency_keys,
    workflow_instances,
    workflow_scopes,
    workflow_signals,
    workflow_step_runs,
    workflow_versions,
    workflow_waits,
)

PAGE: Final = 16
"""Rows that are in memory at a time: each may hold a state, which is a megabyte at most."""

FEW: Final = 4
"""The same for rows that may be larger."""

BYTES: Final = 256 << 10
"""After how many of them lines are handed on."""

VERSION: Final = ("key", "number", "label", "checksum", "graph")

_ID = parameter("id", BigInteger())
_PARENT = workflow_instances.alias()
_PARENT_STEP = workflow_step_runs.alias()
_INSTANCE = Query(
    select(
        *(workflow_instances.c[name] for name in get_columns(Instance)),
        _PARENT.c.ulid.label("parent"),
        _PARENT_STEP.c.ulid.label("parent_step"),
    )
    .outerjoin(_PARENT, _PARENT.c.id == workflow_instances.c.parent_instance_id)
    .outerjoin(_PARENT_STEP, _PARENT_STEP.c.id == workflow_instances.c.parent_step_run_id)
    .where(
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


def _below(table: Table, kind: Kind, *order: ColumnElement[Any], only: ColumnElement[bool] | None = None) -> Query:
    columns = [table.c[name] for name in get_columns(kind.row) if name in table.c]
    found = select(*columns).where(table.c.instance_id == _ID).order_by(*order)
    return Query(found if only is None else found.where(only))


_STEPS, _SCOPES, _KEYS = workflow_step_runs.c, workflow_scopes.c, workflow_idempotency_keys.c
_ORDER = (_SCOPES.created_at, _SCOPES.id)
_NAMES = Query(select(_STEPS.id, _STEPS.ulid).where(_STEPS.instance_id == _ID))
_NUMBERS = Query(select(_SCOPES.id).where(_SCOPES.instance_id == _ID).order_by(*_ORDER))
_ROWS: Final[Mapping[Kind, Query]] = {
    exporting.WAITS: _below(workflow_waits, exporting.WAITS, workflow_waits.c.created_at, workflow_waits.c.id),
    exporting.SCOPES: _below(workflow_scopes, exporting.SCOPES, *_ORDER),
    exporting.STEPS: _below(workflow_step_runs, exporting.STEPS, _STEPS.created_at, _STEPS.ulid),
    exporting.SIGNALS: _below(workflow_signals, exporting.SIGNALS, workflow_signals.c.id),
    exporting.EVENTS: _below(workflow_events, exporting.EVENTS, workflow_events.c.seq),
    exporting.FAILURES: _below(workflow_failures, exporting.FAILURES, workflow_failures.c.id),
    exporting.COMPENSATIONS: _below(workflow_compensations, exporting.COMPENSATIONS, workflow_compensations.c.seq),
    exporting.ARTIFACTS: _below(workflow_artifacts, exporting.ARTIFACTS, workflow_artifacts.c.key),
    exporting.CHUNKS: _below(
        workflow_chunks, exporting.CHUNKS, workflow_chunks.c.execution_id, workflow_chunks.c.index
    ),
    exporting.EFFECTS: _below(
        workflow_idempotency_keys, exporting.EFFECTS, _KEYS.id, only=and_(_KEYS.scope == "effect", _KEYS.is_done)
    ),
}
_LARGE: Final = (exporting.ARTIFACTS,)


async def export(database: Database, owner_scope: str, ulid: str, now: datetime) -> AsyncIterator[bytes]:
    """The owner's instance as it stood at one moment, in pieces of whole lines; the first tells which version it runs.

    Raises NotFound, and Conflict("instance_not_portable") where something of it can't be written down.
    """
    async with database.acquire() as connection, connection.transaction(isolation="repeatable_read", readonly=True):
        row = await _INSTANCE.fetch_one(connection, ulid=ulid, owner=owner_scope)
        if row is None:
            raise NotFound("instance_not_found", key=ulid)
        instance = read(Instance, {name: row[name] for name in get_columns(Instance)})
        for reason in await Session(connection).fetch("copies_refuse", id=instance.id, ulid=ulid):
            raise Conflict("instance_not_portable", why=reason["why"])
        kin: JsonObject = {"parent": row["parent"], "parent_step": row["parent_step"]}
        piece = _encode(write_head(instance, await _describe(connection, instance), kin, now))
        writer = await _open(connection, instance.id)
        for kind, query in _ROWS.items():
            text, given = query.bind(id=instance.id)
            async for each in connection.cursor(text, *given, prefetch=FEW if kind in _LARGE else PAGE):
                piece += _encode(writer.write(kind, read(kind.row, each)))
                if len(piece) >= BYTES:
                    yield piece
                    piece = b""
        yield piece + _encode(write_end(writer.lines))


async def _describe(connection: Connection, instance: Instance) -> JsonObject:
    version = await _VERSION.fetch_one(connection, id=instance.version_id)
    assert version is not None, "winst_version_fk"
    contracts = hashlib.sha256(canonical(version["contracts"])).hexdigest()
    return {**{name: version[name] for name in VERSION}, "contracts": contracts}


async def _open(connection: Connection, instance_id: int) -> Writer:
    steps = {row["id"]: row["ulid"] for row in await _NAMES.fetch(connection, id=instance_id)}
    scopes = {row["id"]: number for number, row in enumerate(await _NUMBERS.fetch(connection, id=instance_id))}
    return Writer(steps, scopes)


def _encode(line: JsonObject) -> bytes:
    return orjson.dumps(line) + b"\n"
