"""Limits and holds with real processes: never too many at once, no slot lost with an engine, and a hold is heard of."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from korak.model import Json
from tests.support.graphs import chain, node
from tests.support.stage import Stage, staged
from tests.support.waiting import eventually

SECONDS: dict[str, Any] = {"seconds": {"ref": "input.seconds"}}
RUNNING = "select count(*) from workflow_step_runs where status = 'running'"
PARKED = "select count(*) from workflow_step_runs where parked_for = $1"
IS_OVER = "select not exists (select from workflow_instances where ended_at is null)"
BEGUN = "select count(*) from workflow_events where type = 'StepStarted'"
STANDS_STILL = """
    select exists (select from workflow_step_runs where parked_for = 'hold')
        and not exists (select from workflow_step_runs where status = 'running' or ready_at is not null)"""
PLACES = ("step-types/e2e.effect", "definitions/line", "queues/default")

pytestmark = pytest.mark.timeout(120)


def limited(count: int) -> dict[str, Any]:
    """A graph whose two steps share a limit."""
    flow: Json = [{"key": "erp", "concurrency": count}]
    return chain("limited", node("a", "e2e.slow", SECONDS, flow=flow), node("b", "e2e.effect", flow=flow))


async def has_parked(stage: Stage, count: int) -> bool:
    """Whether so many wait for room."""
    return bool(await stage.connection.fetchval(PARKED, "limit") == count)


async def watch(stage: Stage, limit: int) -> int:
    """The most that ran at once until nothing is open."""
    most = 0

    async def look() -> bool:
        nonlocal most
        most = max(most, await stage.connection.fetchval(RUNNING))
        assert most <= limit
        return bool(await stage.connection.fetchval(IS_OVER))

    await eventually(look, 60, message="instances are left open")
    return most


async def test_three_engines_keep_a_limit_and_one_that_is_killed_leaks_no_slot(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """T-RES-3 with processes: SIGKILL of an engine that holds every slot; the others go on, never beyond the limit."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(limited(2))
        first = [await stage.calls.start("limited", {"seconds": 3600}) for _ in range(2)]
        await eventually(lambda: len(stage.read_calls()) >= 2, 30)
        others = [await stage.calls.start("limited", {"seconds": 0.02}) for _ in range(20)]
        await eventually(lambda: has_parked(stage, 20), 30)
        stage.engine.kill()
        engines = [stage.fleet.start_ready("engine") for _ in range(3)]
        most, _ = await asyncio.gather(watch(stage, 2), asyncio.gather(*engines))

        assert most >= 1

        for instance in (*first, *others):
            assert (await stage.calls.get(instance["id"]))["status"] == "completed"
        assert await stage.connection.fetchval("select count(*) from flow_slots") == 0
        assert await stage.connection.fetchval("select sum(in_use) from flow_keys") == 0
        await stage.assert_rules()


async def test_a_hold_holds_from_its_answer_on_and_what_it_kept_goes_on(tmp_path: Path, database_url: str) -> None:
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(chain("plain", node("a", "e2e.effect")))
        await stage.calls.send("POST", "/v1/step-types/e2e.effect/hold", {"reason": "not now"})
        instance = (await stage.calls.start("plain", {}))["id"]
        await eventually(lambda: stage.connection.fetchval(PARKED, "hold"), 10)
        assert stage.read_calls() == []
        await stage.calls.send("POST", "/v1/step-types/e2e.effect/release")
        assert (await stage.calls.wait_for_end(instance))["status"] == "completed"


async def test_under_load_nothing_begins_once_a_hold_is_answered(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """Two engines in the midst of short steps, most of which begin where the one before is recorded."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.fleet.start_ready("engine")
        await stage.calls.publish(chain("line", *(node(f"n{place}", "e2e.effect") for place in range(12))))
        await asyncio.gather(*(stage.calls.start("line", {}) for _ in range(60)))
        for place in PLACES:
            begun = await stage.connection.fetchval(BEGUN)
            await eventually(partial(has_begun, stage, begun + 40), 30)
            await stage.calls.send("POST", f"/v1/{place}/hold")
            begun = await stage.connection.fetchval(BEGUN)
            await eventually(lambda: stage.connection.fetchval(STANDS_STILL), 30)
            assert await stage.connection.fetchval(BEGUN) == begun, place
            await stage.calls.send("POST", f"/v1/{place}/release")
        await stage.end_all(60)
        assert await stage.connection.fetchval(BEGUN) == 60 * 12
        await stage.assert_rules()


async def has_begun(stage: Stage, count: int) -> bool:
    """Whether so many attempts have begun."""
    return bool(await stage.connection.fetchval(BEGUN) >= count)
