"""Parents and children while an engine is killed: in the transaction that starts them, and in the one that ends one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from korak.model import JsonObject
from tests.support import ledger
from tests.support.graphs import chain, node
from tests.support.stage import Stage, staged
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)

CHILD = chain("child", node("work", "e2e.effect", {"seconds": {"ref": "input.seconds", "default": 0}}))
WAITING_FOR_LOCK = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ilike $1"


def nested(name: str, **config: Any) -> JsonObject:
    """A node that runs a child and waits for it."""
    return node(name, "start_workflow", {"definition": "child", "wait": True, **config}, save={"key": name})


def many(name: str, items: Any, **config: Any) -> JsonObject:
    """A node that starts a child for each item."""
    return node(name, "start_workflows", {"definition": "child", "items": items, **config}, save={"merge": True})


@asynccontextmanager
async def held_up(stage: Stage, table: str) -> AsyncIterator[Any]:
    """Nobody writes this table meanwhile: whoever does it in a transaction stands still there."""
    connection = await ledger.connect(stage.database)
    try:
        async with connection.transaction():
            await connection.execute(f"lock table korak.{table} in exclusive mode")
            yield connection
    finally:
        await connection.close()


async def wait_until_blocked(stage: Stage, table: str) -> None:
    """Until somebody waits for it."""

    async def look() -> bool:
        return bool(await stage.connection.fetchval(WAITING_FOR_LOCK, f"%insert into {table}%"))

    await eventually(look, 30, message=f"nobody writes {table}")


async def list_children(stage: Stage, instance: str) -> Any:
    return (await stage.calls.send("GET", "/v1/instances", params={"parent": instance, "limit": 100}))["items"]


async def test_t_start_5_an_engine_is_killed_while_it_starts_three(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """Defect 6: SIGKILL when the children are inserted and nothing is committed; afterwards there are exactly three."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(CHILD)
        gate = node("gate", "wait", {"signal": "go"})
        wait = node("wait", "wait_workflows", {"ids": {"ref": "state.ids"}}, save={"key": "r"})
        await stage.calls.publish(chain("parent", gate, many("many", [1, 2, 3]), wait))
        instance = (await stage.calls.start("parent", {}))["id"]
        async with held_up(stage, "workflow_idempotency_keys"):
            await stage.calls.send("POST", f"/v1/instances/{instance}/signal", {"name": "go"})
            await wait_until_blocked(stage, "workflow_idempotency_keys")
            stage.engine.kill()
        await stage.fleet.start_ready("engine")

        ended = await stage.calls.wait_for_end(instance)

        assert ended["status"] == "completed"
        children = await list_children(stage, instance)
        assert sorted(child["input"]["item"] for child in children) == [1, 2, 3]
        assert sorted(ended["state"]["ids"]) == sorted(child["id"] for child in children)
        assert list(ended["state"]["r"]) == ended["state"]["ids"]
        await stage.end_all(30)
        await stage.assert_rules()


async def test_an_engine_is_killed_while_it_records_the_end_of_a_child(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """SIGKILL when the end is told to the parent and nothing is committed: the child ends once, and its parent too."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(CHILD)
        await stage.calls.publish(chain("parent", nested("sub", inputs={"seconds": 2}), node("after", "e2e.effect")))
        instance = (await stage.calls.start("parent", {}))["id"]
        await eventually(lambda: len(stage.read_calls()) == 1, 30)
        async with held_up(stage, "workflow_signals"):
            await wait_until_blocked(stage, "workflow_signals")
            stage.engine.kill()
        await stage.fleet.start_ready("engine")

        ended = await stage.calls.wait_for_end(instance)

        assert (ended["status"], ended["state"]["sub"]) == ("completed", {})
        [child] = await list_children(stage, instance)
        assert child["status"] == "completed"
        await stage.assert_rules()


async def test_a_large_family_is_started_page_by_page_without_a_pause(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """The engine makes the next page as it has told of the last one: no nudge is lost that the waker brings later."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(CHILD)
        await stage.calls.publish(chain("parent", many("many", list(range(1_600)))))
        ended = await stage.calls.wait_for_end((await stage.calls.start("parent", {}))["id"])
        assert len(ended["state"]["ids"]) == 1_600
        sends = "select s.sends, s.status from korak.workflow_step_runs s where s.node_id = 'many'"
        pulled = 1 if broker_url is None else 0
        assert [tuple(row) for row in await stage.connection.fetch(sends)] == [(pulled, "completed")]


async def test_families_end_whole_however_often_engines_die(tmp_path: Path, database_url: str) -> None:
    """T-NEST-1, T-START-1, T-DEP-1: each parent has its four children, none twice, whatever was killed."""
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(CHILD)
        wait = node("wait", "wait_workflows", {"group": "agents"}, save={"key": "r"})
        await stage.calls.publish(chain("parent", many("many", [1, 2, 3], group="agents"), nested("sub"), wait))
        engine = stage.engine
        parents = []
        for _ in range(3):
            parents += [(await stage.calls.start("parent", {}))["id"] for _ in range(8)]
            engine.kill()
            engine = await stage.fleet.start_ready("engine")
        for parent in parents:
            ended = await stage.calls.wait_for_end(parent)
            assert ended["status"] == "completed", ended["failure"]
            assert len(ended["state"]["r"]) == 3
            assert len(await list_children(stage, parent)) == 4
        await stage.end_all(30)
        await stage.assert_rules()


async def test_commands_reach_a_family(tmp_path: Path, database_url: str, broker_url: str | None) -> None:
    """T-NEST-4, T-NEST-5: pause and resume go to all children, a cancel to the one that is waited for."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(chain("child", node("gate", "wait", {"signal": "go"})))
        await stage.calls.publish(chain("parent", many("many", [1, 2]), nested("sub")))
        instance = (await stage.calls.start("parent", {}))["id"]

        async def get_statuses() -> list[str]:
            return [child["status"] for child in await list_children(stage, instance)]

        async def expect(statuses: list[str]) -> None:
            async def look() -> bool:
                return sorted(await get_statuses()) == sorted(statuses)

            await eventually(look, 30, message=f"the children aren't {statuses}")

        await expect(["waiting"] * 3)
        await stage.calls.send("POST", f"/v1/instances/{instance}/pause")
        await expect(["paused"] * 3)
        await stage.calls.send("POST", f"/v1/instances/{instance}/resume")
        await expect(["waiting"] * 3)
        await stage.calls.send("POST", f"/v1/instances/{instance}/cancel", {"reason": "enough"})
        await expect(["cancelled", "waiting", "waiting"])
