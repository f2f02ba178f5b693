"""The engines of one machine, as those see them who start and end them there."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from korak.store.database import Connection

_LIST: Final = "select distinct pid from engines where host = $1 and closed_at is null order by pid"

_CLOSE: Final = """
update engines set closed_at = $3, close_reason = 'died' where host = $1 and pid = $2 and closed_at is null
"""

_CLOSE_ALL: Final = "update engines set closed_at = $1, close_reason = 'died' where closed_at is null"


async def list_pids(connection: Connection, host: str) -> list[int]:
    """The processes of a machine that have an engine's row which isn't closed; they may be gone."""
    return [row["pid"] for row in await connection.fetch(_LIST, host)]


async def close_dead(connection: Connection, host: str, pid: int, *, now: datetime) -> int:
    """Close the rows of a process that is gone: what it held is taken over at once. How many there were."""
    status: str = await connection.execute(_CLOSE, host, pid, now)
    return int(status.rpartition(" ")[2])


async def close_all(connection: Connection, *, now: datetime) -> int:
    """Close every row, where the caller knows that no engine can be left. How many there were."""
    status: str = await connection.execute(_CLOSE_ALL, now)
    return int(status.rpartition(" ")[2])
