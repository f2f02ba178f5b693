"""Waits for other runs on the server: both sides write, commit and look, so that nobody waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from korak.core.facts import CancelAsked
from korak.model import InstanceStatus, JsonObject
from korak.store import kin
from korak.store.database import Database, Hot, Session
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.transacting import Transactor
from tests.support.children import CHILD, Families, graph, many, nested, waiting
from tests.support.flows import NOW, Flows, Leaving, work

RACES = 200


async def count_dependencies(flows: Flows) -> int:
    count: int = await flows.get("select count(*) from workflow_dependencies")
    return count


@pytest.mark.parametrize("mode", ["all", "any", "quorum"])
async def test_t_dep_1_2_and_3_modes(families: Families, mode: str) -> None:
    """T-DEP-2, T-DEP-3"""
    given: dict[str, Any] = {"mode": mode, **({"quorum": 2} if mode == "quorum" else {})}
    waiter = graph("waiter", waiting({"ref": "input.ids"}, **given))
    found = await families.publish(waiter, CHILD)
    runs = [await families.start(found["child"], {"n": number}) for number in range(3)]
    waiting_id, _ = await families.start(found["waiter"], {"ids": [ulid for _, ulid in runs]})
    await families.work(waiting_id)
    assert await count_dependencies(families.flows) == 3
    needed = {"all": 3, "any": 1, "quorum": 2}[mode]
    for number, (run, _) in enumerate(reversed(runs), 1):
        await families.work(run)
        await families.look()
        await families.deliver()
        while await families.work(waiting_id):
            pass
        status = await families.flows.get_status(waiting_id)
        assert (status == InstanceStatus.COMPLETED) is (number >= needed)
    result = (await families.flows.get_instance(waiting_id))["state"]["r"]
    assert list(result) == [ulid for _, ulid in runs[3 - needed :]]
    assert await count_dependencies(families.flows) == 0


async def test_t_dep_4_and_the_run_to_blame(families: Families) -> None:
    found = await families.publish(graph("waiter", waiting({"ref": "input.ids"})), CHILD)
    run, ulid = await families.start(found["child"])
    waiting_id, _ = await families.start(found["waiter"], {"ids": ulid})
    await families.work(waiting_id)
    await families.flows.answer(run, CancelAsked(), NOW)
    await families.drain()
    instance = await families.flows.get_instance(waiting_id)
    assert (instance["failure_code"], instance["failure_params"]) == (
        "wait_impossible",
        {"pointer": "/ids", "detail": f"the run {ulid} was cancelled"},
    )


async def test_a_run_that_isnt_there_is_impossible(families: Families) -> None:
    found = await families.publish(graph("waiter", waiting({"ref": "input.ids"})), CHILD)
    waiting_id, _ = await families.start(found["waiter"], {"ids": ["01JZZZZZZZZZZZZZZZZZZZZZZZ"]})
    await families.drain()
    instance = await families.flows.get_instance(waiting_id)
    assert instance["failure_params"] == {"pointer": "/ids/0", "detail": "there is no run 01JZZZZZZZZZZZZZZZZZZZZZZZ"}


async def test_t_dep_7_a_group_of_what_was_started(families: Families) -> None:
    wait: JsonObject = {"id": "wait", "type": "wait_workflows", "config": {"group": "agents"}, "save": {"key": "r"}}
    parent = graph("parent", many([1, 2], group="agents"), many([3], name="others"), wait)
    found = await families.publish(parent, CHILD)
    parent_id, _ = await families.start(found["parent"])
    await families.drain()
    state: Any = (await families.flows.get_instance(parent_id))["state"]
    children = await families.list_children(parent_id)
    assert list(state["r"]) == [child["ulid"] for child in children if child["trigger_key"] == "agents"]
    assert len(state["r"]) == 2


async def test_runs_that_wait_for_one_another_are_told_the_way_round(families: Families) -> None:
    """Both are written before anybody looks, so that whoever looks sees the round."""
    asking: JsonObject = {"id": "ask", "type": "wait", "config": {"signal": "ids"}, "save": {"key": "s"}}
    found = await families.publish(graph("waiter", asking, waiting({"ref": "state.s.payload.ids"})))
    runs = [await families.start(found["waiter"]) for _ in range(3)]
    for place, (run, _) in enumerate(runs):
        _, other = runs[(place + 1) % 3]
        async with families.flows.database.transaction() as connection:
            await connection.execute(
                "insert into workflow_signals (instance_id, owner_scope, kind, name, payload, source_id, created_at)"
                " values ($1, '*', 'signal', 'ids', $2, 's', $3)",
                run,
                {"ids": [other]},
                NOW,
            )
    await families.deliver()
    for run, _ in runs:
        while await families.work(run):
            pass
    await families.drain()
    instances = [await families.flows.get_instance(run) for run, _ in runs]
    assert [row["status"] for row in instances] == ["failed"] * 3
    told = {row["failure_params"]["detail"] for row in instances}
    assert any("wait for one another" in detail for detail in told), told


async def test_a_child_that_waits_for_its_parent_stands_in_a_round(families: Families) -> None:
    child = graph("child", waiting({"ref": "trigger.payload.instance"}))
    found = await families.publish(graph("parent", nested()), child)
    parent_id, _ = await families.start(found["parent"])
    await families.drain()
    instance = await families.flows.get_instance(parent_id)
    assert (instance["status"], instance["failure_params"]["code"]) == ("failed", "wait_impossible")


async def test_a_round_that_another_way_leads_out_of_is_none(families: Families) -> None:
    """Who waits for any of two may still go on with the other one."""
    asking: JsonObject = {"id": "ask", "type": "wait", "config": {"signal": "go"}}
    first = graph("first", asking, waiting({"ref": "input.ids"}, mode="any"))
    found = await families.publish(first, graph("second", waiting({"ref": "input.ids"})), CHILD)
    run, ulid = await families.start(found["child"])
    _ = run
    first_id, first_ulid = await families.start(found["first"], {"ids": [ulid]})
    second_id, second_ulid = await families.start(found["second"], {"ids": [first_ulid]})
    await families.flows.fetch(
        "update workflow_instances set input = $2 where id = $1 returning id", first_id, {"ids": [ulid, second_ulid]}
    )
    await families.work(second_id)
    async with families.flows.database.transaction() as connection:
        await connection.execute(
            "insert into workflow_signals (instance_id, owner_scope, kind, name, payload, source_id, created_at)"
            " values ($1, '*', 'signal', 'go', '{}', 's', $2)",
            first_id,
            NOW,
        )
    await families.drain()
    assert [await families.flows.get_status(each) for each in (first_id, second_id)] == ["completed"] * 2


async def test_t_dep_8_an_end_in_the_same_instant_is_never_lost(families: Families, database_url: str) -> None:
    """Defect 9: the end and the wait are committed at once, by two who look only afterwards; 200 times."""
    found = await families.publish(graph("waiter", waiting({"ref": "input.id"}), work("after")), CHILD)
    async with Database(database_url, "korak", name="other") as database:
        other = Transactor(Hot(database), Loader(Plans(), families.flows.policy), Ids(), Leaving())
        another = Families(
            Flows(database, families.flows.policy, families.flows.starter, other), families.engine, families.nesting
        )
        pairs = []
        for _ in range(RACES):
            run, ulid = await families.start(found["child"])
            waiter, _ = await families.start(found["waiter"], {"id": ulid})
            ending = await another.ask(await another.claim(run))
            waiting_for = await families.ask(await families.claim(waiter))
            done = await asyncio.gather(_end(another, run, ending), _register(families, waiting_for))
            pairs.append((waiter, done))
    await families.deliver()
    for waiter, _ in pairs:
        while await families.work(waiter):
            pass
        assert await families.flows.get_status(waiter) == InstanceStatus.COMPLETED
    assert await count_dependencies(families.flows) == 0


async def _end(families: Families, run: int, ending: Any) -> None:
    await families.finish(*ending)
    async with families.flows.database.acquire() as connection:
        await kin.tell(Session(connection), NOW, is_sent=False, awaited=[run])


async def _register(families: Families, asked: Any) -> None:
    changes = await families.finish(*asked)
    assert changes.outward is not None
    waits = sorted({each.wait.id for each in changes.outward.dependencies})
    async with families.flows.database.acquire() as connection:
        await kin.tell(Session(connection), NOW, is_sent=False, waits=waits)
