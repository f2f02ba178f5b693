"""Queries of the API: written with SQLAlchemy's tables, run by the driver itself, so that one pool serves both."""

from __future__ import annotations

from typing import Any

import asyncpg
from sqlalchemy import ClauseElement
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg

from korak.store.database import Connection

_DIALECT = PGDialect_asyncpg()  # type: ignore[no-untyped-call]  # SQLAlchemy's dialects have no annotations here


def compile_query(query: ClauseElement) -> tuple[str, list[Any]]:
    """The text of a query and its arguments, in the order in which the text numbers them."""
    compiled = query.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    given = compiled.params
    return str(compiled), [given[name] for name in getattr(compiled, "positiontup", None) or ()]


async def fetch(connection: Connection, query: ClauseElement) -> list[asyncpg.Record]:
    """Every row of a query, or what a statement returns."""
    text, arguments = compile_query(query)
    rows: list[asyncpg.Record] = await connection.fetch(text, *arguments)
    return rows


async def fetch_one(connection: Connection, query: ClauseElement) -> asyncpg.Record | None:
    """The one row of a query, if there is one."""
    text, arguments = compile_query(query)
    row: asyncpg.Record | None = await connection.fetchrow(text, *arguments)
    return row
