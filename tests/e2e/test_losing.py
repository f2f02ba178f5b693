"""An engine dies amid containers, rounds and records: what was recorded isn't done again, and all of it is done."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from korak import chain
from korak.model import JsonObject
from tests.support import graphs
from tests.support.bodies import body
from tests.support.fleet import Program
from tests.support.graphs import node
from tests.support.stage import Stage, staged
from tests.support.waiting import eventually

BLOCKED = (
    "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    " and pid <> pg_backend_pid()"
)
HELD = "select id from workflow_instances where ulid = $1 for no key update"

pytestmark = pytest.mark.timeout(120)


async def list_steps(stage: Stage, instance: str, name: str) -> list[Any]:
    """The attempts of a node."""
    return [step for step in await stage.calls.get(instance, "steps", limit=200) if step["node"] == name]


async def count_completed(stage: Stage, name: str) -> int:
    """How many attempts of a node are recorded."""
    query = "select count(*) from workflow_step_runs where node_id = $1 and status = 'completed'"
    return int(await stage.connection.fetchval(query, name))


async def replace_engine(stage: Stage) -> None:
    """The engine is killed, and another takes over."""
    stage.engine.kill()
    await stage.fleet.start_ready("engine")


def count_calls(stage: Stage) -> Counter[str]:
    """How often the handler of each visit was called, by its key."""
    return Counter(line.split()[0] for line in stage.read_calls())


async def test_items_are_all_there_once_when_an_engine_dies_amid_them(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """T-FE-1: five of twenty hang and eight haven't begun when it is killed; what was recorded isn't run again."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        slow = [7, 8, 9, 10, 11]
        each: JsonObject = {"items": {"literal": list(range(20))}, "concurrency": len(slow)}
        inner = body(node("one", "e2e.item", {"item": {"ref": "item"}, "slow": {"literal": [*slow]}}))
        container = node("each", "for_each", each, body=inner, save={"key": "r"})
        await stage.calls.publish(graphs.chain("items", container, node("after", "e2e.effect")))
        instance = (await stage.calls.start("items", {}))["id"]

        async def hangs() -> bool:
            return await count_completed(stage, "one") == 7 and len(stage.read_calls()) == 12

        await eventually(hangs, 30, message="the slow items don't run")
        await replace_engine(stage)

        ended = await stage.calls.wait_for_end(instance)
        assert (ended["status"], ended["failure"]) == ("completed", None)
        result = ended["state"]["r"]
        assert (result["total"], result["succeeded"], result["failed"]) == (20, 20, 0)
        assert [row["output"] for row in result["results"]] == [{"item": number} for number in range(20)]
        steps = await list_steps(stage, instance, "one")
        keys = {step["branch"]: step["idempotency_key"] for step in steps}
        calls = count_calls(stage)
        assert [calls[keys[str(number)]] for number in range(20)] == [
            2 if number in slow else 1 for number in range(20)
        ]
        assert len(await list_steps(stage, instance, "after")) == 1
        await stage.assert_rules()


async def test_a_branch_whose_engine_dies_is_taken_over_and_the_others_stay_as_they_are(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """T-PAR-1, T-PAR-6: two engines; the one that holds the hanging branch is killed, and the group goes on once."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        hanging: JsonObject = {"seconds": 3600}
        branches = {
            "a": body(node("x", "e2e.effect", save={"key": "a"}), node("x2", "e2e.effect")),
            "b": body(node("y", "e2e.effect", hanging, save={"key": "b"})),
        }
        both: JsonObject = {"id": "both", "type": "parallel", "branches": {**branches}}
        await stage.calls.publish(graphs.chain("both", both, node("after", "e2e.effect")))
        second = await stage.fleet.start_ready("engine")
        instance = (await stage.calls.start("both", {}))["id"]

        async def hangs() -> bool:
            return await count_completed(stage, "x2") == 1 and len(stage.read_calls()) == 3

        await eventually(hangs, 30, message="the other branch doesn't end")
        [held] = await list_steps(stage, instance, "y")
        find_holder(stage, held["idempotency_key"], [stage.engine, second]).kill()

        ended = await stage.calls.wait_for_end(instance)
        assert (ended["status"], ended["state"]) == ("completed", {"a": {"attempt": 1}, "b": {"attempt": 2}})
        for name, attempts in (("x", 1), ("x2", 1), ("y", 2), ("after", 1)):
            steps = await list_steps(stage, instance, name)
            assert len(steps) == attempts, name
            assert count_calls(stage)[steps[0]["idempotency_key"]] == attempts, name
        told = [event for event in await stage.calls.get(instance, "events", limit=200) if event["node"] == "both"]
        assert [event["type"] for event in told].count("StepCompleted") == 1
        assert [event["data"]["branch"] for event in told if event["type"] == "BodyCompleted"] == ["a", "b"]
        await stage.assert_rules()


def find_holder(stage: Stage, key: str, engines: list[Program]) -> Program:
    """The engine that ran the visit's handler."""
    [pid] = [int(line.split()[2]) for line in stage.read_calls() if line.startswith(f"{key} ")]
    return next(engine for engine in engines if engine.pid == pid)


async def test_rounds_are_counted_on_when_an_engine_dies_between_them(tmp_path: Path, database_url: str) -> None:
    """T-REP-4."""
    async with staged(tmp_path, database_url, None) as stage:
        counted: Any = {"ref": "state.rounds", "default": 0}
        built = chain("rounds").then("e2e.round", "body", rounds=counted, slow=2).repeat_until("body", "rounds", 3)
        await stage.calls.publish(built.document())
        instance = (await stage.calls.start("rounds", {}))["id"]
        await eventually(lambda: len(stage.read_calls()) == 2, 30, message="there is no second round")
        await replace_engine(stage)

        ended = await stage.calls.wait_for_end(instance)
        assert (ended["status"], ended["state"]) == ("completed", {"rounds": 3})
        steps = await list_steps(stage, instance, "body")
        assert [(step["visit"], step["attempt"]) for step in steps] == [(1, 1), (2, 1), (2, 2), (3, 1)]
        await stage.assert_rules()


@pytest.mark.parametrize("is_committed", [False, True])
async def test_an_engine_that_dies_as_it_records(is_committed: bool, tmp_path: Path, database_url: str) -> None:
    """T-TX-1, T-TX-2: before the commit nothing has changed and the step runs again; after it the next one runs.

    Its statement waits for a lock when it is killed. The server ends that statement all the same, unless it is ended.
    """
    async with staged(tmp_path, database_url, None) as stage:
        first = node("work", "e2e.effect", {"seconds": 1}, save={"key": "work"})
        await stage.calls.publish(graphs.chain("records", first, node("after", "e2e.effect", save={"key": "after"})))
        instance = (await stage.calls.start("records", {}))["id"]
        await eventually(lambda: len(stage.read_calls()) == 1, 30, message="the step doesn't run")
        holder = await asyncpg.connect(database_url, server_settings={"search_path": "korak"})
        async with holder.transaction():
            await holder.fetch(HELD, instance)
            [blocked] = await eventually(lambda: stage.connection.fetch(BLOCKED), 30, message="nothing is recorded")
            stage.engine.kill()
            if not is_committed:
                await stage.connection.fetch("select pg_terminate_backend($1)", blocked["pid"])
                await eventually(lambda: is_gone(stage, blocked["pid"]), 10, message="the statement doesn't end")
        await holder.close()

        async def is_recorded() -> bool:
            return await count_completed(stage, "work") == 1

        if is_committed:
            await eventually(is_recorded, 10, message="the commit is lost")
        else:
            assert not await is_recorded()
            assert (await stage.calls.get(instance))["state"] == {}
        await stage.fleet.start_ready("engine")

        ended = await stage.calls.wait_for_end(instance)
        assert ended["status"] == "completed"
        attempts = await list_steps(stage, instance, "work")
        assert len(attempts) == (1 if is_committed else 2)
        assert ended["state"]["work"] == {"attempt": len(attempts)}
        assert count_calls(stage)[attempts[0]["idempotency_key"]] == len(attempts)
        await stage.assert_rules()


async def is_gone(stage: Stage, pid: int) -> bool:
    """Whether the server has ended this connection."""
    return not await stage.connection.fetchval("select count(*) from pg_stat_activity where pid = $1", pid)


async def test_a_delay_outlives_every_service(tmp_path: Path, database_url: str) -> None:
    """T-DELAY-4."""
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(chain("naps").delay(8).then("e2e.effect", "after").document())
        instance = (await stage.calls.start("naps", {}))["id"]
        [before] = (await stage.calls.get(instance))["waiting_for"]
        for program in (stage.api, stage.engine, stage.waker):
            program.kill()
        await asyncio.gather(*(stage.fleet.start_ready(name) for name in ("api", "engine", "waker")))
        during = await stage.calls.get(instance)

        ended = await stage.calls.wait_for_end(instance)
        assert during["waiting_for"] in ([before], [])
        assert ended["status"] == "completed"
        [after] = await list_steps(stage, instance, "after")
        assert datetime.fromisoformat(after["created_at"]) >= datetime.fromisoformat(before["due_at"])
        assert len(await list_steps(stage, instance, "delay_0")) == 1
        await stage.assert_rules()
