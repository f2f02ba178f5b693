"""Versions of definitions: the one draft, and what was frozen of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
from sqlalchemy import delete, func, select, text, update
from sqlalchemy.dialects.postgresql import insert

from korak.graphs.checksum import checksum
from korak.graphs.document import SCHEMA, TRIGGER
from korak.model import DefinitionStatus, JsonObject, VersionStatus
from korak.store.database import Connection
from korak.store.definitions import Definition, change, get_names
from korak.store.querying import fetch, fetch_one
from korak.store.tables import workflow_versions as versions


@dataclass(frozen=True, slots=True)
class Version:
    """A version as it was frozen."""

    id: int
    number: int
    status: VersionStatus
    label: str | None
    checksum: str
    graph: JsonObject
    published_at: datetime
    publisher: str | None


@dataclass(frozen=True, slots=True)
class Draft:
    """What is published: the graph, and its checksum."""

    id: int
    graph: JsonObject
    checksum: str


async def keep_draft(
    connection: Connection, definition_id: int, key: str, document: JsonObject, *, now: datetime
) -> None:
    """Make a document the draft of a locked definition, in place of the one before."""
    columns = {"graph": document, "checksum": checksum(document), "updated_at": now, **_get_parts(document)}
    kept = insert(versions).values(
        definition_id=definition_id, status=VersionStatus.DRAFT, schema_version=SCHEMA, created_at=now, **columns
    )
    kept = kept.on_conflict_do_update(
        index_elements=[versions.c.definition_id],
        index_where=text("status = 'draft'"),
        set_=columns,
    )
    await fetch(connection, kept)
    await change(connection, definition_id, now=now, **get_names(key, document))


def _get_parts(document: JsonObject) -> dict[str, Any]:
    """What columns of a version repeat of its document, as far as the draft has it."""
    nodes: Any = document.get("nodes")
    settings: Any = document.get("settings") or {}
    trigger: Any = next((node.get("config") or {} for node in nodes if node.get("type") == TRIGGER), {})
    ways = trigger.get("on", "manual")
    way = ways[0] if isinstance(ways, list) and ways else ways
    event = way.get("event") if isinstance(way, dict) else None
    return {
        "trigger": trigger,
        "settings": settings,
        "trigger_type": way if isinstance(way, str) else next(iter(way), "manual")[:16],
        "trigger_key": event[:191] if isinstance(event, str) else None,
        "actor_mode": settings.get("actor", "system"),
    }


async def drop_draft(connection: Connection, definition_id: int) -> None:
    """Forget the draft of a locked definition."""
    query = delete(versions).where(versions.c.definition_id == definition_id, versions.c.status == VersionStatus.DRAFT)
    await fetch(connection, query)


async def get_draft(connection: Connection, definition_id: int) -> Draft | None:
    """The draft, if there is one."""
    query = select(versions.c.id, versions.c.graph, versions.c.checksum).where(
        versions.c.definition_id == definition_id, versions.c.status == VersionStatus.DRAFT
    )
    row = await fetch_one(connection, query)
    return None if row is None else Draft(row["id"], row["graph"], row["checksum"])


async def publish(
    connection: Connection,
    definition: Definition,
    draft: Draft,
    *,
    contracts: JsonObject,
    publisher: str | None,
    now: datetime,
) -> int:
    """Freeze the draft of a locked definition as its next version, which becomes the current one; its number."""
    number = await _get_next_number(connection, definition.id)
    await _supersede(connection, definition.id, now=now)
    frozen = (
        update(versions)
        .where(versions.c.id == draft.id)
        .values(
            number=number,
            status=VersionStatus.PUBLISHED,
            contracts=contracts,
            published_at=now,
            publisher_type=None if publisher is None else "user",
            publisher_id=publisher,
            updated_at=now,
        )
    )
    await fetch(connection, frozen)
    status = DefinitionStatus.ACTIVE
    await change(connection, definition.id, now=now, current_version_id=draft.id, status=status)
    return number


async def freeze(
    connection: Connection,
    definition_id: int,
    document: JsonObject,
    *,
    contracts: JsonObject,
    publisher: str | None,
    now: datetime,
) -> Version:
    """The next version of a locked definition, which doesn't become the current one; its draft stays as it is."""
    number = await _get_next_number(connection, definition_id)
    frozen = insert(versions).values(
        definition_id=definition_id,
        number=number,
        status=VersionStatus.SUPERSEDED,
        schema_version=SCHEMA,
        graph=document,
        checksum=checksum(document),
        contracts=contracts,
        published_at=now,
        publisher_type=None if publisher is None else "user",
        publisher_id=publisher,
        created_at=now,
        updated_at=now,
        **_get_parts(document),
    )
    row = await fetch_one(connection, frozen.returning(versions))
    assert row is not None, "it was inserted"
    return _read_version(row)


async def _get_next_number(connection: Connection, definition_id: int) -> int:
    highest = func.coalesce(func.max(versions.c.number), 0).label("highest")
    row = await fetch_one(connection, select(highest).where(versions.c.definition_id == definition_id))
    return 1 + int(row["highest"] if row else 0)


async def activate(connection: Connection, definition: Definition, version: Version, *, now: datetime) -> None:
    """Make another version of a locked definition the current one; a draft that is the same goes."""
    await _supersede(connection, definition.id, now=now)
    standing = update(versions).where(versions.c.id == version.id)
    await fetch(connection, standing.values(status=VersionStatus.PUBLISHED, updated_at=now))
    draft = await get_draft(connection, definition.id)
    if draft is not None and draft.checksum == version.checksum:
        await drop_draft(connection, definition.id)
    columns = {"current_version_id": version.id, "status": DefinitionStatus.ACTIVE}
    await change(connection, definition.id, now=now, **columns, **get_names(definition.key, version.graph))


async def _supersede(connection: Connection, definition_id: int, *, now: datetime) -> None:
    query = (
        update(versions)
        .where(versions.c.definition_id == definition_id, versions.c.status == VersionStatus.PUBLISHED)
        .values(status=VersionStatus.SUPERSEDED, updated_at=now)
    )
    await fetch(connection, query)


async def list_versions(
    connection: Connection, definition_id: int, *, before: int | None = None, limit: int = 50
) -> list[Version]:
    """The versions of a definition, newest first, drafts left out."""
    query = select(versions).where(versions.c.definition_id == definition_id, versions.c.number.is_not(None))
    if before is not None:
        query = query.where(versions.c.number < before)
    rows = await fetch(connection, query.order_by(versions.c.number.desc()).limit(limit))
    return [_read_version(row) for row in rows]


async def get_version(connection: Connection, definition_id: int, number: int) -> Version | None:
    """One version by its number."""
    query = select(versions).where(versions.c.definition_id == definition_id, versions.c.number == number)
    row = await fetch_one(connection, query)
    return None if row is None else _read_version(row)


async def find_version(connection: Connection, definition_id: int, checksum: str) -> Version | None:
    """The newest version with a checksum."""
    query = select(versions).where(
        versions.c.definition_id == definition_id, versions.c.checksum == checksum, versions.c.number.is_not(None)
    )
    row = await fetch_one(connection, query.order_by(versions.c.number.desc()).limit(1))
    return None if row is None else _read_version(row)


def _read_version(row: asyncpg.Record) -> Version:
    return Version(
        id=row["id"],
        number=row["number"],
        status=VersionStatus(row["status"]),
        label=row["label"],
        checksum=row["checksum"],
        graph=row["graph"],
        published_at=row["published_at"],
        publisher=row["publisher_id"],
    )
