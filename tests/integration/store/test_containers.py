"""Containers on the server: their scopes, written and read back, at any number of items."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from korak.core.counters import Pages
from korak.core.facts import CancelAsked, Claimed, Delivered, Finished, Raised, RetryAsked
from korak.model import JsonObject, StepStatus
from korak.steps.contract import Complete
from korak.store.branches import list_branches
from korak.store.details import list_steps
from tests.support.bodies import body, for_each, node, parallel
from tests.support.flows import NOW, Flows, chain, make_claimant

REFUSED = Raised("test.refused", "no", is_retryable=False)
ITEM = body(node("x", "test.work", item={"ref": "item"}))


async def start(flows: Flows, *nodes: JsonObject) -> tuple[int, int]:
    [instance_id] = await flows.start(await flows.publish(chain(*nodes)))
    return instance_id, await flows.register()


async def work(
    flows: Flows, instance_id: int, engine_id: int, *, inline: bool = True, limit: int = 1 << 20, refuses: bool = False
) -> int:
    """Claim what is ready and record it, and what that grants, until nothing is ready; how many handlers ran."""
    ran = 0
    query = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null order by id"
    while ran < limit and (ready := await flows.fetch(query, instance_id)):
        for row in ready:
            changes = await flows.answer(instance_id, Claimed(row["id"], make_claimant(engine_id)), NOW)
            while changes.claimed and ran < limit:
                [grant] = changes.claimed
                ran += 1
                output: Any = grant.input if isinstance(grant.input, dict) else {}
                claimant = make_claimant(engine_id) if inline else None
                result = REFUSED if refuses else Complete(output=output)
                fact = Finished(grant.step.id, grant.step.claim_token or "", result, claimant)
                changes = await flows.answer(instance_id, fact, NOW, step=grant.step.id)
            if ran >= limit:
                break
    return ran


async def count_scopes(flows: Flows, instance_id: int) -> dict[str, int]:
    query = "select status, count(*) from workflow_scopes where instance_id = $1 group by status"
    return {row["status"]: row["count"] for row in await flows.fetch(query, instance_id)}


async def test_branches_are_merged(flows: Flows) -> None:
    """T-PAR-1."""
    branches = {
        "a": body(node("x", "test.work", n=1, save={"key": "k"})),
        "b": body(node("y", "test.work", n=2, save={"key": "k"}), node("z", "test.work", n={"ref": "state.k.n"})),
    }
    instance_id, engine_id = await start(flows, parallel("both", save={"key": "both"}, **branches))
    assert await work(flows, instance_id, engine_id) == 3
    instance = await flows.get_instance(instance_id)
    assert instance["status"] == "completed"
    assert instance["state"] == {"k": {"n": 2}, "both": {"a": {"n": 1}, "b": {"n": 2}}}
    rows = await flows.fetch("select name, finish_order, status from workflow_scopes order by item_index")
    assert [tuple(row) for row in rows] == [("a", 0, "completed"), ("b", 1, "completed")]
    assert await flows.get("select count(*) from workflow_step_runs where scope_id is not null") == 3
    assert await flows.get("select count(*) from workflow_step_runs where parent_step_run_id is not null") == 3


@pytest.mark.parametrize("count", [0, 1, 2, 1_000])
@pytest.mark.parametrize("concurrency", [None, 5])
async def test_any_number_of_items(flows: Flows, count: int, concurrency: int | None) -> None:
    limit: dict[str, Any] = {} if concurrency is None else {"concurrency": concurrency}
    items: Any = {"literal": list(range(count))}
    instance_id, engine_id = await start(flows, for_each(items, ITEM, save={"key": "r"}, **limit))
    assert await work(flows, instance_id, engine_id) == count
    instance = await flows.get_instance(instance_id)
    assert instance["status"] == "completed", instance["failure_params"]
    result = instance["state"]["r"]
    assert (result["total"], result["succeeded"]) == (count, count)
    assert [row["output"] for row in result["results"]] == [{"item": index} for index in range(count)]
    assert await count_scopes(flows, instance_id) == ({"completed": count} if count else {})


async def test_a_retry_runs_only_what_failed(flows: Flows) -> None:
    """T-FE-5."""
    instance_id, engine_id = await start(flows, for_each([1, 2, 3, 4], ITEM, save={"key": "r"}, concurrency=2))
    assert await work(flows, instance_id, engine_id, limit=1) == 1
    [row, *_] = await flows.fetch("select * from workflow_step_runs where status = 'running'")
    fact = Finished(row["id"], row["claim_token"], REFUSED)
    await flows.answer(instance_id, fact, NOW, step=row["id"])
    assert (await flows.get_instance(instance_id))["failure_code"] == "test.refused"
    await flows.answer(instance_id, RetryAsked(), NOW + timedelta(seconds=1))
    assert await work(flows, instance_id, engine_id) == 3
    result = (await flows.get_instance(instance_id))["state"]["r"]
    assert [row["item"] for row in result["results"]] == [1, 2, 3, 4]
    assert await flows.get("select count(*) from workflow_step_runs where node_id = 'x' and status = 'completed'") == 4


@pytest.mark.timeout(180)
async def test_of_many_bodies_that_have_failed_a_retry_lets_few_go_on_at_a_time(flows: Flows) -> None:
    """What a decision looks at is bounded too, by a page and by what runs."""
    count, failing, concurrency = 700, 600, 5
    how: dict[str, Any] = {"mode": "quorum", "quorum": count - failing + 1, "concurrency": concurrency}
    instance_id, engine_id = await start(
        flows, for_each({"literal": list(range(count))}, ITEM, save={"key": "r"}, **how)
    )
    await work(flows, instance_id, engine_id, refuses=True)
    assert (await count_scopes(flows, instance_id))["failed"] == failing
    assert len((await flows.load(instance_id)).scopes) == 0
    await flows.answer(instance_id, RetryAsked(), NOW + timedelta(seconds=1))
    assert await count_scopes(flows, instance_id) == {"pending": count}
    most = 0
    while (await flows.get_instance(instance_id))["status"] != "completed":
        await work(flows, instance_id, engine_id, limit=7)
        snapshot = await flows.load(instance_id)
        open_ = [scope for scope in snapshot.scopes.values() if scope.ended_at is None]
        most = max(most, len(open_), len(snapshot.halted))
        [running] = await flows.fetch("select count(*) as n from workflow_scopes where status = 'running'")
        assert running["n"] <= concurrency
    assert most <= Pages().size
    done = "select count(*) from workflow_step_runs where node_id = 'x' and status = 'completed'"
    assert await flows.get(done) == count - failing + 1


async def test_a_cancel_closes_every_scope(flows: Flows) -> None:
    inner = for_each([1, 2, 3], ITEM, "inner", concurrency=1)
    instance_id, _ = await start(flows, for_each([1, 2], body(inner), "outer"))
    assert await count_scopes(flows, instance_id) == {"running": 4, "pending": 4}
    await flows.answer(instance_id, CancelAsked(), NOW)
    assert await count_scopes(flows, instance_id) == {"cancelled": 8}
    live = [StepStatus.QUEUED, StepStatus.RUNNING, StepStatus.WAITING]
    assert await flows.get("select count(*) from workflow_step_runs where status = any($1)", live) == 0


async def test_an_event_ends_a_scope(flows: Flows) -> None:
    exits: list[JsonObject] = [{"event": "withdrawn", "outcome": "left"}]
    inner = body(for_each([1, 2, 3], ITEM, "inner", concurrency=1))
    around = node("around", "scope", events=exits, body=inner, save={"key": "out"})
    last = node("last", "test.work")
    document: Any = chain(around, last)
    document["edges"].append({"from": "around", "outcome": "left", "to": "last"})
    [instance_id] = await flows.start(await flows.publish(document))
    engine_id = await flows.register()
    assert await work(flows, instance_id, engine_id, limit=1) == 1
    await flows.fetch(
        "insert into workflow_signals (instance_id, owner_scope, kind, name, payload, source_id, created_at)"
        " values ($1, '*', 'signal', 'withdrawn', $2, 's1', $3)",
        instance_id,
        {"by": "customer"},
        NOW,
    )
    await flows.answer(instance_id, Delivered(), NOW)
    assert await count_scopes(flows, instance_id) == {"completed": 1, "cancelled": 3}
    assert await work(flows, instance_id, engine_id) == 1
    instance = await flows.get_instance(instance_id)
    assert (instance["status"], instance["state"]["out"]["payload"]) == ("completed", {"by": "customer"})
    assert await flows.get("select count(*) from workflow_waits where status in ('pending', 'suspended')") == 0


async def test_containers_in_containers(flows: Flows) -> None:
    inner = for_each([1, 2, 3], ITEM, "inner", save={"key": "mine"})
    last = node("last", "end", result={"ref": "state.mine.succeeded"})
    instance_id, engine_id = await start(flows, for_each([1, 2], body(inner, last), "outer", save={"key": "r"}))
    assert await work(flows, instance_id, engine_id) == 6
    instance = await flows.get_instance(instance_id)
    assert [row["output"] for row in instance["state"]["r"]["results"]] == [3, 3]
    assert set(instance["state"]) == {"r"}
    async with flows.database.acquire() as connection:
        steps = await list_steps(connection, instance_id)
        branches = await list_branches(connection, steps)
    named = {(step.node_id, branches.get(step.scope_id or 0)) for step in steps}
    assert {branch for name, branch in named if name == "x"} == {f"{i}/{j}" for i in range(2) for j in range(3)}
    assert {branch for name, branch in named if name == "inner"} == {"0", "1"}
    assert ("outer", None) in named
