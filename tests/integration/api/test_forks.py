"""What a fork shares with the run that it comes from: the runs that were started for it, and the artifacts (T-X-2)."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.facts import Finished, Left
from korak.model import JsonObject
from korak.steps.artifacts import make
from korak.steps.contract import Complete
from tests.support.apis import Api, chain, node, save
from tests.support.children import Families, many
from tests.support.copied import list_rows, send_in, take_out

CHILD = chain("child", node("work", "test.price", order="o") | {"save": {"key": "worked"}})
FIRST = node("first", "set_field", field="state.first", value=1)
ASK = node("ask", "wait", signal="go")
GROUP = node("group", "wait_workflows", group="g") | {"save": {"key": "res"}}


def start_many(items: int = 2) -> JsonObject:
    return many(list(range(items)), group="g")


def in_bodies() -> JsonObject:
    """Both branches start runs under the group."""
    branches: Any = {
        name: {"start": name, "nodes": [many([name], name=name, group="g")], "edges": []} for name in ("x", "y")
    }
    return {"id": "both", "type": "parallel", "branches": branches}


async def go_on(api: Api, families: Families, ulid: str) -> Any:
    """Work off what is ready of this run alone; how it stands then."""
    while await families.work(await api.get_id(ulid)):
        pass
    return await api.show(ulid)


async def begin(api: Api, families: Families, *nodes: JsonObject) -> str:
    """A run that has started others as far as it can."""
    await api.publish(CHILD)
    await api.publish(chain("parent", *nodes))
    ulid: str = (await api.start("parent"))["id"]
    await go_on(api, families, ulid)
    return ulid


async def fork(api: Api, ulid: str, **body: Any) -> str:
    response = await api.post(f"/v1/instances/{ulid}/fork", body)
    assert response.status_code == 201, response.text
    made: str = response.json()["id"]
    return made


async def list_started(api: Api, ulid: str) -> list[str]:
    rows = await api.fetch(
        "select c.ulid from workflow_instances c join workflow_instances p on p.id = c.parent_instance_id"
        " where p.ulid = $1 order by c.ulid",
        ulid,
    )
    return [row["ulid"] for row in rows]


async def find_awaited(api: Api, ulid: str) -> list[str]:
    """The runs that the group's wait was for, in the end."""
    shown = await api.show(ulid)
    assert shown["status"] == "completed", shown
    return sorted(shown["state"]["res"])


@pytest.mark.parametrize("body", [{}, {"to": "many"}])
async def test_a_fork_waits_for_the_runs_of_a_group_that_was_started_before_its_place(
    api: Api, families: Families, body: JsonObject
) -> None:
    ulid = await begin(api, families, FIRST, start_many(), GROUP)
    mine = await list_started(api, ulid)
    first = await fork(api, ulid, **body)
    second = await fork(api, first, **body)
    for made in (first, second):
        assert (await go_on(api, families, made))["status"] == "waiting"
        assert await list_started(api, made) == []
    await families.drain()
    for each in (ulid, first, second):
        assert await find_awaited(api, each) == mine


async def test_a_fork_waits_for_what_bodies_before_its_place_had_started(api: Api, families: Families) -> None:
    ulid = await begin(api, families, FIRST, in_bodies(), FIRST | {"id": "last"}, GROUP)
    mine = await list_started(api, ulid)
    assert len(mine) == 2
    first = await fork(api, ulid)
    second = await fork(api, first, to="both")
    anew = await fork(api, first, to="first")
    for made in (first, second, anew):
        assert (await go_on(api, families, made))["status"] == "waiting"
    own = await list_started(api, anew)
    assert len(own) == 2
    await families.drain()
    awaited = [await find_awaited(api, each) for each in (ulid, first, second, anew)]
    assert awaited == [mine, mine, mine, own]


async def test_what_either_starts_after_the_fork_is_its_own(api: Api, families: Families) -> None:
    """A newer visit of the step replaces the one that they share, in the run that has made it."""
    ulid = await begin(api, families, FIRST, start_many(), ASK, GROUP)
    mine = await list_started(api, ulid)
    kept, anew = await fork(api, ulid), await fork(api, ulid)
    for each in (ulid, anew):
        assert (await api.post(f"/v1/instances/{each}/rewind", {"to": "first"})).status_code == 200
        await go_on(api, families, each)
    for each in (ulid, kept, anew):
        await api.post(f"/v1/instances/{each}/signal", {"name": "go"})
    await families.drain()
    assert await find_awaited(api, kept) == mine
    assert await find_awaited(api, anew) == await list_started(api, anew)
    assert await find_awaited(api, ulid) == [each for each in await list_started(api, ulid) if each not in mine]


@pytest.mark.parametrize("container", [False, True])
async def test_copies_wait_for_the_same_runs(api: Api, families: Families, *, container: bool) -> None:
    """An import has steps that another instance has run, as a fork has."""
    ulid = await begin(api, families, FIRST, in_bodies() if container else start_many(), ASK, GROUP)
    mine = await list_started(api, ulid)
    for child in mine:
        await go_on(api, families, child)
    forked = await fork(api, ulid)
    copies = [(await send_in(api, await take_out(api, each))).json()["id"] for each in (ulid, forked)]
    made = [forked, *copies, *[await fork(api, each) for each in copies]]
    for each in made:
        await api.post(f"/v1/instances/{each}/signal", {"name": "go"})
    await families.drain()
    assert [await find_awaited(api, each) for each in made] == [mine] * len(made)


CHOOSE = save("choose") | {"jumps": "any"}
"""What follows it is decided as it ends."""


async def choose(api: Api, families: Families, ulid: str, target: str | None) -> None:
    """Let the step that chooses name what follows, and go on."""
    instance_id = await api.get_id(ulid)
    changes = await families.claim(instance_id)
    [grant] = changes.claimed
    assert grant.step.node_id == "choose"
    await families.finish(grant, Complete(output={"_next_step": target}))
    await go_on(api, families, ulid)


async def rewind(api: Api, ulid: str, to: str) -> None:
    response = await api.post(f"/v1/instances/{ulid}/rewind", {"to": to})
    assert response.status_code == 200, response.text


async def give_way(api: Api, *ulids: str) -> None:
    for each in ulids:
        assert (await api.post(f"/v1/instances/{each}/signal", {"name": "go"})).status_code in (200, 202)


async def test_what_bodies_started_that_a_rewind_left_behind_is_waited_for_by_nobody(
    api: Api, families: Families
) -> None:
    """Neither by the run that went another way, nor by a fork that went back itself, nor by a fork of either."""
    await api.publish(CHILD)
    await api.publish(chain("parent", FIRST, CHOOSE, in_bodies(), ASK, GROUP))
    ulid = (await api.start("parent"))["id"]
    await choose(api, families, ulid, None)
    mine = await list_started(api, ulid)
    kept, back = await fork(api, ulid), await fork(api, ulid)
    for each in (ulid, back):
        await rewind(api, each, "first")
        await choose(api, families, each, "ask")
    others = [await fork(api, each) for each in (ulid, back)]
    anew = await fork(api, ulid, to="first")
    await choose(api, families, anew, "ask")
    gone = [ulid, back, *others, anew]
    await give_way(api, kept, *gone)
    await families.drain()
    assert len(mine) == 2
    assert await find_awaited(api, kept) == mine
    assert [await find_awaited(api, each) for each in gone] == [[]] * len(gone)


async def start_twice(api: Api, families: Families) -> tuple[str, list[str], str]:
    """A run that has come to the step that starts its group once more; what the first visit has started, and its id."""
    await api.publish(chain("parent", FIRST, start_many(), ASK, CHOOSE, GROUP))
    ulid = (await api.start("parent"))["id"]
    await go_on(api, families, ulid)
    first = await list_started(api, ulid)
    [visit] = [step["id"] for step in await api.list_all(ulid, "steps") if step["node"] == "many"]
    await give_way(api, ulid)
    await choose(api, families, ulid, "many")
    return ulid, first, visit


async def test_a_group_is_that_of_the_newest_visit_that_stands(api: Api, families: Families) -> None:
    """Back behind the first visit of the step, what the second has started is nothing of the run's any more."""
    await api.publish(CHILD)
    ulid, first, visit = await start_twice(api, families)
    second = sorted(set(await list_started(api, ulid)) - set(first))
    kept = await fork(api, ulid)
    await rewind(api, ulid, visit)
    made = await fork(api, ulid)
    for each in (ulid, kept, made):
        await give_way(api, each)
        await choose(api, families, each, None)
    await families.drain()
    assert (len(first), len(second)) == (2, 2)
    assert [await find_awaited(api, each) for each in (ulid, kept, made)] == [first, second, first]


async def test_what_was_starting_as_the_run_went_back_is_left_behind(api: Api, families: Families) -> None:
    """The second visit had started some of its runs, and was cancelled before it had started them all."""
    await api.publish(CHILD | {"settings": {"limits": {"max_starts_per_minute": 3}}})
    ulid, first, visit = await start_twice(api, families)
    assert len(await list_started(api, ulid)) == 3
    await rewind(api, ulid, visit)
    await give_way(api, ulid)
    await choose(api, families, ulid, None)
    await families.drain()
    assert await find_awaited(api, ulid) == first


@pytest.mark.parametrize("container", [False, True])
async def test_a_group_whose_runs_are_gone_is_no_empty_one(api: Api, families: Families, *, container: bool) -> None:
    ulid = await begin(api, families, FIRST, in_bodies() if container else start_many(), ASK, GROUP)
    mine = await list_started(api, ulid)
    made = await fork(api, ulid)
    for child in mine:
        await go_on(api, families, child)
    await api.fetch("delete from workflow_instances where ulid = any($1)", mine)
    await api.post(f"/v1/instances/{made}/signal", {"name": "go"})
    await families.drain()
    shown = await api.show(made)
    assert (shown["status"], shown["failure"]["code"]) == ("failed", "wait_impossible")
    assert mine[0] in shown["failure"]["message"]


async def test_a_group_that_nothing_was_started_for_is_empty(api: Api, families: Families) -> None:
    ulid = await begin(api, families, FIRST, start_many(0), ASK, GROUP)
    made = await fork(api, ulid)
    for each in (ulid, made):
        await api.post(f"/v1/instances/{each}/signal", {"name": "go"})
    await families.drain()
    assert await find_awaited(api, ulid) == await find_awaited(api, made) == []


UNDO: JsonObject = {"type": "test.ok", "config": {}}


async def test_what_was_undone_is_no_place_for_a_fork(api: Api, families: Families) -> None:
    booked = chain("booked", save("a"), save("b") | {"compensate": UNDO}, save("c") | {"compensate": UNDO}, save("d"))
    await api.publish(booked)
    ulid = (await api.start("booked"))["id"]
    for _ in range(3):
        await families.work(await api.get_id(ulid))
    await api.post(f"/v1/instances/{ulid}/cancel")
    for body in ({}, {"to": "c"}):
        refused = await api.post(f"/v1/instances/{ulid}/fork", body)
        told = refused.json()
        assert (refused.status_code, told["code"], told["params"]["node"]) == (409, "step_undone", "b")
    await families.drain()
    refused = await api.post(f"/v1/instances/{ulid}/fork", {"to": "b"})
    assert (refused.status_code, refused.json()["params"]["node"]) == (409, "b")
    assert "What b had done is undone" in refused.json()["detail"]
    for to, following in (("a", "b"), ("start", "a")):
        assert (await api.show(await fork(api, ulid, to=to)))["nodes"] == [following]


async def leave(api: Api, families: Families, ulid: str, *keys: str) -> None:
    """Let the ready step complete with these artifacts, each with its node's name in it."""
    instance_id = await api.get_id(ulid)
    step = await families.flows.claim(instance_id, families.engine, families.now)
    made = tuple(make(key, f"{key} of {step.node_id}", limit=100) for key in keys)
    output: JsonObject = {key: {"artifact": key} for key in keys}
    fact = Finished(step.id, step.claim_token or "", Complete(output=output), None, Left(made))
    await families.flows.answer(instance_id, fact, families.now)


async def list_artifacts(api: Api, ulid: str) -> dict[str, Any]:
    items = (await api.get(f"/v1/instances/{ulid}/artifacts", content="true")).json()["items"]
    return {item["key"]: (item["content"], item["node"], item["visit"]) for item in items}


async def test_a_fork_has_the_artifacts_that_its_state_points_to(api: Api, families: Families) -> None:
    body: Any = {"start": "x", "nodes": [save("x")], "edges": []}
    inside: JsonObject = {"id": "both", "type": "parallel", "branches": {"one": body}}
    await api.publish(chain("left", save("a"), inside, save("b"), save("c")))
    ulid = (await api.start("left"))["id"]
    await leave(api, families, ulid, "report", "shared")
    await leave(api, families, ulid, "inner")
    await leave(api, families, ulid, "late", "shared")
    assert (await api.send("PUT", f"/v1/instances/{ulid}/artifacts/given", {"content": "by hand"})).status_code == 201

    outside = {"given": ("by hand", None, None)}
    behind_a = {**outside, "report": ("report of a", "a", 1)}
    behind_both = {**behind_a, "inner": ("inner of x", "both", 1)}
    behind_b = {**behind_both, "late": ("late of b", "b", 1), "shared": ("shared of b", "b", 1)}
    for to, expected in (("start", outside), ("a", behind_a), ("both", behind_both), ("b", behind_b)):
        made = await fork(api, ulid, to=to)
        assert await list_artifacts(api, made) == expected
    again = await fork(api, made, to="a")
    assert await list_artifacts(api, again) == behind_a
    [copied] = await api.fetch(
        "select s.instance_id = a.instance_id as is_own from workflow_artifacts a"
        " join workflow_step_runs s on s.execution_id = a.execution_id"
        " join workflow_instances i on i.id = a.instance_id where i.ulid = $1 and a.key = 'report'",
        made,
    )
    assert copied["is_own"]


async def test_artifacts_of_visits_that_a_rewind_undid_stay_behind(api: Api, families: Families) -> None:
    await api.publish(chain("left", save("a"), save("b"), save("c")))
    ulid = (await api.start("left"))["id"]
    await leave(api, families, ulid, "report")
    await leave(api, families, ulid, "late")
    await api.post(f"/v1/instances/{ulid}/rewind", {"to": "a"})
    await leave(api, families, ulid, "later")
    made = await fork(api, ulid)
    assert await list_artifacts(api, made) == {"report": ("report of a", "a", 1), "later": ("later of b", "b", 2)}


async def test_a_fork_s_artifacts_travel_with_it(api: Api, families: Families) -> None:
    await api.publish(chain("left", save("a"), save("b")))
    ulid = (await api.start("left"))["id"]
    await leave(api, families, ulid, "report")
    lines = await take_out(api, await fork(api, ulid))
    assert [row["key"] for row in list_rows(lines, "artifact")] == ["report"]
    made = (await send_in(api, lines)).json()["id"]
    assert await list_artifacts(api, made) == {"report": ("report of a", "a", 1)}
