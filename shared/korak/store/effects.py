"""The two doors of `once()`, by SQLAlchemy: what an effect writes commits with its result."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Self

import asyncpg
import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import BigInteger, Connection, DateTime, Engine, String, TextClause, bindparam, create_engine, text
from sqlalchemy.exc import DBAPIError, PendingRollbackError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.types import TypeEngine

from korak.errors import StaleClaim, TransientError
from korak.graphs import hygiene
from korak.model import Json
from korak.store.database import TRANSIENT
from korak.store.urls import plain

BOUND: Final = 30.0
"""Seconds that an effect may take, as may each of its statements and each wait for a lock or a connection."""

STALE: Final = "KR001"
"""What the doors raise where the token doesn't hold the step any more."""

LOST: Final = ("08", "57P0")
"""How the SQLSTATEs begin of a connection that is lost, of a server that stops, and of one that is starting."""

_TYPES: Final[dict[str, TypeEngine[Any]]] = {
    "step": BigInteger(),
    "token": String(),
    "digest": String(),
    "result": String(),
    "now": DateTime(timezone=True),
}


@dataclass(frozen=True, slots=True)
class Claim:
    """An effect of a step that runs under a token. `digest` tells the effect among all others (ID-11)."""

    step: int
    token: str
    digest: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The result of an effect that was committed; None is one too (ID-13)."""

    result: Json


class EffectDatabase:
    """An async context manager: the two pools, each made when it is first used, and the doors.

    `url` is best the address of the role that may do nothing else. The doors are blocking functions of a connection:
    `AsyncConnection.run_sync` takes them too.
    """

    def __init__(self, url: str, schema: str, *, pool: int = 10) -> None:
        self._url = plain(url)
        self._pool: dict[str, Any] = {
            "pool_size": pool,
            "max_overflow": 0,
            "pool_timeout": BOUND,
            "pool_pre_ping": True,
            "isolation_level": "READ COMMITTED",
        }
        name = ('"' + schema.replace('"', '""') + '"').replace(":", "\\:")
        given = ("step", "token", "digest")
        self._begin = _compile(f"select {name}.effect_begin(:step, :token, :digest, :now)::text", *given, "now")
        self._end = _compile(
            f"select {name}.effect_end(:step, :token, :digest, cast(:result as jsonb))", *given, "result"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        made = vars(self)
        if "_async" in made:
            await self._async.dispose()
        if "_blocking" in made:
            self._blocking.dispose()

    @cached_property
    def _async(self) -> AsyncEngine:
        async def connect() -> asyncpg.Connection[Any]:
            try:
                connection: asyncpg.Connection[Any] = await asyncpg.connect(
                    self._url, timeout=BOUND, command_timeout=BOUND, server_settings=_get_session()
                )
            except TRANSIENT as error:
                raise _unavailable(error) from error
            return connection

        return create_async_engine("postgresql+asyncpg://", async_creator=connect, **self._pool)

    @cached_property
    def _blocking(self) -> Engine:
        given = conninfo_to_dict(self._url).get("options") or ""
        options = " ".join([str(given), *(f"-c {name}={value}" for name, value in _get_session().items())])

        def connect() -> psycopg.Connection:
            try:
                return psycopg.connect(self._url, options=options, connect_timeout=int(BOUND))
            except psycopg.OperationalError as error:
                raise _unavailable(error) from error

        return create_engine("postgresql+psycopg://", creator=connect, **self._pool)

    @asynccontextmanager
    async def transact(self) -> AsyncIterator[AsyncConnection]:
        """A transaction, committed unless something is raised. TransientError where it can't connect."""
        with _noticing_loss():
            async with self._async.begin() as connection:
                yield connection

    @contextmanager
    def transact_blocking(self) -> Iterator[Connection]:
        """The same for a thread."""
        with _noticing_loss(), self._blocking.begin() as connection:
            yield connection

    def begin(self, connection: Connection, claim: Claim, now: datetime) -> Stored | None:
        """What is stored for the effect, or None: then it is this transaction's to run.

        Whoever else begins it waits until this transaction ends. Raises StaleClaim.
        """
        given = {"step": claim.step, "token": claim.token, "digest": claim.digest, "now": now}
        with _translated():
            found = connection.execute(self._begin, given).scalar_one()
        if found is None:
            return None
        stored = hygiene.loads(str(found).encode())
        return Stored(stored["result"] if isinstance(stored, dict) else None)

    def end(self, connection: Connection, claim: Claim, result: Json) -> None:
        """Store the result. Raises StaleClaim, so that what the effect has done is rolled back with it."""
        written = hygiene.dumps(result).decode()
        with _translated():
            connection.execute(
                self._end, {"step": claim.step, "token": claim.token, "digest": claim.digest, "result": written}
            )


def _compile(statement: str, *names: str) -> TextClause:
    return text(statement).bindparams(*(bindparam(name, type_=_TYPES[name]) for name in names))


def _get_session() -> dict[str, str]:
    bound = str(int(BOUND * 1000))
    waits = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    return {**dict.fromkeys(waits, bound), "application_name": "korak-effects"}


@contextmanager
def _noticing_loss() -> Iterator[None]:
    """A lost connection is no fault of the handler's; every other error of its statements is its own to see."""
    try:
        yield
    except DBAPIError as error:
        if error.connection_invalidated or (getattr(error.orig, "sqlstate", None) or "").startswith(LOST):
            raise _unavailable(error) from error
        raise
    except PendingRollbackError as error:
        raise _unavailable(error) from error


def _unavailable(error: Exception) -> TransientError:
    return TransientError("unavailable", what="The database", why=str(error))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) == STALE:
            raise StaleClaim from None
        raise
