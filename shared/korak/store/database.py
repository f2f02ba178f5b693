"""The connection to Postgres: a pool for what isn't hot, held connections with plans that can't flip for what is."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol, Self, TypeAlias

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from korak.errors import TransientError
from korak.store.statements import decode, encode, get_statement
from korak.store.urls import plain


class Runner(Protocol):
    """Whatever runs named statements: a `Session` of the pool, or a `Hot` connection."""

    async def fetch(self, name: str, /, **given: Any) -> list[asyncpg.Record]:
        """Run the statement of that name."""
        ...


Connection: TypeAlias = "asyncpg.Connection[Any] | PoolConnectionProxy[Any]"

HOT = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""What keeps the plans of prepared set-based statements what they are, whatever the tables' statistics say."""

TRANSIENT = (
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.LockNotAvailableError,
    asyncpg.ObjectInUseError,
    asyncpg.QueryCanceledError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    ConnectionError,
    OSError,
    TimeoutError,
)
"""Faults that pass by themselves: what failed may be repeated whole."""

DATA_CLASSES = ("22", "23")
"""SQLSTATE classes that are the fault of one row's data."""

TOO_LARGE = "54000"
"""SQLSTATE of a value that is larger than a document or an index can hold: likewise."""


def is_data_fault(error: BaseException) -> bool:
    """Whether one row's data is to blame, so that its batch is split until it stands alone."""
    state = error.sqlstate or "" if isinstance(error, asyncpg.PostgresError) else ""
    return state[:2] in DATA_CLASSES or state == TOO_LARGE


class Database:
    """An async context manager. `timeout` bounds one statement of the pool, in seconds."""

    def __init__(self, url: str, schema: str, *, pool: int = 10, timeout: float = 30.0, name: str = "korak") -> None:
        self._url = plain(url)
        self._schema = schema
        self._size = pool
        self._timeout = timeout
        self._name = name
        self._pool: asyncpg.Pool[Any] | None = None
        self._held: list[asyncpg.Connection[Any]] = []
        self.losses = 0
        """How many held connections were lost and made anew: who held one may not have noticed."""

    @property
    def schema(self) -> str:
        """The schema that holds the tables."""
        return self._schema

    async def __aenter__(self) -> Self:
        self._pool = await asyncpg.create_pool(
            self._url,
            min_size=0,
            max_size=self._size,
            command_timeout=self._timeout,
            init=_set_codecs,
            reset=_keep_session,
            server_settings=self._get_session(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        for connection in self._held:
            connection.terminate()
        if self._pool is not None:
            self._pool.terminate()

    def _get_session(self) -> dict[str, str]:
        quoted = '"' + self._schema.replace('"', '""') + '"'
        return {"search_path": quoted, "application_name": self._name, "timezone": "UTC", "jit": "off"}

    @asynccontextmanager
    async def acquire(self) -> AsyncIterator[Connection]:
        """A connection of the pool. TransientError where none can be had or it is lost."""
        assert self._pool is not None, "enter the database first"
        try:
            async with self._pool.acquire(timeout=self._timeout) as connection:
                yield connection
        except TRANSIENT as error:
            raise TransientError("unavailable", what="The database", why=str(error)) from error

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """A transaction on a connection of the pool."""
        async with self.acquire() as connection, connection.transaction():
            yield connection

    async def hold(self) -> asyncpg.Connection[Any]:
        """A connection for one owner's hot statements, as long as that owner lives. TransientError if there is none."""
        try:
            connection: asyncpg.Connection[Any] = await asyncpg.connect(
                self._url,
                command_timeout=self._timeout,
                timeout=self._timeout,
                statement_cache_size=0,
                server_settings={**self._get_session(), **HOT},
            )
        except (*TRANSIENT, asyncpg.CannotConnectNowError, asyncpg.TooManyConnectionsError) as error:
            raise TransientError("unavailable", what="The database", why=str(error)) from error
        await _set_codecs(connection)
        self._held.append(connection)
        return connection


class Hot:
    """A held connection with its prepared statements; it connects again after a loss. One owner, one call at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: asyncpg.Connection[Any] | None = None
        self._prepared: dict[str, Any] = {}
        self._count = 0

    async def connect(self) -> asyncpg.Connection[Any]:
        """The connection, made anew where it was lost."""
        if self._connection is None or self._connection.is_closed():
            self._database.losses += self._connection is not None
            self._prepared.clear()
            self._connection = await self._database.hold()
        return self._connection

    async def fetch(self, name: str, /, **given: Any) -> list[asyncpg.Record]:
        """Run the statement of that name."""
        statement = get_statement(name)
        prepared = self._prepared.get(name)
        if prepared is None or self._connection is None or self._connection.is_closed():
            prepared = self._prepared[name] = await self._prepare(name, statement.text)
        return await prepared.fetch(*statement.bind(**given))  # type: ignore[no-any-return]  # asyncpg is untyped here

    async def _prepare(self, name: str, text: str) -> Any:
        """Under a name, since what has none is planned at every call; a new one, should the last try not have ended."""
        connection = await self.connect()
        self._count += 1
        return await connection.prepare(text, name=f"{name}_{self._count}")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """A transaction on this connection. TransientError where it failed for a reason that passes."""
        try:
            async with (await self.connect()).transaction():
                yield self
        except TRANSIENT as error:
            raise TransientError("unavailable", what="The database", why=str(error)) from error

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[Self]:
        """One statement that is a transaction of its own. TransientError as in `transaction`."""
        try:
            yield self
        except TRANSIENT as error:
            raise TransientError("unavailable", what="The database", why=str(error)) from error

    async def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.terminate()


class Session:
    """Named statements on a connection of the pool, in the transaction that its owner has begun."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    async def fetch(self, name: str, /, **given: Any) -> list[asyncpg.Record]:
        """Run the statement of that name."""
        statement = get_statement(name)
        rows: list[asyncpg.Record] = await self.connection.fetch(statement.text, *statement.bind(**given))
        return rows


async def _set_codecs(connection: asyncpg.Connection[Any]) -> None:
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=encode, decoder=decode, format="binary")


async def _keep_session(connection: asyncpg.Connection[Any]) -> None:
    """Nothing to reset between two uses: no caller changes the session."""
