"""`korak_migrations.upgrade`: fresh, repeated, side by side, under odd names and without a superuser (STYLE 18)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from psycopg import sql
from sqlalchemy import text
from sqlalchemy.exc import ProgrammingError

import korak_migrations
from korak.store import urls
from korak_migrations.connecting import LOCK_TIMEOUT, STATEMENT_TIMEOUT, connect, lock
from tests.support.databases import own_name
from tests.support.waiting import eventually_blocking

ROOT = Path(__file__).parents[3]
PACKAGE = Path(korak_migrations.__file__).parent
ODD = ["Korak Two", 'say "hi"', "50%s:x'y\\", "čas-œuvre", "public", "user"]


def tables_of(url: str, schema: str) -> set[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("select tablename from pg_tables where schemaname = %s", [schema]).fetchall()
    return {name for (name,) in rows}


def test_a_fresh_database_is_brought_to_the_one_head(empty_database_url: str) -> None:
    assert korak_migrations.current(empty_database_url) is None

    korak_migrations.upgrade(empty_database_url)

    assert korak_migrations.current(empty_database_url) == korak_migrations.head()
    assert {"workflow_instances", "workflow_step_runs", "tokens", "alembic_version"} <= tables_of(
        empty_database_url, "korak"
    )
    assert tables_of(empty_database_url, "public") == set()


def test_the_tree_has_one_head_and_a_straight_line_to_it() -> None:
    config = Config()
    config.set_main_option("script_location", str(PACKAGE))
    script = ScriptDirectory.from_config(config)

    assert script.get_heads() == [korak_migrations.head()]
    assert all(not revision.is_merge_point and not revision.branch_labels for revision in script.walk_revisions())


def test_a_second_upgrade_does_nothing(empty_database_url: str) -> None:
    korak_migrations.upgrade(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        before = connection.execute("select oid from pg_class order by 1").fetchall()

    korak_migrations.upgrade(empty_database_url)

    with psycopg.connect(empty_database_url) as connection:
        assert connection.execute("select oid from pg_class order by 1").fetchall() == before


def test_two_upgrades_at_once_take_turns(empty_database_url: str) -> None:
    code = f"import korak_migrations; korak_migrations.upgrade({empty_database_url!r})"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    with connect(empty_database_url, "korak") as connection:
        with lock(connection, "korak"):
            processes = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(2)]
            eventually_blocking(lambda: waiting_for_their_turn(empty_database_url) == 2, timeout=30)
        assert [process.wait(timeout=30) for process in processes] == [0, 0]

    assert korak_migrations.current(empty_database_url) == korak_migrations.head()


def waiting_for_their_turn(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "select count(*) from pg_stat_activity"
            " where datname = current_database() and wait_event_type = 'Lock' and wait_event = 'advisory'"
        ).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("schema", ODD)
def test_any_schema_name_will_do(empty_database_url: str, schema: str) -> None:
    korak_migrations.upgrade(empty_database_url, schema)
    korak_migrations.upgrade(empty_database_url, schema)

    assert korak_migrations.current(empty_database_url, schema) == korak_migrations.head()
    assert "workflow_instances" in tables_of(empty_database_url, schema)
    with psycopg.connect(empty_database_url) as connection:
        paths = connection.execute("select proconfig from pg_proc where proname like 'effect\\_%'").fetchall()
    quoted = sql.Identifier(schema).as_string()
    assert len(paths) == 2
    assert all(path in ([f"search_path={quoted}, pg_temp"], [f"search_path={schema}, pg_temp"]) for (path,) in paths)


def test_two_schemas_of_one_database_are_two_stores(empty_database_url: str) -> None:
    korak_migrations.upgrade(empty_database_url, "one")

    assert korak_migrations.current(empty_database_url, "two") is None
    korak_migrations.upgrade(empty_database_url, "two")
    assert tables_of(empty_database_url, "one") == tables_of(empty_database_url, "two")


@pytest.mark.parametrize("spell", [urls.plain, urls.blocking, urls.asynchronous])
def test_any_spelling_of_the_address_will_do(empty_database_url: str, spell: type[str]) -> None:
    korak_migrations.upgrade(spell(empty_database_url))

    assert korak_migrations.current(spell(empty_database_url)) == korak_migrations.head()


def test_a_revision_that_fails_leaves_nothing_behind(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("create schema korak")
        connection.execute("create table korak.tokens (id bigint)")

    with pytest.raises(ProgrammingError, match="already exists"):
        korak_migrations.upgrade(empty_database_url)

    assert korak_migrations.current(empty_database_url) is None
    assert tables_of(empty_database_url, "korak") <= {"tokens", "alembic_version"}


def test_a_migration_runs_with_short_timeouts(empty_database_url: str) -> None:
    with connect(empty_database_url, "korak") as connection, lock(connection, "korak"):
        assert connection.execute(text("show lock_timeout")).scalar_one() == LOCK_TIMEOUT
        assert connection.execute(text("show statement_timeout")).scalar_one() in (STATEMENT_TIMEOUT, "1min")


def test_migrations_go_forward_only(empty_database_url: str) -> None:
    korak_migrations.upgrade(empty_database_url)
    config = Config()
    config.set_main_option("script_location", str(PACKAGE))
    with connect(empty_database_url, "korak") as connection:
        config.attributes["connection"] = connection
        with pytest.raises(NotImplementedError, match="forward only"):
            command.downgrade(config, "base")

    assert korak_migrations.current(empty_database_url) == korak_migrations.head()


def test_the_alembic_command_works_in_the_tree(empty_database_url: str) -> None:
    for arguments in (["upgrade", "head"], ["check"]):
        environment = {**os.environ, "KORAK_DATABASE__URL": empty_database_url}
        run = [sys.executable, "-m", "alembic", "-c", str(ROOT / "alembic.ini"), *arguments]
        subprocess.run(run, check=True, cwd=ROOT, env=environment, capture_output=True, timeout=50)

    assert korak_migrations.current(empty_database_url) == korak_migrations.head()


@pytest.mark.parametrize("path", sorted((PACKAGE / "versions").glob("*.py")), ids=lambda path: path.stem)
def test_revisions_import_nothing_from_korak(path: Path) -> None:
    names = [
        name
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    ]
    assert not [name for name in names if name.split(".")[0].startswith("korak")]


@pytest.fixture
def plain_role(empty_database_url: str) -> Iterator[str]:
    """A login role that is nothing but that: it neither administers nor owns."""
    name = own_name()
    role = sql.Identifier(name)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login password 'plain'").format(role))
        yield name
        connection.execute(sql.SQL("drop owned by {} cascade").format(role))
        connection.execute(sql.SQL("drop role {}").format(role))


def test_a_role_that_may_create_schemas_migrates(empty_database_url: str, plain_role: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("grant create on database {} to {}").format(database, sql.Identifier(plain_role)))
    url = urls.with_role(empty_database_url, plain_role, "plain")

    korak_migrations.upgrade(url)
    korak_migrations.upgrade(url)

    assert korak_migrations.current(url) == korak_migrations.head()


def test_a_role_that_may_not_migrates_a_schema_made_for_it(empty_database_url: str, plain_role: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute(sql.SQL("create schema korak authorization {}").format(sql.Identifier(plain_role)))
    url = urls.with_role(empty_database_url, plain_role, "plain")

    korak_migrations.upgrade(url)

    assert korak_migrations.current(url) == korak_migrations.head()
