"""once() and recall() on a real Postgres: spec 9, DESIGN 5, invariant 5."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext, suppress
from typing import Any, cast

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from korak import config
from korak.core.facts import HandlerResult, Raised
from korak.model import Json
from korak.steps.contract import BlockingContext, Complete, StepContext
from korak.steps.function import step
from korak_engine.work import Work
from korak_migrations import grant_effects
from tests.integration.migrations.rows import RUNNING, SEED, insert, insert_instance
from tests.support import eventually
from tests.support.attempts import TOKEN, ULID, Bench, benched
from tests.support.databases import own_name

SPEND = text("insert into public.ledger values (:amount)")
OTHER = "01J0000000000000000000000Z"
KEY = f"wf:{ULID}:n:1"


@pytest.fixture(params=["a role of its own", "the plain connection"])
def database(request: pytest.FixtureRequest, database_url: str) -> Iterator[config.Database]:
    """The settings of a database in which one step runs and the user has a table of its own."""
    role = own_name()
    with psycopg.connect(database_url) as connection:
        insert_instance(connection)
        insert(connection, "workflow_step_runs", RUNNING | {"id": SEED, "claim_token": TOKEN, "idempotency_key": "x"})
        connection.execute("create table public.ledger (amount integer not null)")
    if request.param == "the plain connection":
        yield config.Database(url=database_url)
    else:
        yield from _grant(database_url, role)
    with psycopg.connect(database_url) as connection:
        connection.execute("drop table public.ledger")


def _grant(url: str, role: str) -> Iterator[config.Database]:
    effects = grant_effects(url, "korak", role, "it's s3cret @:/")
    with psycopg.connect(url) as connection:
        connection.execute(sql.SQL("grant select, insert on public.ledger to {}").format(sql.Identifier(role)))
    yield config.Database(url=url, effect_url=effects)
    with psycopg.connect(url) as connection:
        connection.execute(sql.SQL("drop owned by {0} cascade").format(sql.Identifier(role)))
        connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@pytest.fixture
async def bench(database: config.Database) -> AsyncIterator[Bench]:
    async with benched(database=database, threads=4) as made:
        yield made


def execute(bench_database: config.Database, statement: str, *given: Any) -> list[tuple[Any, ...]]:
    """What a statement of the owner gives, committed."""
    with psycopg.connect(bench_database.url, options="-c search_path=korak") as connection:
        cursor = connection.execute(statement, given)
        return cursor.fetchall() if cursor.description else []


def read_ledger(database: config.Database) -> list[int]:
    return [amount for (amount,) in execute(database, "select amount from public.ledger order by 1")]


async def spend(connection: AsyncConnection, amount: int, result: Json) -> Json:
    await connection.execute(SPEND, {"amount": amount})
    return result


def spend_blocking(connection: Connection, amount: int, result: Json) -> Json:
    connection.execute(SPEND, {"amount": amount})
    return result


@step("test.pays")
async def pays(ctx: StepContext, amount: int, result: Any = "paid", name: str = "charge") -> dict[str, Any]:
    paid = await ctx.once(name, lambda connection: spend(connection, amount, result))
    return {"paid": paid, "recalled": await ctx.recall(name), "other": await ctx.recall("other")}


@step("test.pays_blocking")
def pays_blocking(ctx: BlockingContext, amount: int, result: Any = "paid", name: str = "charge") -> dict[str, Any]:
    paid = ctx.once(name, lambda connection: spend_blocking(connection, amount, result))
    return {"paid": paid, "recalled": ctx.recall(name), "other": ctx.recall("other")}


FACES = pytest.mark.parametrize("given", [pays, pays_blocking])


def make(bench: Bench, given: Any, **how: Any) -> Work:
    """An attempt of the step that runs in the database."""
    return bench.make(given, id=SEED, **how)


async def run(
    bench: Bench, given: Any, amount: int, *, visit: int = 1, attempt: int = 1, **members: Any
) -> HandlerResult:
    written = {"amount": amount, **members}
    return await bench.handlers.run(make(bench, given, config=written, visit=visit, attempt=attempt))


def paid(result: Any) -> Complete:
    return Complete("next", {"paid": result, "recalled": result, "other": None})


@FACES
async def test_id_6_an_effect_runs_once_a_visit_whatever_the_attempt(
    bench: Bench, database: config.Database, given: Any
) -> None:
    assert await run(bench, given, 10, result={"id": 1}) == paid({"id": 1})
    assert await run(bench, given, 20, result={"id": 2}) == paid({"id": 1})
    assert await run(bench, given, 30, result={"id": 3}, attempt=2) == paid({"id": 1})
    assert read_ledger(database) == [10]


@FACES
async def test_id_9_another_visit_is_another_effect(bench: Bench, database: config.Database, given: Any) -> None:
    await run(bench, given, 10)
    await run(bench, given, 20, visit=2)

    assert read_ledger(database) == [10, 20]


@FACES
async def test_id_6_another_name_is_another_effect(bench: Bench, database: config.Database, given: Any) -> None:
    await run(bench, given, 10)
    await run(bench, given, 20, name="refund")

    assert read_ledger(database) == [10, 20]


async def test_id_7_both_faces_share_one_ledger(bench: Bench, database: config.Database) -> None:
    await run(bench, pays, 10, result=1)

    assert await run(bench, pays_blocking, 20, result=2) == paid(1)
    assert read_ledger(database) == [10]


@FACES
@pytest.mark.parametrize("result", [None, False, 0, [], {"result": None}])
async def test_id_13_a_result_that_is_nothing_is_done_all_the_same(
    bench: Bench, database: config.Database, given: Any, result: Any
) -> None:
    for amount in (10, 20):
        assert await run(bench, given, amount, result=result) == paid(result)
    assert read_ledger(database) == [10]


@FACES
async def test_id_1_and_id_11_the_ledger_keeps_a_digest_and_no_key(
    bench: Bench, database: config.Database, given: Any
) -> None:
    await run(bench, given, 10, name="a-name-to-find")

    ((row,),) = execute(database, "select to_jsonb(k)::text from workflow_idempotency_keys k")
    assert "a-name-to-find" not in row
    assert KEY not in row
    ((digest, kept, scope),) = execute(database, "select key, result, scope from workflow_idempotency_keys")
    assert (len(digest), kept, scope) == (64, "paid", "effect")


@FACES
async def test_id_8_recall_before_once_is_nothing_and_leaves_nothing(
    bench: Bench, database: config.Database, given: Any
) -> None:
    await run(bench, given, 10)

    assert execute(database, "select count(*) from workflow_idempotency_keys") == [(1,)]


# rolled back


@step("test.fails_once")
async def fails_once(ctx: StepContext) -> dict[str, Any]:
    async def fail(connection: AsyncConnection) -> Json:
        await spend(connection, 1, None)
        raise ValueError("after the effect")

    await ctx.once("charge", fail)
    return {}


@step("test.fails_once_blocking")
def fails_once_blocking(ctx: BlockingContext) -> dict[str, Any]:
    def fail(connection: Connection) -> Json:
        spend_blocking(connection, 1, None)
        raise ValueError("after the effect")

    ctx.once("charge", fail)
    return {}


@pytest.mark.parametrize(("given", "then"), [(fails_once, pays), (fails_once_blocking, pays_blocking)])
async def test_id_7_an_exception_takes_the_effect_back_and_it_runs_again(
    bench: Bench, database: config.Database, given: Any, then: Any
) -> None:
    result = await bench.handlers.run(make(bench, given))

    assert isinstance(result, Raised)
    assert (result.code, result.message, result.is_retryable) == ("exception", "after the effect", True)
    assert read_ledger(database) == []
    assert execute(database, "select count(*) from workflow_idempotency_keys") == [(0,)]
    assert await run(bench, then, 10) == paid("paid")


@step("test.returns_rubbish")
async def returns_rubbish(ctx: StepContext, size: int = 0) -> dict[str, Any]:
    rubbish: Any = "x" * size if size else {"a": {1}}
    await ctx.once("charge", lambda connection: spend(connection, 1, rubbish))
    return {}


@step("test.returns_rubbish_blocking")
def returns_rubbish_blocking(ctx: BlockingContext, size: int = 0) -> dict[str, Any]:
    rubbish: Any = "x" * size if size else {"a": {1}}
    ctx.once("charge", lambda connection: spend_blocking(connection, 1, rubbish))
    return {}


@pytest.mark.parametrize("given", [returns_rubbish, returns_rubbish_blocking])
@pytest.mark.parametrize("size", [0, 2_000_000])
async def test_a_result_that_can_not_be_stored_takes_the_effect_back(
    bench: Bench, database: config.Database, given: Any, size: int
) -> None:
    result = await bench.handlers.run(make(bench, given, config={"size": size}))

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("invalid_output", False)
    assert read_ledger(database) == []


# lost tokens


@FACES
async def test_a_handler_without_its_token_does_not_begin(bench: Bench, database: config.Database, given: Any) -> None:
    work = make(bench, given, config={"amount": 10}, token=OTHER)
    result = await bench.handlers.run(work)

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("stale_attempt", False)
    assert work.is_cancelled
    assert read_ledger(database) == []


class Late:
    """Effects whose token is lost while they run."""

    def __init__(self, database: config.Database) -> None:
        self._database = database

    def lose(self) -> None:
        execute(self._database, "update workflow_step_runs set claim_token = %s", OTHER)

    async def spend(self, connection: AsyncConnection) -> Json:
        await spend(connection, 10, None)
        await asyncio.to_thread(self.lose)
        return None

    def spend_blocking(self, connection: Connection) -> Json:
        spend_blocking(connection, 10, None)
        self.lose()
        return None


@pytest.mark.parametrize("is_blocking", [False, True])
async def test_invariant_5_a_late_holder_can_not_commit(
    bench: Bench, database: config.Database, is_blocking: bool
) -> None:
    late = Late(database)

    @step("test.late")
    async def pays_late(ctx: StepContext) -> dict[str, Any]:
        return {"paid": await ctx.once("charge", late.spend)}

    @step("test.late_blocking")
    def pays_late_blocking(ctx: BlockingContext) -> dict[str, Any]:
        return {"paid": ctx.once("charge", late.spend_blocking)}

    work = make(bench, pays_late_blocking if is_blocking else pays_late)
    result = await bench.handlers.run(work)

    assert isinstance(result, Raised)
    assert result.code == "stale_attempt"
    assert work.is_cancelled
    assert read_ledger(database) == []
    assert execute(database, "select count(*) from workflow_idempotency_keys") == [(0,)]


async def test_a_handler_cancelled_inside_an_effect_leaves_nothing(bench: Bench, database: config.Database) -> None:
    began = asyncio.Event()

    @step("test.hangs_inside")
    async def hangs_inside(ctx: StepContext) -> dict[str, Any]:
        async def hang(connection: AsyncConnection) -> Json:
            await spend(connection, 1, None)
            began.set()
            await asyncio.Event().wait()
            return None

        await ctx.once("charge", hang)
        return {}

    work = make(bench, hangs_inside)
    task = bench.start(work)
    await began.wait()
    work.is_settled = True
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert read_ledger(database) == []
    assert await run(bench, pays, 10) == paid("paid")


# at the same time


async def is_blocked(database: config.Database) -> bool:
    found = execute(
        database,
        "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        " and wait_event = 'transactionid'",
    )
    return bool(found)


async def test_id_12_a_second_one_waits_for_the_first_and_gets_its_result(
    bench: Bench, database: config.Database
) -> None:
    began, go_on = threading.Event(), threading.Event()

    @step("test.slow")
    def slow(ctx: BlockingContext) -> dict[str, Any]:
        def wait(connection: Connection) -> Json:
            began.set()
            go_on.wait()
            return spend_blocking(connection, 1, "first")

        return {"paid": ctx.once("charge", wait)}

    first = bench.start(make(bench, slow))
    await eventually(began.is_set)
    second = asyncio.create_task(run(bench, pays, 2, result="second"))
    await eventually(lambda: is_blocked(database))
    go_on.set()

    assert await first == Complete("next", {"paid": "first"})
    assert await second == paid("first")
    assert read_ledger(database) == [1]


@FACES
async def test_many_at_once_have_one_effect(bench: Bench, database: config.Database, given: Any) -> None:
    results = await asyncio.gather(*(run(bench, given, 10) for _ in range(20)))

    assert results == [paid("paid")] * 20
    assert read_ledger(database) == [10]


# the database itself


@FACES
async def test_a_database_that_is_away_is_an_exception_and_tried_again(
    bench: Bench, database: config.Database, given: Any
) -> None:
    await run(bench, given, 10)
    execute(
        database,
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()",
    )

    assert await run(bench, given, 20) == paid("paid")
    assert read_ledger(database) == [10]


END_OWN = text("select pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize("is_swallowed", [False, True])
async def test_a_connection_that_is_lost_in_an_effect_is_no_fault_of_the_handlers(
    bench: Bench, database: config.Database, is_swallowed: bool
) -> None:
    async def die(connection: AsyncConnection) -> Json:
        with suppress(DBAPIError) if is_swallowed else nullcontext():
            await connection.execute(END_OWN)
        return 1

    def die_blocking(connection: Connection) -> Json:
        with suppress(DBAPIError) if is_swallowed else nullcontext():
            connection.execute(END_OWN)
        return 1

    @step("test.dies")
    async def dies(ctx: StepContext) -> dict[str, Any]:
        return {"it": await ctx.once("die", die)}

    @step("test.dies_blocking")
    def dies_blocking(ctx: BlockingContext) -> dict[str, Any]:
        return {"it": ctx.once("die", die_blocking)}

    for given in (dies, dies_blocking):
        result = await bench.handlers.run(make(bench, given))
        assert isinstance(result, Raised)
        assert (result.code, result.is_retryable) == ("unavailable", True)


@FACES
async def test_a_database_that_can_not_be_reached_is_no_fault_of_the_handlers(given: Any) -> None:
    async with benched(database=config.Database(url="postgresql://nobody@127.0.0.1:1/x"), threads=1) as bench:
        result = await run(bench, given, 10)

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("unavailable", True)


async def test_the_bounds_of_an_effect_are_those_of_its_connection(bench: Bench, database: config.Database) -> None:
    asked = text("select current_setting('statement_timeout'), current_setting('lock_timeout'), current_user")

    @step("test.asks_settings")
    async def asks_settings(ctx: StepContext) -> dict[str, Any]:
        async def ask(connection: AsyncConnection) -> Json:
            return list((await connection.execute(asked)).one())

        return {"settings": await ctx.once("ask", ask)}

    @step("test.asks_settings_blocking")
    def asks_settings_blocking(ctx: BlockingContext) -> dict[str, Any]:
        return {"settings": ctx.once("ask-blocking", lambda connection: list(connection.execute(asked).one()))}

    for given in (asks_settings, asks_settings_blocking):
        result = await bench.handlers.run(make(bench, given))
        assert isinstance(result, Complete), result
        statement, lock, user = cast("list[str]", result.output["settings"])
        assert (statement, lock) == ("30s", "30s")
        assert (user != "postgres") is (database.effect_url is not None)


async def test_a_statement_that_fails_is_the_handlers_to_see(bench: Bench) -> None:
    @step("test.wrong_statement")
    async def wrong_statement(ctx: StepContext) -> dict[str, Any]:
        await ctx.once("charge", lambda connection: connection.execute(text("select * from nowhere")))
        return {}

    result = await bench.handlers.run(make(bench, wrong_statement))

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("exception", True)
    assert "nowhere" in (result.message or "")


def test_a_schema_is_named_whatever_it_is_called() -> None:
    from korak.store.effects import EffectDatabase

    made = EffectDatabase("postgresql://nobody@127.0.0.1:1/x", 'a "b":c')
    assert 'select "a ""b"":c".effect_begin(' in str(made._begin)
