"""The chunks of streaming steps: stored one by one under the step's token, read by its next attempt and onlookers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from korak.store.database import Connection, Database, Session


async def append(database: Database, step_id: int, token: str, chunk: tuple[int, str], now: datetime) -> bool:
    """Store a chunk, (index, text), of a step; False, and nothing stored, where the token doesn't hold it any more."""
    index, content = chunk
    async with database.acquire() as connection:
        rows = await Session(connection).fetch(
            "chunks_append", step=step_id, token=token, index=index, content=content, now=now
        )
    return bool(rows)


async def load(database: Database, instance_id: int, execution_id: str) -> list[str]:
    """What a visit has streamed so far, in order."""
    async with database.acquire() as connection:
        rows = await Session(connection).fetch("chunks_load", instance_id=instance_id, execution_id=execution_id)
    return [row["content"] for row in rows]


async def follow(
    connection: Connection, instance_id: int, seen: Mapping[str, int], *, limit: int
) -> list[asyncpg.Record]:
    """The chunks of an instance behind those that were seen, the last index a visit, by visit and index."""
    return await Session(connection).fetch(
        "chunks_follow", instance_id=instance_id, seen=list(seen.items()), page=limit
    )


@dataclass(frozen=True, slots=True)
class Place:
    """Which chunks of an instance a page has: behind (execution, index), of one node or visit, with a greater index."""

    execution: str = ""
    index: int = -1
    step: str | None = None
    after: int = -1


async def list_chunks(connection: Connection, instance_id: int, place: Place, *, limit: int) -> list[asyncpg.Record]:
    """A page of chunks by visit and index."""
    return await Session(connection).fetch(
        "chunks_list",
        instance_id=instance_id,
        execution_id=place.execution,
        index=place.index,
        step=place.step,
        after=place.after,
        page=limit,
    )
