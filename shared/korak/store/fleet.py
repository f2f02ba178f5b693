"""The engines of one machine, as those see them who start and end them there."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Final

from korak.store.database import Connection

_LIST: Final = "select distinct pid from engines where host = $1 and closed_at is null order by pid"

_CLOSE: Final = """
update engines set closed_at = $3, close_reason = 'died' where host = $1 and pid = any($2::integer[]) and closed_at is null
"""


async def list_pids(connection: Connection, host: str) -> list[int]:
    """The processes of a machine that have an engine's row which isn't closed; they may be gone."""
    return [row["pid"] for row in await connection.fetch(_LIST, host)]


async def close_dead(connection: Connection, host: str, pids: Collection[int], *, now: datetime) -> int:
    """Close the rows of these processes, which are gone: what they held is taken over at once. How many there were."""
    status: str = await connection.execute(_CLOSE, host, list(pids), now)
    return int(status.rpartition(" ")[2])
