"""One process is killed, told to stop, frozen or blocked: what it held is done once, by it or by another."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support import ledger
from tests.support.graphs import chain, node
from tests.support.stage import Stage, staged
from tests.support.waiting import eventually

LONG: dict[str, Any] = {"seconds": 3600}
SECONDS: dict[str, Any] = {"seconds": {"ref": "input.seconds"}}
BLOCKED = 70
"""The exit code of an engine whose loop was blocked for too long."""

pytestmark = pytest.mark.timeout(120)


async def get_steps(stage: Stage, instance: str) -> Any:
    """An instance's attempts that an engine has run, in their order."""
    return [step for step in await stage.calls.get(instance, "steps") if step["type"] != "end"]


async def wait_for_calls(stage: Stage, count: int = 1) -> None:
    """Until handlers have been called so often."""
    await eventually(lambda: len(stage.read_calls()) >= count, 30, message="no handler was called")


async def wait_for_effect(stage: Stage) -> None:
    """Until an effect was committed."""
    await eventually(lambda: stage.connection.fetchval("select count(*) from public.effects"), 30)


async def test_a_killed_engines_step_is_done_by_the_next_attempt_under_the_same_key(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """JB-12, ID-5: SIGKILL in the middle of a handler, after its effect; the lease is over; attempt 2 completes."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(chain("effect", node("work", "e2e.effect", SECONDS)))
        instance = (await stage.calls.start("effect", LONG))["id"]
        await wait_for_effect(stage)
        stage.engine.kill()
        await stage.fleet.start_ready("engine")

        ended = await stage.calls.wait_for_end(instance)

        assert ended["status"] == "completed"
        lost, done = await get_steps(stage, instance)
        assert (lost["status"], lost["error"]["code"]) == ("failed", "lease_expired")
        assert (done["status"], done["attempt"], done["output"]) == ("completed", 2, {"attempt": 2})
        assert lost["idempotency_key"] == done["idempotency_key"]
        assert stage.count_calls(done["idempotency_key"]) == 2
        assert await stage.connection.fetch("select attempt from public.effects") == [(1,)]
        await stage.assert_rules()


@pytest.mark.parametrize("kind", ["e2e.slow_thread", "e2e.slow_process"])
async def test_a_killed_engines_threads_and_processes_are_taken_over_too(
    kind: str, tmp_path: Path, database_url: str
) -> None:
    """JB-12: so is what ran in a thread, or in a process, which ends with its engine."""
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(chain("slow", node("work", kind, SECONDS)))
        instance = (await stage.calls.start("slow", LONG))["id"]
        await wait_for_calls(stage)
        stage.engine.kill()
        await stage.fleet.start_ready("engine")

        assert (await stage.calls.wait_for_end(instance))["status"] == "completed"

        assert [step["attempt"] for step in await get_steps(stage, instance)] == [1, 2]
        await stage.assert_rules()


async def test_a_step_is_lost_as_often_as_engines_die_and_is_still_tried_again(
    tmp_path: Path, database_url: str
) -> None:
    """DESIGN 10: a crash of ours isn't the step's failure, even where it may be tried only once."""
    async with staged(tmp_path, database_url, None) as stage:
        work = node("work", "e2e.slow", SECONDS, retry={"max_attempts": 1})
        await stage.calls.publish(chain("slow", work))
        instance = (await stage.calls.start("slow", LONG))["id"]
        await wait_for_calls(stage)
        stage.engine.kill()
        await stage.fleet.start_ready("engine")

        assert (await stage.calls.wait_for_end(instance))["status"] == "completed"
        await stage.assert_rules()


async def test_sigterm_lets_what_runs_end_and_leaves_the_rest_to_others(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """Told to stop, an engine finishes what it runs, takes nothing new, and exits with 0."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(chain("slow", node("work", "e2e.slow", SECONDS), node("after", "e2e.effect")))
        running = (await stage.calls.start("slow", {"seconds": 3}))["id"]
        await wait_for_calls(stage)
        stage.engine.send(signal.SIGTERM)
        await eventually(lambda: '"stopping"' in stage.engine.read_log(), 10)
        waiting = (await stage.calls.start("slow", {"seconds": 0}))["id"]
        second = stage.fleet.start("engine")

        assert await stage.engine.wait() == 0
        assert (await stage.calls.wait_for_end(running))["status"] == "completed"
        assert (await stage.calls.wait_for_end(waiting))["status"] == "completed"

        pids = {line.split()[0]: int(line.split()[2]) for line in stage.read_calls()}
        (work, after), (new, _) = await get_steps(stage, running), await get_steps(stage, waiting)
        assert (work["attempt"], pids[work["idempotency_key"]]) == (1, stage.engine.pid)
        assert pids[after["idempotency_key"]] == pids[new["idempotency_key"]] == second.pid
        closed = await stage.connection.fetchval("select close_reason from engines where pid = $1", stage.engine.pid)
        assert closed == "drained"
        await stage.assert_rules()


async def test_what_outlasts_the_drain_is_taken_over(tmp_path: Path, database_url: str) -> None:
    """The engine goes after its drain; its row is closed, so that nobody waits for its lease."""
    settings = {"KORAK_ENGINE__LEASE": "60", "KORAK_ENGINE__DRAIN": "0.5"}
    async with staged(tmp_path, database_url, None, settings) as stage:
        await stage.calls.publish(chain("slow", node("work", "e2e.slow", SECONDS)))
        instance = (await stage.calls.start("slow", LONG))["id"]
        await wait_for_calls(stage)

        assert await stage.engine.stop() == 0
        await stage.fleet.start_ready("engine")
        assert (await stage.calls.wait_for_end(instance))["status"] == "completed"
        await stage.assert_rules()


async def test_late_results_of_a_frozen_engine_are_dropped_and_counted(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """DESIGN 1.4, 12.5: frozen past its lease; another has done its work; what it then says changes nothing."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(chain("slow", node("work", "e2e.slow", SECONDS), node("after", "e2e.effect")))
        instances = [(await stage.calls.start("slow", {"seconds": 2}))["id"] for _ in range(5)]
        await wait_for_calls(stage, 5)
        stage.engine.freeze()
        await stage.fleet.start_ready("engine")
        for instance in instances:
            assert (await stage.calls.wait_for_end(instance))["status"] == "completed"
        before = await list_rows(stage)
        stage.engine.thaw()

        async def count_dropped() -> bool:
            return await stage.engine.read_metric("korak_results_dropped_total") >= 5

        await eventually(count_dropped, 20, message="no result was dropped")
        assert await list_rows(stage) == before
        await stage.assert_rules()

        # It has a new id and works on.
        again = (await stage.calls.start("slow", {"seconds": 0}))["id"]
        assert (await stage.calls.wait_for_end(again))["status"] == "completed"
        await eventually(lambda: is_open(stage, stage.engine.pid), 10, message="the thawed engine has no row")


async def test_a_handler_that_blocks_the_loop_costs_its_engine(tmp_path: Path, database_url: str) -> None:
    """DESIGN 4: the engine says so, isn't ready, closes itself and exits; its steps are taken over at once."""
    settings = {"KORAK_ENGINE__LEASE": "60", "KORAK_ENGINE__BLOCK_LIMIT": "3"}
    async with staged(tmp_path, database_url, None, settings) as stage:
        await stage.calls.publish(chain("blocking", node("work", "e2e.blocking_loop")))
        await stage.calls.publish(chain("slow", node("work", "e2e.slow", SECONDS)))
        beside = (await stage.calls.start("slow", LONG))["id"]
        await wait_for_calls(stage)
        instance = (await stage.calls.start("blocking", {}))["id"]

        assert await stage.engine.wait() == BLOCKED
        await stage.fleet.start_ready("engine")
        for each in (instance, beside):
            assert (await stage.calls.wait_for_end(each))["status"] == "completed"

        assert "e2e.blocking_loop" in stage.engine.read_log()
        assert "blocking_loop(ctx)" in stage.engine.read_log() or "in blocking_loop" in stage.engine.read_log()
        closed = await stage.connection.fetchval("select close_reason from engines where pid = $1", stage.engine.pid)
        assert closed == "blocked"
        await stage.assert_rules()


async def test_a_killed_api_loses_no_start_that_it_accepted(tmp_path: Path, database_url: str) -> None:
    """ID-2, DESIGN 12.4: what is asked again under the same key is the same instance."""
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(chain("effect", node("work", "e2e.effect")))
        accepted = (await stage.calls.start("effect", {"seconds": 0}, once="first"))["id"]
        stage.api.kill()
        await stage.fleet.start_ready("api")

        assert (await stage.calls.start("effect", {"seconds": 0}, once="first"))["id"] == accepted
        assert (await stage.calls.wait_for_end(accepted))["status"] == "completed"
        assert await ledger.count_by_status(stage.connection) == {"completed": 1}
        await stage.assert_rules()


async def list_rows(stage: Stage) -> Any:
    """All attempts and all history."""
    steps = await stage.connection.fetch("select id, status, attempt, claim_token from workflow_step_runs order by id")
    events = await stage.connection.fetch(
        "select instance_id, seq, type from workflow_events where type <> 'ResultDropped' order by instance_id, seq"
    )
    return steps, events


async def is_open(stage: Stage, pid: int) -> bool:
    """Whether the process has a row that nobody closed."""
    return bool(
        await stage.connection.fetchval("select exists (select from engines where pid = $1 and closed_at is null)", pid)
    )
