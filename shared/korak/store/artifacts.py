"""Artifacts from outside, and for whoever looks: put, taken away, listed. What steps leave comes with the record."""

from __future__ import annotations

from datetime import datetime

import asyncpg

from korak.steps.artifacts import Made
from korak.store.database import Connection, Session


async def put(connection: Connection, instance_id: int, made: Made, now: datetime) -> bool | None:
    """Keep an artifact; whether its key is new. None where the instance is gone."""
    rows = await Session(connection).fetch(
        "artifacts_put",
        instance_id=instance_id,
        key=made.key,
        kind=made.kind,
        content=made.content,
        size=len(made.content),
        metadata=made.metadata,
        now=now,
    )
    return bool(rows[0]["is_new"]) if rows else None


async def drop(connection: Connection, instance_id: int, key: str) -> bool:
    """Take an artifact away; False where there is none."""
    return bool(await Session(connection).fetch("artifacts_drop", instance_id=instance_id, key=key))


async def get(connection: Connection, instance_id: int, key: str) -> asyncpg.Record | None:
    """One artifact with its content; None where there is none."""
    rows = await Session(connection).fetch("artifacts_get", instance_id=instance_id, key=key)
    return rows[0] if rows else None


async def list_artifacts(
    connection: Connection, instance_id: int, *, after: str, limit: int, with_content: bool
) -> list[asyncpg.Record]:
    """A page of artifacts by key, after one of them."""
    return await Session(connection).fetch(
        "artifacts_list", instance_id=instance_id, after=after, page=limit, with_content=with_content
    )
