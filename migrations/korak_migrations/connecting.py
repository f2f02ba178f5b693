"""Connections that migrate: search path, timeouts and the lock that lets one of them work at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from sqlalchemy.schema import CreateSchema

from korak.errors import TransientError
from korak.store import urls

DEFAULT_SCHEMA = "korak"
VERSION_TABLE = "alembic_version"
LOCK_TIMEOUT = "4s"
STATEMENT_TIMEOUT = "60s"
TURN_TIMEOUT = "15min"
"""How long one migration waits for another to finish."""


@contextmanager
def connect(url: str, schema: str) -> Iterator[Connection]:
    """A connection whose search path is `schema` alone, there or not. Raises TransientError where none can be had."""
    engine = create_engine(urls.blocking(url), poolclass=NullPool)

    @event.listens_for(engine, "connect", insert=True)
    def prepare(raw: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        path = '"' + schema.replace('"', '""') + '"'
        cursor = raw.cursor()
        cursor.execute("select set_config('search_path', %s, false)", (path,))
        cursor.close()
        raw.commit()

    try:
        with _open(engine) as connection:
            connection.dialect.default_schema_name = schema
            yield connection
    finally:
        engine.dispose()


def _open(engine: Engine) -> Connection:
    try:
        return engine.connect()
    except OperationalError as error:
        raise TransientError("unavailable", what="The database", why=str(error.orig)) from error


@contextmanager
def lock(connection: Connection, schema: str) -> Iterator[None]:
    """Hold the migrations' advisory lock of `schema`, with the timeouts of a migration, in a schema that exists."""
    key = {"name": f"korak_migrations:{schema}"}
    _limit(connection, locks=TURN_TIMEOUT, statements=TURN_TIMEOUT)
    connection.execute(text("select pg_advisory_lock(hashtextextended(:name, 0))"), key)
    connection.commit()
    try:
        _limit(connection, locks=LOCK_TIMEOUT, statements=STATEMENT_TIMEOUT)
        _make_schema(connection, schema)
        yield
    finally:
        connection.rollback()
        connection.execute(text("select pg_advisory_unlock(hashtextextended(:name, 0))"), key)
        connection.commit()


def _limit(connection: Connection, *, locks: str, statements: str) -> None:
    setting = text(
        "select set_config('lock_timeout', :locks, false), set_config('statement_timeout', :statements, false)"
    )
    connection.execute(setting, {"locks": locks, "statements": statements})
    connection.commit()


def _make_schema(connection: Connection, schema: str) -> None:
    # Asked first: `create schema if not exists` wants the privilege to create even where there is nothing to do.
    there = connection.execute(text("select 1 from pg_namespace where nspname = :schema"), {"schema": schema})
    if there.first() is None:
        connection.execute(CreateSchema(schema))
    connection.commit()
