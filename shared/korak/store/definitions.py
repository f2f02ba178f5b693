"""Definitions and their versions as rows: looked up, listed, drafted, published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
from sqlalchemy import Select, and_, func, literal, select, text, tuple_, update
from sqlalchemy import delete as remove
from sqlalchemy.dialects.postgresql import insert as upsert

from korak.graphs.checksum import checksum
from korak.graphs.document import SCHEMA, TRIGGER
from korak.model import APP_WIDE, DefinitionStatus, JsonObject, VersionStatus
from korak.owners.scopes import Owner
from korak.store.database import Connection
from korak.store.querying import fetch, fetch_one
from korak.store.tables import workflow_definitions as definitions
from korak.store.tables import workflow_versions as versions

_draft = versions.alias("draft")
_current = versions.alias("current")


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition with the graph that stands in it: its draft's, else its current version's."""

    id: int
    key: str
    name: str
    description: str | None
    owner_scope: str
    status: DefinitionStatus
    current_version_id: int | None
    version: int | None
    checksum: str
    published_checksum: str | None
    graph: JsonObject
    has_draft: bool
    created_at: datetime
    updated_at: datetime


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


def _select_definitions() -> Select[Any]:
    return (
        select(
            definitions,
            _current.c.number.label("version"),
            _current.c.checksum.label("published_checksum"),
            _draft.c.id.is_not(None).label("has_draft"),
            func.coalesce(_draft.c.checksum, _current.c.checksum).label("checksum"),
            func.coalesce(_draft.c.graph, _current.c.graph).label("graph"),
        )
        .outerjoin(_draft, and_(_draft.c.definition_id == definitions.c.id, _draft.c.status == VersionStatus.DRAFT))
        .outerjoin(_current, _current.c.id == definitions.c.current_version_id)
        .where(definitions.c.deleted_at.is_(None))
    )


def _read(row: asyncpg.Record) -> Definition:
    return Definition(
        id=row["id"],
        key=row["key"],
        name=row["name"],
        description=row["description"],
        owner_scope=row["owner_scope"],
        status=DefinitionStatus(row["status"]),
        current_version_id=row["current_version_id"],
        version=row["version"],
        checksum=row["checksum"],
        published_checksum=row["published_checksum"],
        graph=row["graph"],
        has_draft=row["has_draft"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


async def get(connection: Connection, owner_scope: str, key: str, *, is_own: bool = False) -> Definition | None:
    """The owner's definition of that key, else the application's unless it must be the owner's own."""
    scopes = [owner_scope] if is_own else [owner_scope, APP_WIDE]
    query = (
        _select_definitions()
        .where(definitions.c.owner_scope.in_(scopes), definitions.c.key == key)
        .order_by(definitions.c.owner_scope == APP_WIDE)
        .limit(1)
    )
    row = await fetch_one(connection, query)
    return _read(row) if row else None


async def list_definitions(
    connection: Connection,
    owner_scope: str | None,
    *,
    statuses: Sequence[str] = (),
    after: tuple[str, str] | None = None,
    limit: int = 50,
) -> list[Definition]:
    """What an owner can start, its own and the application's, or everything where it is None; by key and owner."""
    query = _select_definitions()
    if owner_scope is not None:
        query = query.where(definitions.c.owner_scope.in_({owner_scope, APP_WIDE}))
    if statuses:
        query = query.where(definitions.c.status.in_(statuses))
    if after is not None:
        query = query.where(tuple_(definitions.c.key, definitions.c.owner_scope) > tuple_(*map(literal, after)))
    rows = await fetch(connection, query.order_by(definitions.c.key, definitions.c.owner_scope).limit(limit))
    return [_read(row) for row in rows]


async def add(connection: Connection, owner: Owner, key: str, document: JsonObject, *, now: datetime) -> int | None:
    """A new definition without anything in it; None where the key is taken, by a deleted one too."""
    made = (
        upsert(definitions)
        .values(
            key=key,
            owner_type=owner.type,
            owner_id=owner.id,
            owner_scope=owner.scope,
            status=DefinitionStatus.DRAFT,
            created_at=now,
            updated_at=now,
            **_get_names(key, document),
        )
        .on_conflict_do_nothing()
        .returning(definitions.c.id)
    )
    row = await fetch_one(connection, made)
    return None if row is None else int(row["id"])


def _get_names(key: str, document: JsonObject) -> dict[str, Any]:
    return {"name": str(document.get("name") or key)[:200], "description": document.get("description")}


async def lock(connection: Connection, owner_scope: str, key: str) -> Definition | None:
    """The owner's own definition, which stays as it is until the transaction ends."""
    locking = (
        select(definitions.c.id)
        .where(definitions.c.owner_scope == owner_scope, definitions.c.key == key, definitions.c.deleted_at.is_(None))
        .with_for_update(key_share=True)
    )
    row = await fetch_one(connection, locking)
    return None if row is None else await get(connection, owner_scope, key, is_own=True)


async def change(connection: Connection, definition_id: int, *, now: datetime, **columns: Any) -> None:
    """Change columns of a locked definition: its status, its current version, its deletion."""
    query = update(definitions).where(definitions.c.id == definition_id).values(updated_at=now, **columns)
    await fetch(connection, query)


async def keep_draft(
    connection: Connection, definition_id: int, key: str, document: JsonObject, *, now: datetime
) -> None:
    """Make a document the draft of a locked definition, in place of the one before."""
    columns = {"graph": document, "checksum": checksum(document), "updated_at": now, **_get_parts(document)}
    kept = upsert(versions).values(
        definition_id=definition_id, status=VersionStatus.DRAFT, schema_version=SCHEMA, created_at=now, **columns
    )
    kept = kept.on_conflict_do_update(
        index_elements=[versions.c.definition_id],
        index_where=text("status = 'draft'"),
        set_=columns,
    )
    await fetch(connection, kept)
    await change(connection, definition_id, now=now, **_get_names(key, document))


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
    query = remove(versions).where(versions.c.definition_id == definition_id, versions.c.status == VersionStatus.DRAFT)
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
    highest = func.coalesce(func.max(versions.c.number), 0).label("highest")
    row = await fetch_one(connection, select(highest).where(versions.c.definition_id == definition.id))
    number = 1 + (row["highest"] if row else 0)
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


async def activate(connection: Connection, definition: Definition, version: Version, *, now: datetime) -> None:
    """Make an older version of a locked definition the current one again."""
    await _supersede(connection, definition.id, now=now)
    standing = update(versions).where(versions.c.id == version.id)
    await fetch(connection, standing.values(status=VersionStatus.PUBLISHED, updated_at=now))
    await change(connection, definition.id, now=now, current_version_id=version.id)


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
