"""What goes between runs arrives at once, without the waker; where its teller was killed the waker brings it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from korak.model import JsonObject
from tests.support import ledger
from tests.support.fleet import Program
from tests.support.graphs import chain, document, edge, node
from tests.support.stage import Stage, staged
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)

SOON = 2.0
"""Seconds that it takes at most by the times in the rows, on however busy a machine."""

NEVER: JsonObject = {"seconds": 3_600}
GATE = node("gate", "wait", {"signal": "go"})
LEAVES = {
    "busy": node("work", "e2e.slow", NEVER),
    "signal": GATE,
    "timer": node("rest", "delay", {"for": "PT1H"}),
    "queued": node("work", "e2e.effect", queue="nobody"),
    "retrying": node("work", "e2e.flaky", retry={"max_attempts": 3, "backoff": [3_600]}),
}
"""A run that stands in each of the ways in which one may stand."""

FAMILY = """
with recursive family as (
    select id, ulid, definition_id, parent_instance_id, depth, status, paused_at, ended_at
    from workflow_instances where ulid = $1
    union all
    select i.id, i.ulid, i.definition_id, i.parent_instance_id, i.depth, i.status, i.paused_at, i.ended_at
    from workflow_instances i join family on i.parent_instance_id = family.id
)
select family.*, d.key from family join workflow_definitions d on d.id = family.definition_id
order by family.depth, family.id
"""
LIVE = """
select count(*) from workflow_step_runs s join workflow_instances i on i.id = s.instance_id
where i.depth = 2 and s.status = $1
"""
BLOCKED = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ilike $1"


def begins(child: str, name: str | None = None) -> JsonObject:
    """A node that starts a run and goes on."""
    return node(name or f"begin_{child}", "start_workflow", {"definition": child, "wait": False})


async def raise_family(stage: Stage) -> str:
    """Three levels; at the lowest one a run stands in each way, and one has ended. The ULID of the highest."""
    for name, leaf in LEAVES.items():
        await stage.calls.publish(chain(name, leaf))
    await stage.calls.publish(chain("over", node("work", "e2e.effect")))
    await stage.calls.publish(chain("middle", *map(begins, [*LEAVES, "over"]), GATE))
    await stage.calls.publish(chain("top", begins("middle"), begins("middle", "begin_other"), GATE))
    ulid = str((await stage.calls.start("top", {}))["id"])

    async def stands() -> bool:
        counts = {status: await stage.connection.fetchval(LIVE, status) for status in ("running", "waiting", "queued")}
        return counts == {"running": 2, "waiting": 4, "queued": 4}

    await eventually(stands, 30, message="the family doesn't get to where it is to stand")
    return ulid


async def list_family(stage: Stage, ulid: str) -> list[Any]:
    return [*await stage.connection.fetch(FAMILY, ulid)]


async def list_open(stage: Stage, ulid: str) -> list[Any]:
    return [row for row in await list_family(stage, ulid) if row["ended_at"] is None]


async def wait_until_paused(stage: Stage, ulid: str) -> list[Any]:
    """The open runs of a family, once each is paused."""

    async def look() -> list[Any]:
        rows = await list_open(stage, ulid)
        return rows if all(row["paused_at"] is not None for row in rows) else []

    return await eventually(look, 30, message="not all of the family is paused")


@asynccontextmanager
async def holding(stage: Stage, statement: str, *given: Any) -> AsyncIterator[None]:
    """Whoever wants what this statement locks waits, until the end."""
    connection = await ledger.connect(stage.database)
    try:
        async with connection.transaction():
            await connection.execute(statement, *given)
            yield
    finally:
        await connection.close()


async def kill_blocked(stage: Stage, program: Program, query: str) -> None:
    """SIGKILL, once somebody waits for a lock with that query."""

    async def look() -> bool:
        return bool(await stage.connection.fetchval(BLOCKED, query))

    await eventually(look, 30, message=f"nobody waits with {query}")
    program.kill()


async def test_a_pause_and_a_resume_go_through_three_levels(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """Whatever the runs stand at, and without the waker."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        ulid = await raise_family(stage)
        stage.waker.freeze()

        await stage.calls.send("POST", f"/v1/instances/{ulid}/pause")
        rows = await wait_until_paused(stage, ulid)

        took = [(row["paused_at"] - rows[0]["paused_at"]).total_seconds() for row in rows]
        assert len(rows) == 1 + 2 + 2 * len(LEAVES)
        assert max(took) < SOON, took
        parked = await stage.connection.fetchval(
            "select count(*) from workflow_step_runs where status = 'queued' and parked_for = 'pause'"
        )
        assert parked == 4

        await stage.calls.send("POST", f"/v1/instances/{ulid}/resume")

        async def goes_on() -> bool:
            return all(row["paused_at"] is None for row in await list_open(stage, ulid))

        await eventually(goes_on, 10, message="not all of the family goes on")
        assert [row["key"] for row in await list_family(stage, ulid) if row["ended_at"] is not None] == ["over"] * 2


async def test_a_child_that_is_paused_already_brings_nothing_further(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """It was paused by itself, and those below it with it: they stay as they are, the others are paused."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        ulid = await raise_family(stage)
        stage.waker.freeze()
        middle = next(row for row in await list_family(stage, ulid) if row["depth"] == 1)
        await stage.calls.send("POST", f"/v1/instances/{middle['ulid']}/pause")
        before = {row["id"]: row["paused_at"] for row in await wait_until_paused(stage, middle["ulid"])}

        await stage.calls.send("POST", f"/v1/instances/{ulid}/pause")
        after = {row["id"]: row["paused_at"] for row in await wait_until_paused(stage, ulid)}

        assert {key: after[key] for key in before} == before
        assert len(after) == 1 + 2 + 2 * len(LEAVES)


async def test_what_an_api_was_killed_before_telling_the_waker_tells(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """SIGKILL between the commit of the pause and the first child that has it."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        ulid = await raise_family(stage)
        stage.waker.freeze()
        async with holding(stage, "lock table korak.workflow_signals in exclusive mode"):
            await stage.calls.send("POST", f"/v1/instances/{ulid}/pause")
            await kill_blocked(stage, stage.api, "%from workflow_cascades%")
        stage.waker.thaw()
        rows = await wait_until_paused(stage, ulid)
        assert len(rows) == 1 + 2 + 2 * len(LEAVES)


AWAITED = node("sub", "start_workflow", {"definition": "child", "wait": True})
BAD = node("bad", "e2e.flaky", retry={"max_attempts": 1})
FAILING = document(
    "failing",
    [
        node(
            "both",
            "parallel",
            branches={
                "one": {"start": "sub", "nodes": [AWAITED], "edges": []},
                "two": {"start": "gate", "nodes": [GATE, BAD], "edges": [edge("gate", "bad")]},
            },
        ),
        node("done", "end"),
    ],
    [edge("start", "both"), edge("both", "done")],
)


async def start_failing(stage: Stage, *leaf: JsonObject) -> str:
    """A run with a child that it waits for; it fails as soon as it gets the signal. Its ULID."""
    await stage.calls.publish(chain("child", *leaf))
    await stage.calls.publish(FAILING)
    ulid = str((await stage.calls.start("failing", {}))["id"])

    async def waits() -> bool:
        rows = await list_family(stage, ulid)
        return len(rows) == 2 and await stage.connection.fetchval(
            "select count(*) = 2 from workflow_waits where status = 'pending' and kind = 'signal'"
        )

    await eventually(waits, 30, message="it has no child that waits")
    return ulid


async def wait_until_ended(stage: Stage, ulid: str, statuses: list[str]) -> list[Any]:
    """The rows of a family, once they have these statuses, the highest first."""

    async def look() -> list[Any]:
        rows = await list_family(stage, ulid)
        return rows if [row["status"] for row in rows] == statuses else []

    return await eventually(look, 30, message=f"the family isn't {statuses}")


async def test_a_child_is_cancelled_with_the_run_that_an_engine_fails(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    async with staged(tmp_path, database_url, broker_url) as stage:
        ulid = await start_failing(stage, GATE)
        stage.waker.freeze()
        await stage.calls.send("POST", f"/v1/instances/{ulid}/signal", {"name": "go"})
        parent, child = await wait_until_ended(stage, ulid, ["failed", "cancelled"])
        assert (child["ended_at"] - parent["ended_at"]).total_seconds() < SOON


async def test_what_an_engine_was_killed_before_telling_the_waker_tells(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """SIGKILL between the commit of the failure and the child's: somebody holds the child meanwhile."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        ulid = await start_failing(stage, GATE)
        _, child = await list_family(stage, ulid)
        stage.waker.freeze()
        async with holding(stage, "select from korak.workflow_instances where id = $1 for update", child["id"]):
            await stage.calls.send("POST", f"/v1/instances/{ulid}/signal", {"name": "go"})
            await wait_until_ended(stage, ulid, ["failed", "waiting"])
            stage.engine.kill()
        stage.waker.thaw()
        await wait_until_ended(stage, ulid, ["failed", "cancelled"])


async def test_who_waits_for_a_group_goes_on_as_its_last_run_ends(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """T-DEP-7: nobody has waited for anything before, and the waker stands still."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(chain("child", GATE))
        begun = node("many", "start_workflows", {"definition": "child", "items": [1, 2, 3], "group": "agents"})
        waits = node("wait", "wait_workflows", {"group": "agents"}, save={"key": "r"})
        await stage.calls.publish(chain("waiter", begun, waits))
        ulid = str((await stage.calls.start("waiter", {}))["id"])
        waiting = ["waiting"] * 4
        rows = await wait_until_ended(stage, ulid, waiting)
        await eventually(lambda: stage.connection.fetchval("select count(*) = 3 from workflow_dependencies"), 30)
        stage.waker.freeze()
        for row in rows[1:]:
            await stage.calls.send("POST", f"/v1/instances/{row['ulid']}/signal", {"name": "go"})
        waiter, *children = await wait_until_ended(stage, ulid, ["completed"] * 4)
        took = (waiter["ended_at"] - max(child["ended_at"] for child in children)).total_seconds()
        assert took < SOON


HOOKS = """
select i.depth, s.node_id, s.status, s.started_at, s.finished_at from workflow_step_runs s
join workflow_instances i on i.id = s.instance_id where s.role = 'compensate' order by s.id
"""
FAST: JsonObject = {"type": "e2e.effect", "config": {"seconds": 0}}
SLOW: JsonObject = {"type": "e2e.slow", "config": {"seconds": 3_600}}


async def start_booked(stage: Stage, undo: JsonObject) -> str:
    """A run and the child that it waits for, each with something to undo. Its ULID."""
    await stage.calls.publish(chain("child", node("flight", "e2e.effect", compensate=undo), GATE))
    await stage.calls.publish(chain("trip", node("hotel", "e2e.effect", compensate=FAST), AWAITED))
    ulid = str((await stage.calls.start("trip", {}))["id"])
    await wait_until_ended(stage, ulid, ["waiting", "waiting"])
    return ulid


async def list_hooks(stage: Stage) -> list[Any]:
    return [*await stage.connection.fetch(HOOKS)]


async def wait_until_undone(stage: Stage) -> list[Any]:
    """The hooks, once the highest run's has ended."""

    async def look() -> list[Any]:
        rows = await list_hooks(stage)
        return rows if [row["status"] for row in rows if row["depth"] == 0] == ["completed"] else []

    return await eventually(look, 30, message="it isn't undone")


async def test_a_cancelled_run_is_undone_as_soon_as_its_child_is(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """T-NEST-5, T-COMP-6: the child's undoing, the answer that it is over, and the parent's, all without the waker."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        ulid = await start_booked(stage, FAST)
        stage.waker.freeze()
        await stage.calls.send("POST", f"/v1/instances/{ulid}/cancel", {})
        child, parent = await wait_until_undone(stage)
        assert (child["depth"], parent["depth"]) == (1, 0)
        assert child["finished_at"] <= parent["started_at"]
        cancelled = (await list_family(stage, ulid))[0]["ended_at"]
        assert (parent["finished_at"] - cancelled).total_seconds() < SOON
        await stage.assert_rules()


async def test_a_cancelled_run_waits_for_its_childs_undoing_though_that_is_killed(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """SIGKILL in the middle of the child's undoing: it is undone by another engine, and its parent only then."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        ulid = await start_booked(stage, SLOW)
        await stage.calls.send("POST", f"/v1/instances/{ulid}/cancel", {})

        async def is_undoing() -> bool:
            return [(row["depth"], row["status"]) for row in await list_hooks(stage)] == [(1, "running")]

        await eventually(is_undoing, 30, message="the child isn't being undone")
        stage.engine.kill()
        assert [row["depth"] for row in await list_hooks(stage)] == [1]
        await stage.fleet.start_ready("engine")
        *children, parent = await wait_until_undone(stage)
        assert [(row["depth"], row["status"]) for row in children] == [(1, "failed"), (1, "completed")]
        assert children[-1]["finished_at"] <= parent["started_at"]
        await stage.assert_rules()
