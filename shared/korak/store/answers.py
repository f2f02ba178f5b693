"""Answers that are kept for a repeat of the request under the same Idempotency-Key."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from korak.store.database import Connection
from korak.store.querying import fetch, fetch_one
from korak.store.tables import http_answers


@dataclass(frozen=True, slots=True)
class Kept:
    """What stands under a key: the first request's fingerprint, and its answer once it has one."""

    fingerprint: str
    status: int | None
    body: Any


@dataclass(frozen=True, slots=True)
class Claim:
    """A request under a key. One that has no answer and was made before `lost_before` counts as lost."""

    owner_scope: str
    key: str
    fingerprint: str
    now: datetime
    expires_at: datetime
    lost_before: datetime


async def claim(connection: Connection, wanted: Claim) -> bool:
    """Be the first under the key, or the first after it expired or its request was lost; whether that is so."""
    columns = {
        "fingerprint": wanted.fingerprint,
        "status": None,
        "body": None,
        "expires_at": wanted.expires_at,
        "created_at": wanted.now,
    }
    is_lost = and_(http_answers.c.status.is_(None), http_answers.c.created_at < wanted.lost_before)
    made = (
        insert(http_answers)
        .values(owner_scope=wanted.owner_scope, key=wanted.key, **columns)
        .on_conflict_do_update(
            index_elements=[http_answers.c.owner_scope, http_answers.c.key],
            set_=columns,
            where=or_(http_answers.c.expires_at <= wanted.now, is_lost),
        )
        .returning(http_answers.c.key)
    )
    return await fetch_one(connection, made) is not None


async def get(connection: Connection, owner_scope: str, key: str) -> Kept | None:
    """What stands under the key."""
    query = select(http_answers.c.fingerprint, http_answers.c.status, http_answers.c.body)
    row = await fetch_one(connection, query.where(_is(owner_scope, key)))
    return None if row is None else Kept(row["fingerprint"], row["status"], row["body"])


async def keep(connection: Connection, owner_scope: str, key: str, *, status: int, body: Any) -> None:
    """Keep the answer of the claim's holder."""
    await fetch(connection, update(http_answers).where(_is(owner_scope, key)).values(status=status, body=body))


async def release(connection: Connection, owner_scope: str, key: str) -> None:
    """Let the key go: its request was refused and had no effect."""
    await fetch(connection, delete(http_answers).where(_is(owner_scope, key), http_answers.c.status.is_(None)))


def _is(owner_scope: str, key: str) -> Any:
    return and_(http_answers.c.owner_scope == owner_scope, http_answers.c.key == key)
