"""Queries of the API: written with SQLAlchemy's tables, run by the driver itself, so that one pool serves both."""

from __future__ import annotations

from typing import Any

import asyncpg
from sqlalchemy import BindParameter, ClauseElement, bindparam
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.types import TypeEngine

from korak.store.database import Connection

_DIALECT = PGDialect_asyncpg()  # type: ignore[no-untyped-call]  # SQLAlchemy's dialects have no annotations here


def parameter(name: str, kind: TypeEngine[Any]) -> BindParameter[Any]:
    """A parameter of a `Query`, given by its name."""
    return bindparam(name, None, type_=kind)


class Query:
    """A statement that is written once and compiled at its first use; its parameters are given by name."""

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._text = ""
        self._names: tuple[str, ...] = ()
        self._values: dict[str, Any] = {}

    def bind(self, **given: Any) -> tuple[str, list[Any]]:
        """The text and its arguments, in the order in which the text numbers them."""
        if not self._text:
            compiled = self._statement.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
            self._values = dict(compiled.params)
            self._names = tuple(getattr(compiled, "positiontup", None) or ())
            self._text = str(compiled)
        values = self._values
        return self._text, [given[name] if name in given else values[name] for name in self._names]

    async def fetch(self, connection: Connection, **given: Any) -> list[asyncpg.Record]:
        """Every row, or what the statement returns."""
        text, arguments = self.bind(**given)
        rows: list[asyncpg.Record] = await connection.fetch(text, *arguments)
        return rows

    async def fetch_one(self, connection: Connection, **given: Any) -> asyncpg.Record | None:
        """The one row, if there is one."""
        text, arguments = self.bind(**given)
        row: asyncpg.Record | None = await connection.fetchrow(text, *arguments)
        return row


async def fetch(connection: Connection, statement: ClauseElement) -> list[asyncpg.Record]:
    """Every row of a statement that is put together for one call."""
    return await Query(statement).fetch(connection)


async def fetch_one(connection: Connection, statement: ClauseElement) -> asyncpg.Record | None:
    """The one row of such a statement, if there is one."""
    return await Query(statement).fetch_one(connection)
