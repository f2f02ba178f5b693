"""Compensations in the database: pushed with the record, loaded one at a time, run one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from korak.core.facts import DeadlinePassed, Lost, Raised, RetryAsked
from korak.core.rows import StepRun
from korak.errors import Conflict
from korak.model import JsonObject
from korak.steps.results import Complete, Wait
from korak.steps.waits import WaitSpec
from tests.support.flows import NOW, Flows, chain, pausing, work

UNDO: JsonObject = {"type": "test.work", "config": {"n": {"ref": "state.n"}}}
HOOK: JsonObject = {"type": "test.work", "config": {"state": {"ref": "state"}}}
ROWS = "select node_id, visit, status, input, state from workflow_compensations where instance_id = $1 order by seq"
HOOKS = """select role, node_id, attempt, status, input, hook_order, idempotency_key from workflow_step_runs
    where instance_id = $1 and role <> 'step' order by created_at, id"""
SECOND = timedelta(seconds=1)


def undone(name: str) -> JsonObject:
    return work(name, save={"merge": True}, compensate=UNDO)


async def begin(flows: Flows, engine: int, *nodes: JsonObject, **settings: Any) -> int:
    """A run of three steps, two of which are done and the third of which waits for an engine."""
    version = await flows.publish(chain(*(nodes or (undone("a"), undone("b"), work("c"))), settings=settings))
    [instance] = await flows.start(version)
    for number in (1, 2):
        step = await flows.claim(instance, engine)
        await flows.finish(step, Complete(output={"n": number, "_secret": 1}))
    return instance


async def run_hooks(flows: Flows, instance: int, engine: int, now: Any) -> list[StepRun]:
    """Run the hooks one after the other; none lives beside another."""
    ran = []
    ready = "select count(*) from workflow_step_runs where instance_id = $1 and ready_at is not null"
    while count := await flows.get(ready, instance):
        assert count == 1
        step = await flows.claim(instance, engine, now)
        await flows.finish(step, Complete(), now)
        ran.append(step)
    return ran


def name(steps: Sequence[Any]) -> list[str]:
    return [f"{step.role}:{step.node_id}" for step in steps]


async def test_a_cancel_undoes_newest_first_then_runs_on_cancel(flows: Flows) -> None:
    """T-COMP-1, T-COMP-2, T-CANCEL-3 on the real statements"""
    engine = await flows.register()
    instance = await begin(flows, engine, on_cancel=HOOK)
    kept = await flows.fetch(ROWS, instance)
    assert [(row["node_id"], row["status"], row["input"], row["state"]) for row in kept] == [
        ("a", "kept", {"n": 1}, {"n": 1}),
        ("b", "kept", {"n": 2}, {"n": 2}),
    ]
    await flows.cancel(instance, NOW)
    ran = await run_hooks(flows, instance, engine, NOW)
    assert name(ran) == ["compensate:b", "compensate:a", "on_cancel:$on_cancel"]
    assert [step.input for step in ran] == [{"n": 2}, {"n": 1}, {"state": {"n": 2}}]
    assert [row["status"] for row in await flows.fetch(ROWS, instance)] == ["completed", "completed"]
    stored = await flows.fetch(HOOKS, instance)
    assert [(row["input"], row["status"]) for row in stored] == [(step.input, "completed") for step in ran]
    assert stored[1]["idempotency_key"].endswith(":a:1:compensate")


async def test_the_handler_of_an_undo_is_given_its_state(flows: Flows) -> None:
    """T-COMP-2: the snapshot of a claim has what was kept of the step, and of no other."""
    engine = await flows.register()
    instance = await begin(flows, engine)
    await flows.cancel(instance, NOW)
    step = await flows.claim(instance, engine)
    snapshots = await flows.load(instance)
    assert {row.node_id: row.state for row in snapshots.compensations.values()} == {"b": {"n": 2}, "a": None}
    assert snapshots.compensations[step.hook_order or 0].node_id == "b"


async def test_a_failure_with_opt_in_is_compensated_and_not_retried(flows: Flows) -> None:
    """T-COMP-4"""
    engine = await flows.register()
    instance = await begin(flows, engine, compensate_on_failure=True)
    step = await flows.claim(instance, engine)
    await flows.finish(step, Raised("broken", is_retryable=False))
    assert name(await run_hooks(flows, instance, engine, NOW)) == ["compensate:b", "compensate:a"]
    with pytest.raises(Conflict, match="undone"):
        await flows.answer(instance, RetryAsked(), NOW)
    with pytest.raises(Conflict):
        await flows.cancel(instance, NOW)
    assert (await flows.get_instance(instance))["status"] == "failed"


async def test_a_failure_without_opt_in_keeps_them_for_a_later_cancel(flows: Flows) -> None:
    """T-COMP-3; DESIGN 10: failed to cancelled while something hasn't run"""
    engine = await flows.register()
    instance = await begin(flows, engine)
    for _ in range(2):
        step = await flows.claim(instance, engine)
        await flows.finish(step, Raised("broken", is_retryable=False))
        await flows.answer(instance, RetryAsked(), NOW)
    step = await flows.claim(instance, engine)
    await flows.finish(step, Raised("broken", is_retryable=False))
    await flows.cancel(instance, NOW)
    row = await flows.get_instance(instance)
    assert (row["status"], row["closed_reason"], row["failure_code"]) == ("cancelled", "cancelled", "broken")
    assert name(await run_hooks(flows, instance, engine, NOW)) == ["compensate:b", "compensate:a"]


async def test_a_lost_undo_is_tried_again_and_what_was_undone_is_not(flows: Flows) -> None:
    """T-COMP-7"""
    engine = await flows.register()
    instance = await begin(flows, engine)
    await flows.cancel(instance, NOW)
    await flows.finish(await flows.claim(instance, engine), Complete())
    lost = await flows.claim(instance, engine)
    await flows.answer(instance, Lost(lost.id, lost.claim_token or ""), NOW, step=lost.id)
    again = await flows.get_step(instance)
    await flows.fetch("update workflow_waits set sent_at = due_at where instance_id = $1", instance)
    await flows.fetch("update workflow_step_runs set ready_at = $2 where id = $1", again["id"], NOW)
    ran = await run_hooks(flows, instance, engine, NOW + timedelta(minutes=5))
    assert [(step.node_id, step.attempt) for step in ran] == [("a", 2)]
    assert [row["status"] for row in await flows.fetch(ROWS, instance)] == ["completed", "completed"]


async def test_what_could_not_be_undone_is_tried_again(flows: Flows) -> None:
    """On the real statements: all that failed, newest first, and not what was undone."""
    engine = await flows.register()
    instance = await begin(flows, engine, undone("a"), undone("b"), undone("d"), work("c"), on_cancel=HOOK)
    await flows.finish(await flows.claim(instance, engine), Complete(output={"n": 3}))
    await flows.cancel(instance, NOW)
    for result in (Raised("no", is_retryable=False), Complete(), Raised("no", is_retryable=False)):
        await flows.finish(await flows.claim(instance, engine), result)
    await flows.finish(await flows.claim(instance, engine), Raised("no", is_retryable=False))
    await flows.answer(instance, RetryAsked(), NOW)
    ran = await run_hooks(flows, instance, engine, NOW)
    assert name(ran) == ["compensate:d", "compensate:a", "on_cancel:$on_cancel"]
    assert [(step.input, step.attempt, step.call) for step in ran] == [
        ({"n": 3}, 1, 2),
        ({"n": 1}, 1, 2),
        ({"state": {"n": 3}}, 1, 2),
    ]
    kept = "select node_id, status, call from workflow_compensations where instance_id = $1 order by seq"
    assert [tuple(row) for row in await flows.fetch(kept, instance)] == [
        ("a", "completed", 2),
        ("b", "completed", 1),
        ("d", "completed", 2),
    ]
    with pytest.raises(Conflict, match="it is cancelled"):
        await flows.answer(instance, RetryAsked(), NOW)


async def test_a_step_s_own_clean_up_comes_before_the_undo(flows: Flows) -> None:
    """T-COMP-1 with a live step that has begun"""
    engine = await flows.register()
    instance = await begin(flows, engine, undone("a"), undone("b"), work("c", "test.held"))
    await flows.finish(await flows.claim(instance, engine), Wait(WaitSpec.signal("go")))
    await flows.get("update workflow_step_runs set ready_at = null, probe = null where status = 'waiting'")
    await flows.cancel(instance, NOW)
    assert name(await run_hooks(flows, instance, engine, NOW)) == ["cancel:c", "compensate:b", "compensate:a"]


async def test_a_deadline_fails_a_waiting_run_and_runs_its_hook(flows: Flows) -> None:
    """T-DL-1, T-DL-2, T-DL-4; a retry has the whole time again and goes on where the run stood"""
    engine = await flows.register()
    nodes = (undone("a"), undone("b"), pausing("c", signal="go"))
    instance = await begin(flows, engine, *nodes, execution_timeout=60, on_deadline=HOOK)
    await flows.get("update workflow_step_runs set ready_at = null, probe = null where status = 'waiting'")
    assert (await flows.answer(instance, DeadlinePassed(), NOW + 59 * SECOND)).dropped == "not_due"
    late = NOW + 61 * SECOND
    await flows.answer(instance, DeadlinePassed(), late)
    row = await flows.get_instance(instance)
    assert (row["status"], row["closed_reason"], row["failed_node_id"]) == ("failed", "deadline", "c")
    [hook] = await run_hooks(flows, instance, engine, late)
    assert (hook.role, hook.input) == ("on_deadline", {"state": {"n": 2}})
    await flows.answer(instance, RetryAsked(), late)
    row = await flows.get_instance(instance)
    assert (row["status"], row["deadline_at"]) == ("running", late + 60 * SECOND)
    stood = await flows.fetch(
        "select visit, status from workflow_step_runs where instance_id = $1 and node_id = 'c' order by visit", instance
    )
    assert [tuple(step) for step in stood] == [(1, "cancelled"), (2, "queued")]


async def test_an_instance_without_compensations_loads_and_writes_none(flows: Flows) -> None:
    """Others pay nothing: no row, and nothing is asked for."""
    engine = await flows.register()
    instance = await begin(flows, engine, work("a"), work("b"), work("c"), on_cancel=HOOK)
    assert await flows.fetch(ROWS, instance) == []
    await flows.cancel(instance, NOW)
    assert name(await run_hooks(flows, instance, engine, NOW)) == ["on_cancel:$on_cancel"]
