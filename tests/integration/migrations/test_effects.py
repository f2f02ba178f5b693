"""The role of `once()` and its two doors: ID-6, ID-7, ID-12, ID-13, and the wall around everything else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, TypeAlias

import asyncpg
import psycopg
import pytest
from psycopg import sql

from korak.errors import SettingsError
from korak.store import urls
from korak_migrations import grant_effects, upgrade
from tests.integration.migrations.rows import AT, RUNNING, SEED, ULID, insert, insert_instance
from tests.support import eventually
from tests.support.databases import own_name

TOKEN = ULID
OTHER = "01J0000000000000000000000Z"
DIGEST = "e" * 64
STALE = "KR001"

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


@pytest.fixture
def role(database_url: str) -> Iterator[str]:
    """A free name for a role; dropped afterwards with what it was granted."""
    name = own_name()
    yield name
    with psycopg.connect(database_url) as connection:
        if connection.execute("select 1 from pg_roles where rolname = %s", [name]).fetchone():
            connection.execute(sql.SQL("drop owned by {0} cascade").format(sql.Identifier(name)))
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


@pytest.fixture
def effect_url(database_url: str, role: str) -> str:
    """The address of `once()`, in a database where one step runs and the user has a table of its own."""
    with psycopg.connect(database_url) as connection:
        insert_instance(connection)
        insert(connection, "workflow_step_runs", RUNNING | {"id": SEED})
        connection.execute("create table public.ledger (amount integer not null)")
    url = grant_effects(database_url, "korak", role, "it's s3cret @:/")
    assert url is not None
    with psycopg.connect(database_url) as connection:
        connection.execute(sql.SQL("grant select, insert on public.ledger to {}").format(sql.Identifier(role)))
    return url


@pytest.fixture
async def first(effect_url: str) -> AsyncIterator[Session]:
    """A connection of the effect role."""
    connection = await asyncpg.connect(effect_url)
    yield connection
    await connection.close()


@pytest.fixture
async def second(effect_url: str) -> AsyncIterator[Session]:
    """Another one."""
    connection = await asyncpg.connect(effect_url)
    yield connection
    await connection.close()


@pytest.fixture
async def engine(database_url: str, effect_url: str) -> AsyncIterator[Session]:
    """A connection that may everything, as an engine's."""
    connection = await asyncpg.connect(database_url, server_settings={"search_path": "korak"})
    yield connection
    await connection.close()


async def begin(session: Session, *, token: str = TOKEN, digest: str = DIGEST) -> Any:
    """What is stored for the effect; None where it is to be run."""
    answer = await session.fetchval("select korak.effect_begin($1, $2, $3, $4)", SEED, token, digest, AT)
    return None if answer is None else json.loads(answer)


async def end(session: Session, result: Any, *, token: str = TOKEN, digest: str = DIGEST) -> None:
    """Store the result."""
    await session.execute("select korak.effect_end($1, $2, $3, $4)", SEED, token, digest, json.dumps(result))


async def run(session: Session, amount: int) -> Any:
    """once(): what it returned the first time, whoever asks."""
    async with session.transaction():
        stored = await begin(session)
        if stored is None:
            await session.execute("insert into public.ledger values ($1)", amount)
            await end(session, {"amount": amount})
            return {"amount": amount}
        return stored["result"]


async def ledger(session: Session) -> list[int]:
    return [row["amount"] for row in await session.fetch("select amount from public.ledger")]


async def blocked(watcher: Session, session: Session) -> None:
    """Comes back when `session` waits for another transaction (STYLE 17)."""

    async def look() -> bool:
        found = await watcher.fetchval(
            "select wait_event from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'",
            session.get_server_pid(),
        )
        return bool(found == "transactionid")

    await eventually(look)


async def test_id_6_and_id_7_an_effect_runs_once_and_gives_its_result_again(first: Session, second: Session) -> None:
    assert await run(first, 10) == {"amount": 10}
    assert await run(second, 20) == {"amount": 10}
    assert await run(first, 30) == {"amount": 10}
    assert await ledger(first) == [10]


async def test_id_7_what_the_effect_wrote_goes_with_its_result(first: Session, engine: Session) -> None:
    transaction = first.transaction()
    await transaction.start()
    await begin(first)
    await first.execute("insert into public.ledger values (1)")
    await end(first, None)
    await transaction.rollback()

    assert await ledger(engine) == []
    assert await engine.fetchval("select count(*) from workflow_idempotency_keys") == 0
    assert await run(first, 2) == {"amount": 2}


async def test_id_12_a_second_one_waits_for_the_first_and_reads_its_result(
    first: Session, second: Session, engine: Session
) -> None:
    async with first.transaction():
        assert await begin(first) is None
        later = asyncio.create_task(run(second, 20))
        await blocked(engine, second)
        await end(first, {"amount": 10})

    assert await later == {"amount": 10}
    assert await ledger(engine) == []


async def test_id_12_a_second_one_runs_when_the_first_is_rolled_back(
    first: Session, second: Session, engine: Session
) -> None:
    transaction = first.transaction()
    await transaction.start()
    await begin(first)
    later = asyncio.create_task(run(second, 20))
    await blocked(engine, second)
    await transaction.rollback()

    assert await later == {"amount": 20}
    assert await ledger(engine) == [20]


@pytest.mark.parametrize("result", [None, False, 0, "", [], {}, {"result": None}])
async def test_id_13_a_result_that_is_nothing_is_done_all_the_same(first: Session, result: Any) -> None:
    async with first.transaction():
        assert await begin(first) is None
        await end(first, result)

    assert await begin(first) == {"result": result}


async def test_id_6_another_name_is_another_effect(first: Session) -> None:
    async with first.transaction():
        await begin(first)
        await end(first, 1)

    assert await begin(first, digest="f" * 64) is None


async def test_an_effect_with_a_stale_token_does_not_begin(first: Session, engine: Session) -> None:
    with pytest.raises(asyncpg.PostgresError, match="stale_attempt") as refused:
        await begin(first, token=OTHER)

    assert refused.value.sqlstate == STALE
    assert await engine.fetchval("select count(*) from workflow_idempotency_keys") == 0


async def test_an_effect_of_a_step_that_runs_no_more_does_not_begin(first: Session, engine: Session) -> None:
    await engine.execute("update workflow_step_runs set status = 'completed', finished_at = $1", AT)

    with pytest.raises(asyncpg.PostgresError) as refused:
        await begin(first)

    assert refused.value.sqlstate == STALE


@pytest.mark.parametrize("change", ["claim_token = $1", "claim_token = $1, status = 'queued'"])
async def test_a_late_holder_cannot_commit(first: Session, engine: Session, change: str) -> None:
    async def late() -> None:
        async with first.transaction():
            assert await begin(first) is None
            await first.execute("insert into public.ledger values (1)")
            await engine.execute(f"update workflow_step_runs set {change}", OTHER)
            await end(first, {"amount": 1})

    with pytest.raises(asyncpg.PostgresError) as refused:
        await late()

    assert refused.value.sqlstate == STALE
    assert await ledger(engine) == []
    assert await engine.fetchval("select count(*) from workflow_idempotency_keys") == 0


async def test_an_effect_that_has_ended_keeps_its_token_until_it_commits(
    first: Session, engine: Session, database_url: str
) -> None:
    async with first.transaction():
        await begin(first)
        await end(first, {"amount": 1})
        skipped = await engine.fetch("select id from workflow_step_runs for no key update skip locked")
        reclaim = asyncio.create_task(engine.execute("update workflow_step_runs set claim_token = $1", OTHER))
        watcher = await asyncpg.connect(database_url)
        await blocked(watcher, engine)
        await watcher.close()

    assert skipped == []
    assert await reclaim == "UPDATE 1"
    assert await engine.fetchval("select is_done from workflow_idempotency_keys")


async def test_an_effect_that_never_began_does_not_end(first: Session) -> None:
    with pytest.raises(asyncpg.PostgresError) as refused:
        await end(first, 1)

    assert refused.value.sqlstate == STALE


async def test_the_ledger_goes_with_its_instance(first: Session, engine: Session) -> None:
    await run(first, 1)
    await engine.execute("delete from workflow_instances")

    assert await engine.fetchval("select count(*) from workflow_idempotency_keys") == 0


async def test_the_role_reads_and_writes_no_table(first: Session, engine: Session) -> None:
    names = [
        row["tablename"] for row in await engine.fetch("select tablename from pg_tables where schemaname = 'korak'")
    ]
    for name in names:
        for statement in ("select 1 from korak.{}", "delete from korak.{}", "insert into korak.{} default values"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await first.execute(statement.format(name))
    assert len(names) > 15


async def test_the_role_makes_nothing_in_the_schema(first: Session) -> None:
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await first.execute("create table korak.mine (id bigint)")


async def test_the_functions_look_nowhere_but_in_their_schema(first: Session, engine: Session) -> None:
    await first.execute("create temporary table workflow_step_runs (id bigint, claim_token text, status text)")
    await first.execute("insert into workflow_step_runs values ($1, $2, 'running')", SEED, OTHER)
    await first.execute("set search_path = pg_temp, public")

    with pytest.raises(asyncpg.PostgresError) as refused:
        await begin(first, token=OTHER)

    assert refused.value.sqlstate == STALE


async def test_nobody_else_may_call_the_functions(database_url: str, effect_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("select proacl::text from pg_proc where proname like 'effect\\_%'").fetchall()
    assert len(rows) == 2
    assert all(access is not None and "{=" not in access and ",=" not in access for (access,) in rows)


def test_a_grant_may_be_repeated_with_another_password(database_url: str, effect_url: str, role: str) -> None:
    upgrade(database_url)

    assert grant_effects(database_url, "korak", role, "new") == urls.with_role(database_url, role, "new")


def test_a_grant_takes_back_what_the_role_had_besides(database_url: str, effect_url: str, role: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(sql.SQL("grant select on korak.tokens to {}").format(sql.Identifier(role)))

    grant_effects(database_url, "korak", role, "new")

    with psycopg.connect(database_url) as connection:
        row = connection.execute("select has_table_privilege(%s, 'korak.tokens', 'select')", [role]).fetchone()
    assert row == (False,)


def test_a_role_that_may_not_make_roles_gets_none(database_url: str, effect_url: str, role: str) -> None:
    assert grant_effects(effect_url, "korak", own_name(), "x") is None


def test_a_role_that_makes_roles_but_has_no_schema_gets_none(database_url: str, role: str) -> None:
    with psycopg.connect(database_url) as connection:
        named = sql.Identifier(role)
        connection.execute(sql.SQL("create role {} login createrole password 'maker'").format(named))
        connection.execute(sql.SQL("grant usage on schema korak to {}").format(named))
    wanted = own_name()

    assert grant_effects(urls.with_role(database_url, role, "maker"), "korak", wanted, "x") is None

    with psycopg.connect(database_url) as connection:
        assert connection.execute("select 1 from pg_roles where rolname = %s", [wanted]).fetchone() is None


def test_a_schema_that_was_not_migrated_gets_none(empty_database_url: str) -> None:
    wanted = own_name()
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("create schema korak")

    assert grant_effects(empty_database_url, "korak", wanted, "x") is None


def test_a_role_that_owns_the_store_is_refused(database_url: str, role: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
        connection.execute(sql.SQL("alter table korak.tokens owner to {}").format(sql.Identifier(role)))

    with pytest.raises(SettingsError, match=role):
        grant_effects(database_url, "korak", role, "x")
