"""Whether the database is what Korak needs: its version, and the wall around effects."""

from __future__ import annotations

from typing import Final

import asyncpg

from korak.store.database import Connection

_VERSION: Final = (
    "select current_setting('server_version_num')::integer as number, current_setting('server_version') as name"
)

_REVISION: Final = "select version_num from alembic_version"

_REACH: Final = """
select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname = $1 and c.relkind in ('r', 'p')
    and has_table_privilege(c.oid, 'select, insert, update, delete, truncate, references, trigger')
order by c.relname
"""


async def get_version(connection: Connection) -> tuple[int, str]:
    """The server's major version, and its name."""
    row = await connection.fetchrow(_VERSION)
    assert row is not None
    return row["number"] // 10_000, row["name"]


async def get_revision(connection: Connection) -> str | None:
    """The revision that the schema is at; None where nothing was migrated yet."""
    try:
        found: str | None = await connection.fetchval(_REVISION)
    except asyncpg.UndefinedTableError:
        return None
    return found


async def list_reachable(connection: Connection, schema: str) -> list[str]:
    """The tables of a schema that this login may do anything with. For the role behind once() there are none."""
    return [row["relname"] for row in await connection.fetch(_REACH, schema)]
