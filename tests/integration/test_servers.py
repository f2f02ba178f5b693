"""The test servers themselves: databases are apart and as new, and what killed runs left is dropped."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import aio_pika
import asyncpg
import psycopg
import pytest
from psycopg import sql

from tests.support import databases, servers, vhosts
from tests.support.clones import Clones

GONE = 4_194_305  # above the largest pid of any system we run on


def list_databases(server: str) -> set[str]:
    with psycopg.connect(server) as connection:
        return {name for (name,) in connection.execute("select datname from pg_database")}


async def test_each_test_has_a_database_of_its_own(database_url: str, shared_database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        name = await connection.fetchval("select current_database()")
    finally:
        await connection.close()
    assert name.startswith(databases.PREFIX)
    assert name not in shared_database_url


def write(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)


def read(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


KEPT = "select (select count(*) from korak.flow_weights), (select version from korak.hold_state)"
NUMBER = "select nextval('korak.workflow_instances_id_seq')"


def test_a_database_is_lent_again_as_if_nobody_had_had_it(clones: Clones) -> None:
    with clones.lend() as first:
        kept, number = read(first, KEPT), read(first, NUMBER)
        write(first, "insert into korak.flow_weights values ('team:1', 2)")
        write(first, "update korak.hold_state set version = version + 7")
        write(first, "delete from korak.alembic_version")
        assert read(first, KEPT) != kept
    with clones.lend() as second:
        assert second == first
        assert read(second, KEPT) == kept
        assert read(second, NUMBER) == number
        assert len(read(second, "select * from korak.alembic_version")) == 1


@pytest.mark.parametrize(
    "change",
    [
        "drop index korak.wwait_due_idx",
        "alter table korak.workflow_waits alter column payload set not null",
        "create function korak.late() returns trigger language plpgsql as 'begin return new; end'",
        "alter table korak.workflow_versions disable trigger all",
        "create table public.mine (id integer)",
        "analyze korak.hold_state",
        "insert into korak.flow_weights select 'team:' || repeat('1', 100) || n, 2 from generate_series(1, 30000) n",
    ],
)
def test_one_that_differs_from_a_new_one_is_not_lent_again(clones: Clones, change: str) -> None:
    with clones.lend() as first:
        write(first, change)
    with clones.lend() as second:
        assert second != first


def test_nor_one_to_which_somebody_is_connected_who_is_thrown_out(clones: Clones) -> None:
    with clones.lend() as first:
        left = psycopg.connect(first)
    with clones.lend() as second:
        assert second != first
    with closing(left), pytest.raises(psycopg.OperationalError):
        left.execute("select 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(first)


async def test_the_connection_is_in_a_transaction(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    assert connection.is_in_transaction()


def test_an_empty_database_has_no_schema_of_ours(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        row = connection.execute("select count(*) from pg_namespace where nspname = %s", [databases.SCHEMA]).fetchone()
    assert row == (0,)


def test_what_a_killed_run_left_is_dropped(postgres_url: str) -> None:
    abandoned = f"{databases.PREFIX}{GONE}_1"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(abandoned)))
    with databases.empty(postgres_url) as url:
        databases.drop_abandoned(postgres_url)
        left = list_databases(postgres_url)
    assert abandoned not in left
    assert urlsplit(url).path.removeprefix("/") in left


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{databases.PREFIX}{GONE}_1", True),
        (f"{databases.PREFIX}{os.getpid()}_1", False),
        ("postgres", False),
        (f"korak_test_00000000_{GONE}_1", False),
    ],
    ids=["dead process", "live process", "not ours", "another machine"],
)
def test_only_the_databases_of_dead_processes_of_this_machine_are_abandoned(name: str, expected: bool) -> None:
    assert databases.is_abandoned(name) is expected


@pytest.mark.slow
def test_an_embedded_postgres_serves_where_there_is_no_other(tmp_path: Path) -> None:
    with servers.embedded_postgres(tmp_path / "postgres") as url:
        with databases.empty(url) as own:
            assert servers.is_answering(own)
        assert servers.is_answering(url)
    assert not servers.is_answering(url)


async def test_each_test_has_a_vhost_of_its_own(amqp_url: str) -> None:
    connection = await aio_pika.connect(amqp_url)
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("korak.steps.probe", exclusive=True)
        assert queue.declaration_result.message_count == 0


def test_vhosts_differ_and_go_away() -> None:
    scripts: list[str] = []

    def shell(script: str) -> str:
        scripts.append(script)
        return f"/\n{databases.PREFIX}{GONE}_7\n" if "list_vhosts" in script else ""

    pool = vhosts.Vhosts(servers.Broker("amqp://guest:guest@127.0.0.1:5672/", shell))
    taken = [pool.take() for _ in range(vhosts.POOL + 1)]
    pool.close()
    assert len(set(taken)) == vhosts.POOL + 1
    deleted = [script.split()[-1] for script in scripts if "delete_vhost" in script]
    assert deleted[0] == f"{databases.PREFIX}{GONE}_7"
    assert len(deleted) == 1 + 2 * vhosts.POOL


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("rabbitmq-server") is None, reason="no rabbitmq-server is installed")
def test_a_rabbitmq_of_the_runs_own_serves_where_there_is_no_other() -> None:
    with tempfile.TemporaryDirectory(prefix="korak-rabbitmq-") as directory:
        with servers.own_rabbitmq(Path(directory)) as broker:
            pool = vhosts.Vhosts(broker)
            port = urlsplit(pool.take()).port
            assert port is not None
            assert servers.is_listening(port)
        assert not servers.is_listening(port)
