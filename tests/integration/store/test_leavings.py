"""What steps leave beside their records: chunks until the output is recorded (T-STR-1, T-STR-4), artifacts with it."""

from __future__ import annotations

from typing import Any

from korak.core.facts import Finished, HandlerResult, Left, Lost, Raised, RetryAsked
from korak.core.rows import StepRun
from korak.model import JsonObject
from korak.steps.artifacts import make
from korak.steps.contract import Complete, Wait, WaitSpec
from korak.store import chunks
from tests.support.flows import NOW, Flows, chain, work
from tests.support.wakers import at

STREAM = work(kind="test.streaming", retry={"max_attempts": 2, "backoff": [0]})
LIMIT = 1 << 20


async def begin(flows: Flows, node: JsonObject = STREAM) -> tuple[StepRun, int]:
    """A claimed step, and the engine that has it."""
    [instance] = await flows.start(await flows.publish(chain(node, work("after"))))
    engine = await flows.register(types=("test.work@1", "test.streaming@1"))
    return await flows.claim(instance, engine), engine


async def append(flows: Flows, step: StepRun, *texts: str) -> list[bool]:
    """Store chunks behind those that are there."""
    first = len(await chunks.load(flows.database, step.instance_id, step.execution_id))
    token = step.claim_token or ""
    return [
        await chunks.append(flows.database, step.id, token, (first + number, text), NOW)
        for number, text in enumerate(texts)
    ]


async def load(flows: Flows, step: StepRun) -> list[str]:
    return await chunks.load(flows.database, step.instance_id, step.execution_id)


async def finish(flows: Flows, step: StepRun, result: HandlerResult, left: Left | None = None) -> Any:
    fact = Finished(step.id, step.claim_token or "", result, None, left)
    return await flows.answer(step.instance_id, fact, NOW, step=step.id)


async def try_again(flows: Flows, step: StepRun, engine: int) -> StepRun:
    """The attempt after one that failed, claimed."""
    await flows.get("update workflow_step_runs set ready_at = $1 where status = 'queued'", NOW)
    return await flows.claim(step.instance_id, engine)


async def test_t_str_1_the_chunks_go_with_the_record_of_the_output_and_no_others(flows: Flows) -> None:
    step, _ = await begin(flows)
    assert await append(flows, step, *"abcde") == [True] * 5
    await flows.get(
        "insert into workflow_chunks select instance_id, 'another', index, node_id, visit, attempt, content, created_at"
        " from workflow_chunks"
    )
    await finish(flows, step, Complete(output={"text": "abcde"}))
    assert await load(flows, step) == []
    assert await flows.get("select count(*) from workflow_chunks") == 5


async def test_t_str_2_what_fails_keeps_them_for_the_next_attempt(flows: Flows) -> None:
    step, engine = await begin(flows)
    await append(flows, step, *"abc")
    await finish(flows, step, Raised("exception"), Left(has_streamed=True))
    again = await try_again(flows, step, engine)
    assert (again.attempt, again.execution_id) == (2, step.execution_id)
    assert await load(flows, again) == ["a", "b", "c"]
    assert await append(flows, again, *"de") == [True, True]
    assert await append(flows, step, "late") == [False]
    await finish(flows, again, Complete(output={"text": "abcde"}))
    assert await load(flows, again) == []


async def test_t_str_4_a_retry_by_hand_after_the_last_attempt_still_has_them(flows: Flows) -> None:
    """Defects 18 and 11: they are the visit's, not the attempt's, and a lost holder adds nothing to them."""
    step, engine = await begin(flows)
    await append(flows, step, "a")
    await flows.answer(step.instance_id, Lost(step.id, step.claim_token or ""), NOW, step=step.id)
    second = await try_again(flows, step, engine)
    await append(flows, second, "b")
    await finish(flows, second, Raised("exception"), Left(has_streamed=True))
    assert (await flows.get_instance(step.instance_id))["status"] == "failed"
    assert await load(flows, step) == ["a", "b"]
    await flows.answer(step.instance_id, RetryAsked(), at(60))
    third = await flows.claim(step.instance_id, engine, at(60))
    assert (third.attempt, await load(flows, third)) == (3, ["a", "b"])
    assert await append(flows, step, "late") == await append(flows, second, "late") == [False]


async def test_defect_18_a_record_that_does_not_happen_takes_no_chunk_away(flows: Flows) -> None:
    step, _ = await begin(flows)
    await append(flows, step, "a")
    stale = Finished(step.id, "01J0000000000000000000000Z", Complete(), None, Left(has_streamed=True))
    changes = await flows.answer(step.instance_id, stale, NOW, step=step.id)
    assert changes.dropped == "stale_token"
    await finish(flows, step, Complete("nowhere"), Left(has_streamed=True))
    assert (await flows.get_instance(step.instance_id))["failure_code"] == "unknown_outcome"
    assert await load(flows, step) == ["a"]


async def test_code_that_streams_under_a_version_that_did_not_say_so_leaves_none_either(flows: Flows) -> None:
    step, _ = await begin(flows, work())
    await append(flows, step, "a")
    await finish(flows, step, Complete(), Left(has_streamed=True))
    assert await load(flows, step) == []


async def test_onlookers_get_what_they_have_not_seen_of_every_visit(flows: Flows) -> None:
    """T-STR-3: read while it streams, a visit at a time, in pages."""
    step, _ = await begin(flows)
    await append(flows, step, *"abc")
    await flows.get(
        "insert into workflow_chunks select instance_id, 'A', index, 'other', 1, 1, upper(content), created_at"
        " from workflow_chunks"
    )

    async def follow(seen: dict[str, int], limit: int = 10) -> list[str]:
        async with flows.database.acquire() as connection:
            rows = await chunks.follow(connection, step.instance_id, seen, limit=limit)
        return [row["content"] for row in rows]

    execution = step.execution_id
    assert sorted(await follow({})) == ["A", "B", "C", "a", "b", "c"]
    assert await follow({"A": 2, execution: 0}) == ["b", "c"]
    assert await follow({"A": 2, execution: 0}, limit=1) == ["b"]
    await append(flows, step, "d")
    assert await follow({"A": 2, execution: 2}) == ["d"]
    assert await follow({"A": 2, execution: 3}) == []


# artifacts


def leave(*given: tuple[str, Any]) -> Left:
    return Left(tuple(make(key, content, limit=LIMIT) for key, content in given))


async def list_artifacts(flows: Flows) -> list[tuple[Any, ...]]:
    rows = await flows.fetch(
        "select key, kind, content, node_id, visit, execution_id from workflow_artifacts order by key"
    )
    return [tuple(row) for row in rows]


async def test_artifacts_are_written_with_the_record_and_a_failed_attempt_leaves_none(flows: Flows) -> None:
    step, engine = await begin(flows)
    await finish(flows, step, Raised("exception"), leave(("a", 1)))
    assert await list_artifacts(flows) == []
    again = await try_again(flows, step, engine)
    await finish(flows, again, Complete(), leave(("b", "text"), ("a", {"x": 1})))
    execution = step.execution_id
    assert await list_artifacts(flows) == [
        ("a", "json", b'{"x":1}', "work", 1, execution),
        ("b", "text", b"text", "work", 1, execution),
    ]


async def test_a_later_step_replaces_what_lies_under_the_same_key(flows: Flows) -> None:
    step, engine = await begin(flows)
    await finish(flows, step, Complete(), leave(("a", 1), ("b", 1)))
    after = await flows.claim(step.instance_id, engine, at(5))
    fact = Finished(after.id, after.claim_token or "", Complete(), None, leave(("a", b"2")))
    await flows.answer(after.instance_id, fact, at(5), step=after.id)
    found = await list_artifacts(flows)
    assert [(key, kind, content, node) for key, kind, content, node, *_ in found] == [
        ("a", "bytes", b"2", "after"),
        ("b", "json", b"1", "work"),
    ]
    times = await flows.fetch("select created_at, updated_at from workflow_artifacts order by key")
    assert [tuple(row) for row in times] == [(NOW, at(5)), (NOW, NOW)]


async def test_a_step_that_parks_has_left_its_artifacts_and_one_that_is_refused_has_not(flows: Flows) -> None:
    step, _ = await begin(flows, work(kind="test.asking"))
    await finish(flows, step, Wait(WaitSpec.timer("PT1H")), leave(("parked", 1)))
    [other] = await flows.start(await flows.publish(chain(work("other")), key="other"))
    refused = await flows.claim(other, await flows.register())
    await finish(flows, refused, Complete("nowhere"), leave(("refused", 1)))
    assert [key for key, *_ in await list_artifacts(flows)] == ["parked"]
