"""Streaming handlers on a real Postgres: each chunk is stored at once, under the token (T-STR-1, T-STR-2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import psycopg
import pytest

from korak import config
from korak.clock import Clock
from korak.core.facts import HandlerResult, Raised
from korak.errors import KorakError
from korak.model import Json, JsonObject
from korak.steps.contract import BlockingContext, Complete, StepContext, StepType
from korak.steps.function import step
from korak.store import chunks
from korak.store.database import Database
from korak_engine.keeping import Keeper
from korak_engine.work import Work
from tests.integration.migrations.rows import RUNNING, SEED, insert, insert_instance
from tests.support import eventually
from tests.support.attempts import TOKEN, ULID, Bench, benched

OTHER = "01J0000000000000000000000Z"
LIMITS = config.Limits(max_chunks=6, max_chunk_bytes=10, max_stream_bytes=30, max_artifacts=2, max_artifact_bytes=20)
SEEN: list[Any] = []


def join(ctx: Any, chunks: Sequence[str]) -> dict[str, Any]:
    return {"all": "|".join(chunks)}


@step("test.writes", complete=join)
async def writes(ctx: StepContext, parts: list[Any], fails_after: int = 99) -> AsyncIterator[str]:
    done = ctx.chunks
    for number, part in enumerate(parts):
        if number >= len(done):
            if number == fails_after:
                raise ValueError("the pen broke")
            yield part


@step("test.writes_blocking", complete=join)
def writes_blocking(ctx: BlockingContext, parts: list[Any], fails_after: int = 99) -> Iterator[str]:
    done = ctx.chunks
    for number, part in enumerate(parts):
        if number >= len(done):
            if number == fails_after:
                raise ValueError("the pen broke")
            yield part


@step("test.writes_apart", complete=join, isolation="process")
def writes_apart(ctx: BlockingContext, parts: list[Any], fails_after: int = 99) -> Iterator[str]:
    done = ctx.chunks
    for number, part in enumerate(parts):
        if number >= len(done):
            if number == fails_after:
                raise ValueError("the pen broke")
            yield part


@step("test.stubborn")
async def stubborn(ctx: StepContext, parts: list[Any]) -> AsyncIterator[str]:
    for part in parts:
        try:
            yield part
        except KorakError as error:
            SEEN.append((error.code, ctx.cancelled))


class Pen(StepType):
    key = "test.pen"

    async def handle(self, ctx: StepContext) -> AsyncIterator[str]:
        yield "a"
        yield "b"

    async def complete(self, ctx: Any, chunks: Sequence[str]) -> JsonObject:
        return {"count": len(chunks), "same": ctx.chunks == list(chunks)}


@pytest.fixture
def database(database_url: str) -> config.Database:
    """A database in which one step runs."""
    with psycopg.connect(database_url) as connection:
        insert_instance(connection)
        running = RUNNING | {"id": SEED, "claim_token": TOKEN, "execution_id": ULID, "idempotency_key": "x"}
        insert(connection, "workflow_step_runs", running)
    return config.Database(url=database_url)


@pytest.fixture
async def keeper(database: config.Database) -> AsyncIterator[Keeper]:
    async with Database(database.url or "", "korak", pool=4, name="keeper") as pool:
        yield Keeper(LIMITS, Clock(), pool)


@pytest.fixture
async def bench(database: config.Database, keeper: Keeper) -> AsyncIterator[Bench]:
    async with benched(database=database, threads=4, keeper=keeper) as made:
        yield made


def make(bench: Bench, given: Any, attempt: int = 1, **members: Json) -> Work:
    return bench.make(given, id=SEED, instance=SEED, attempt=attempt, config=members)


async def run(bench: Bench, given: Any, attempt: int = 1, **members: Any) -> HandlerResult:
    return await bench.start(make(bench, given, attempt, **members))


def execute(database: config.Database, statement: str, *given: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url or "", options="-c search_path=korak") as connection:
        cursor = connection.execute(statement, given)
        return cursor.fetchall() if cursor.description else []


def read_chunks(database: config.Database) -> list[tuple[Any, ...]]:
    return execute(database, "select index, content from workflow_chunks order by execution_id, index")


FACES = pytest.mark.parametrize("given", [writes, writes_blocking, writes_apart])


@FACES
async def test_t_str_1_every_chunk_is_stored_and_the_output_is_made_of_all(
    bench: Bench, database: config.Database, given: Any
) -> None:
    work = make(bench, given, parts=["a", "b", "c", "d", "e"])
    assert await bench.start(work) == Complete("next", {"all": "a|b|c|d|e"})
    assert read_chunks(database) == list(enumerate("abcde"))
    left = work.list_left(Complete())
    assert left is not None
    assert left.has_streamed


@FACES
async def test_t_str_2_the_next_attempt_sees_what_was_stored_and_goes_on(
    bench: Bench, database: config.Database, given: Any
) -> None:
    parts = ["a", "b", "c", "d", "e"]
    failed = await run(bench, given, parts=parts, fails_after=3)
    assert isinstance(failed, Raised)
    assert (failed.code, failed.is_retryable) == ("exception", True)
    assert read_chunks(database) == list(enumerate("abc"))
    assert await run(bench, given, attempt=2, parts=parts) == Complete("next", {"all": "a|b|c|d|e"})
    assert read_chunks(database) == list(enumerate("abcde"))


async def test_a_class_streams_and_completes(bench: Bench) -> None:
    assert await run(bench, Pen) == Complete("next", {"count": 2, "same": True})


@FACES
@pytest.mark.parametrize(
    ("parts", "pointer"),
    [
        ([1], "/chunks/0"),
        (["a", "b\0"], "/chunks/1"),
        (["x" * 11], "/chunks/0"),
        (["x"] * 7, "/chunks/6"),
        (["x" * 10] * 4, "/chunks/3"),
    ],
)
async def test_what_can_not_be_a_chunk_is_invalid_output_with_its_place(
    bench: Bench, database: config.Database, given: Any, parts: list[Any], pointer: str
) -> None:
    work = make(bench, given, parts=[])
    work.input = {"parts": parts}
    result = await bench.start(work)
    assert isinstance(result, Raised)
    assert (result.code, result.params["pointer"], result.is_retryable) == ("invalid_output", pointer, False)
    assert len(read_chunks(database)) == int(pointer[-1])


@FACES
async def test_a_late_holder_stores_nothing_and_is_told(bench: Bench, database: config.Database, given: Any) -> None:
    """Invariant 5: the token is another's by now."""
    execute(database, "update workflow_step_runs set claim_token = %s", OTHER)
    work = make(bench, given, parts=["a", "b"])
    result = await bench.start(work)
    assert isinstance(result, Raised)
    assert (result.code, work.is_cancelled) == ("stale_attempt", True)
    assert read_chunks(database) == []


async def test_a_handler_that_swallows_the_refusal_still_stores_nothing_more(
    bench: Bench, database: config.Database
) -> None:
    SEEN.clear()
    result = await run(bench, stubborn, parts=["a", 2, "c"])
    assert isinstance(result, Raised)
    assert result.code == "invalid_output"
    execute(database, "update workflow_step_runs set claim_token = %s", OTHER)
    assert isinstance(await run(bench, stubborn, attempt=2, parts=["b", "c"]), Raised)
    assert SEEN == [("invalid_output", False), ("stale_attempt", True)]
    assert read_chunks(database) == [(0, "a")]


async def test_a_chunk_that_races_with_a_record_waits_for_it_and_is_then_too_late(
    bench: Bench, keeper: Keeper, database: config.Database
) -> None:
    """The record holds the row while the chunk is sent: the chunk looks again afterwards, and finds the token lost."""
    async with await psycopg.AsyncConnection.connect(database.url or "") as other:
        await other.execute("update korak.workflow_step_runs set claim_token = %s where id = %s", (OTHER, SEED))
        sending = bench.start(make(bench, writes, parts=["a"]))
        blocked = "select count(*) from pg_locks where not granted"
        await eventually(lambda: execute(database, blocked) == [(1,)])
        await other.commit()
    assert isinstance(await sending, Raised)
    assert read_chunks(database) == []


async def test_a_chunk_is_stored_once_however_often_its_attempt_has_to_send_it(
    bench: Bench, database: config.Database, database_url: str
) -> None:
    """The connection is cut under it, again and again: the attempt goes on, and nothing is missing or doubled."""
    work = make(bench, writes, parts=["a", "b", "c", "d", "e"])
    cut = "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'keeper'"
    task = bench.start(work)
    while not task.done():
        execute(database, cut)
        await asyncio.wait([task], timeout=0.02)
    assert await task == Complete("next", {"all": "a|b|c|d|e"})
    assert read_chunks(database) == list(enumerate("abcde"))


async def test_the_same_attempt_may_repeat_a_chunk_and_no_other_may(keeper: Keeper, database: config.Database) -> None:
    assert keeper.database is not None
    now = Clock().now()
    for _ in range(2):
        assert await chunks.append(keeper.database, SEED, TOKEN, (0, "a"), now)
    execute(database, "update workflow_step_runs set attempt = 2")
    assert not await chunks.append(keeper.database, SEED, TOKEN, (0, "b"), now)
    assert read_chunks(database) == [(0, "a")]


async def test_no_secret_reaches_a_chunk_progress_or_artifact(keeper: Keeper, bench: Bench) -> None:
    work = make(bench, writes, parts=[])
    await keeper.append(work, "a hunter2", ["hunter2"])
    keeper.beat(work, {"at": "hunter2"}, ["hunter2"])
    assert "hunter2" not in str((work.leave().chunks, work.leave().heartbeat))


# heartbeats


@step("test.beats")
async def beats(ctx: StepContext, steps: list[Any]) -> dict[str, Any]:
    for progress in steps:
        await ctx.heartbeat(float(progress) if progress == "nan" else progress)
    return {}


@step("test.beats_blocking")
def beats_blocking(ctx: BlockingContext, steps: list[Any]) -> dict[str, Any]:
    for progress in steps:
        ctx.heartbeat(progress)
    return {}


@step("test.beats_apart", isolation="process")
def beats_apart(ctx: BlockingContext, steps: list[Any]) -> dict[str, Any]:
    for progress in steps:
        ctx.heartbeat(progress)
    return {}


@pytest.mark.parametrize("given", [beats, beats_blocking, beats_apart])
async def test_t_hb_1_of_several_beats_the_last_is_written_with_its_time(
    bench: Bench, keeper: Keeper, database: config.Database, given: Any
) -> None:
    work = make(bench, given, steps=[{"done": 1}, {"done": 2}, None])
    assert await bench.start(work) == Complete()
    await keeper.write_beats([work])
    [(beat,)] = execute(database, "select heartbeat from workflow_step_runs")
    assert (beat["progress"], "at" in beat) == ({"done": 2}, True)
    assert not work.leave().is_beating


async def test_t_hb_4_a_beat_under_a_lost_token_changes_nothing(
    bench: Bench, keeper: Keeper, database: config.Database
) -> None:
    work = make(bench, beats, steps=[1])
    await bench.start(work)
    execute(database, "update workflow_step_runs set claim_token = %s", OTHER)
    await keeper.write_beats([work])
    assert execute(database, "select heartbeat from workflow_step_runs") == [(None,)]
    assert work.leave().is_beating
    work.is_cancelled = True
    result = await bench.start(make_cancelled(bench))
    assert isinstance(result, Raised)
    assert result.code == "stale_attempt"


def make_cancelled(bench: Bench) -> Work:
    work = make(bench, beats, steps=[1])
    work.is_cancelled = True
    return work


async def test_a_row_that_somebody_holds_is_not_waited_for_and_its_beat_not_lost(
    bench: Bench, keeper: Keeper, database: config.Database
) -> None:
    work = make(bench, beats, steps=["here"])
    await bench.start(work)
    async with await psycopg.AsyncConnection.connect(database.url or "") as other:
        await other.execute("select 1 from korak.workflow_step_runs for update")
        async with asyncio.timeout(5):
            await keeper.write_beats([work])
        assert work.leave().is_beating
    await keeper.write_beats([work])
    assert execute(database, "select heartbeat ->> 'progress' from workflow_step_runs") == [("here",)]


@pytest.mark.parametrize("progress", ["nan", {"a": "\0"}, "x" * 20_000])
async def test_progress_that_can_not_be_stored_is_invalid_output(bench: Bench, progress: Any) -> None:
    work = make(bench, beats, steps=[])
    work.input = {"steps": [progress]}
    result = await bench.start(work)
    assert isinstance(result, Raised)
    assert result.code == "invalid_output"
    assert str(result.params["pointer"]).startswith("/progress")


# artifacts


@step("test.keeps")
async def keeps(ctx: StepContext, put: list[Any]) -> dict[str, Any]:
    return {"kept": [ctx.artifact(*each) for each in put], "raw": ctx.artifact("raw", b"\0\1")}


@step("test.keeps_apart", isolation="process")
def keeps_apart(ctx: BlockingContext, put: list[Any]) -> dict[str, Any]:
    return {"kept": [ctx.artifact(*each) for each in put], "raw": ctx.artifact("raw", b"\0\1")}


KEEPS = pytest.mark.parametrize("given", [keeps, keeps_apart])


@KEEPS
async def test_artifacts_are_kept_for_the_record_and_a_reference_is_given(bench: Bench, given: Any) -> None:
    work = make(bench, given, put=[["report", "draft"], ["report", {"a": [1]}, "json", {"by": "me"}]])
    result = await bench.start(work)
    assert isinstance(result, Complete)
    assert result.output == {
        "kept": [
            {"artifact": "report", "kind": "text", "size": 5},
            {"artifact": "report", "kind": "json", "size": 9},
        ],
        "raw": {"artifact": "raw", "kind": "bytes", "size": 2},
    }
    left = work.list_left(result)
    assert left is not None
    assert [(made.key, made.content, made.metadata) for made in left.artifacts] == [
        ("report", b'{"a":[1]}', {"by": "me"}),
        ("raw", b"\0\1", None),
    ]
    assert work.list_left(Raised("exception")) is None


@KEEPS
@pytest.mark.parametrize(
    ("given_to_it", "pointer"),
    [
        (["a/b", 1], "/artifacts"),
        (["a", "x" * 21], "/artifacts/a/content"),
        (["a", {"b": 1}, "text"], "/artifacts/a/content"),
        (["a", "b", "picture"], "/artifacts/a/kind"),
        (["a", "b", None, [1]], "/artifacts/a/metadata"),
    ],
)
async def test_an_artifact_that_can_not_be_kept_is_invalid_output(
    bench: Bench, given: Any, given_to_it: list[Any], pointer: str
) -> None:
    result = await bench.start(make(bench, given, put=[given_to_it]))
    assert isinstance(result, Raised)
    assert (result.code, result.params["pointer"]) == ("invalid_output", pointer)


async def test_an_attempt_leaves_so_many_artifacts_at_most(bench: Bench) -> None:
    result = await run(bench, keeps, put=[["a", 1], ["b", 2]])
    assert isinstance(result, Raised)
    assert (result.code, result.params["pointer"]) == ("invalid_output", "/artifacts/raw")
