"""Databases for tests that commit, each a copy of the template: emptied in between, as to drop one takes seconds.

One is lent again only where nothing tells it from a new copy: its catalogue is the template's, nobody is connected,
nothing was analysed and it hasn't grown. All others are dropped at the end, when nobody waits for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg import sql
from psycopg.rows import class_row, scalar_row

from tests.support import databases

Connection: TypeAlias = psycopg.Connection[Any]

GROWN = 4 << 20
"""How many bytes more than a new copy one may have: what deletes leave behind makes later scans slow."""


class Look(NamedTuple):
    """What one looks like: a digest of its catalogue, how many relations have statistics, its size in bytes."""

    catalogue: str
    analysed: int
    size: int


LOOK = """
    with ours as (select oid from pg_namespace where nspname !~ '^(pg_|information_schema)'),
         relations as (select oid, relname, relkind, reloptions, relchecks
                       from pg_class where relnamespace in (select oid from ours))
    select md5(concat_ws('|',
               (select string_agg(ours.oid::text, ',' order by oid) from ours),
               (select string_agg(relations::text, ',' order by oid) from relations),
               (select string_agg((attrelid, attnum, attname, atttypid, attnotnull, atthasdef, attisdropped)::text, ','
                                  order by attrelid, attnum)
                from pg_attribute where attrelid in (select oid from relations)),
               (select string_agg((indexrelid, indisvalid)::text, ',' order by indexrelid)
                from pg_index where indrelid in (select oid from relations)),
               (select string_agg((oid, convalidated)::text, ',' order by oid)
                from pg_constraint where connamespace in (select oid from ours)),
               (select string_agg((oid, tgenabled)::text, ',' order by oid)
                from pg_trigger where tgrelid in (select oid from relations)),
               (select string_agg((oid, prosrc)::text, ',' order by oid)
                from pg_proc where pronamespace in (select oid from ours)),
               (select string_agg(setconfig::text, ',') from pg_db_role_setting
                where setdatabase = (select oid from pg_database where datname = current_database()))
           )) as catalogue,
           (select count(distinct starelid)::integer
            from pg_statistic where starelid in (select oid from relations)) as analysed,
           pg_database_size(current_database()) as size
"""

OTHERS = """
    from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
"""

TABLES = "select schemaname, tablename from pg_tables where schemaname !~ '^(pg_|information_schema)'"

SEQUENCES = """
    select setval(format('%I.%I', schemaname, sequencename), start_value, false), pg_stat_reset()
    from pg_sequences
"""


class Clones:
    """Lends databases of one server; `close` has them all dropped."""

    def __init__(self, server: str, template: str) -> None:
        self._server = server
        self._template = template
        self._made: list[str] = []
        self._free: list[str] = []
        self._new: Look | None = None
        self._rows: list[tuple[sql.Identifier, str]] = []

    @contextmanager
    def lend(self) -> Iterator[str]:
        """The URL of a database that is as the migrations have built it."""
        url = self._free.pop() if self._free else self._make()
        yield url
        with psycopg.connect(url, autocommit=True) as connection:
            if _count_connected(connection):
                self._shut(connection)
            elif self._is_as_new(connection):
                self._empty(connection)
                self._free.append(url)

    def make_empty(self) -> str:
        """The URL of one with nothing in it, which nobody gets again."""
        return self._note(databases.create(self._server))

    def close(self) -> None:
        """Have what was made dropped, while nobody waits for it."""
        databases.drop_later(self._server, self._made)

    def _note(self, url: str) -> str:
        self._made.append(url)
        return url

    def _make(self) -> str:
        url = self._note(databases.create(self._server, self._template))
        if self._new is None:
            with psycopg.connect(url, autocommit=True) as connection:
                self._new = _look(connection)
                self._rows = [(table, rows) for table in _list_tables(connection) if (rows := _read(connection, table))]
        return url

    def _is_as_new(self, connection: Connection) -> bool:
        assert self._new is not None
        look = _look(connection)
        is_same = (look.catalogue, look.analysed) == (self._new.catalogue, self._new.analysed)
        return is_same and look.size <= self._new.size + GROWN

    def _shut(self, connection: Connection) -> None:
        """Whoever is connected is thrown out, and doesn't come back."""
        name = sql.Identifier(connection.info.dbname)
        with psycopg.connect(self._server, autocommit=True) as server:
            server.execute(sql.SQL("alter database {} allow_connections false").format(name))
        connection.execute(f"select pg_terminate_backend(pid) {OTHERS}")

    def _empty(self, connection: Connection) -> None:
        with connection.transaction():
            connection.execute("set local session_replication_role = replica")
            connection.execute("set local synchronous_commit = off")
            for table in _list_tables(connection):
                connection.execute(sql.SQL("delete from {}").format(table))
            for table, rows in self._rows:
                fill = "insert into {0} overriding system value select * from json_populate_recordset(null::{0}, %s)"
                connection.execute(sql.SQL(fill).format(table), [rows])
            connection.execute(SEQUENCES)


def _look(connection: Connection) -> Look:
    with connection.cursor(row_factory=class_row(Look)) as cursor:
        look = cursor.execute(LOOK).fetchone()
    assert look is not None
    return look


def _count_connected(connection: Connection) -> int:
    with connection.cursor(row_factory=scalar_row) as cursor:
        return int(cursor.execute(f"select count(*) {OTHERS}").fetchone() or 0)


def _list_tables(connection: Connection) -> list[sql.Identifier]:
    return [sql.Identifier(*row) for row in connection.execute(TABLES)]


def _read(connection: Connection, table: sql.Identifier) -> str | None:
    """Its rows as JSON, None where it has none."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        rows = cursor.execute(sql.SQL("select json_agg(rows) from {} rows").format(table)).fetchone()
    return None if rows is None else json.dumps(rows)
