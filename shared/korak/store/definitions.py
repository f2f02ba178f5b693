"""Definitions as rows: looked up, listed, made, locked and changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg
from sqlalchemy import ARRAY, String, and_, any_, func, literal, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from korak.model import APP_WIDE, DefinitionStatus, JsonObject
from korak.owners.scopes import Owner
from korak.store.database import Connection
from korak.store.querying import Query, fetch, fetch_one, parameter
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


_standing = (
    select(
        definitions,
        _current.c.number.label("version"),
        _current.c.checksum.label("published_checksum"),
        _draft.c.id.is_not(None).label("has_draft"),
        func.coalesce(_draft.c.checksum, _current.c.checksum).label("checksum"),
        func.coalesce(_draft.c.graph, _current.c.graph).label("graph"),
    )
    .outerjoin(_draft, and_(_draft.c.definition_id == definitions.c.id, text("draft.status = 'draft'")))
    .outerjoin(_current, _current.c.id == definitions.c.current_version_id)
    .where(definitions.c.deleted_at.is_(None))
)
_GET = Query(
    _standing.where(
        definitions.c.owner_scope == any_(parameter("scopes", ARRAY(String))),
        definitions.c.key == parameter("key", String()),
    )
    .order_by(definitions.c.owner_scope == APP_WIDE)
    .limit(1)
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
    row = await _GET.fetch_one(connection, scopes=scopes, key=key)
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
    query = _standing
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
            **get_names(key, document),
        )
        .on_conflict_do_nothing()
        .returning(definitions.c.id)
    )
    row = await fetch_one(connection, made)
    return None if row is None else int(row["id"])


def get_names(key: str, document: JsonObject) -> dict[str, Any]:
    """What people call a definition, as its document says."""
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
