"""Rewinds and forks over HTTP, on real rows (T-X-1, T-X-2, T-LOG-2)."""

from __future__ import annotations

from korak.core.facts import Finished
from korak.core.rows import StepRun
from korak.model import JsonObject, OwnerRole
from korak.steps.contract import Complete
from tests.support.apis import Api, chain, node, save
from tests.support.flows import Flows

THREE = chain("three", save("a"), save("b"), save("c"))


async def work(api: Api, flows: Flows, ulid: str, count: int = 1) -> StepRun:
    """Run so many steps of the instance, each with its node's name as its output; the last one."""
    instance_id = await api.get_id(ulid)
    now = api.resources.clock.now()
    engine = await flows.register(now)
    for _ in range(count):
        step = await flows.claim(instance_id, engine, now)
        await flows.answer(instance_id, Finished(step.id, step.claim_token or "", Complete(output=told(step))), now)
    return step


def told(step: StepRun) -> JsonObject:
    return {"is": f"{step.node_id}{step.visit}"}


async def begin(api: Api, flows: Flows, count: int = 2) -> str:
    """An instance of which so many steps are done."""
    await api.publish(THREE)
    ulid: str = (await api.start("three"))["id"]
    await work(api, flows, ulid, count)
    return ulid


async def test_t_x_1_a_rewind_goes_on_behind_its_step(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)

    response = await api.post(f"/v1/instances/{ulid}/rewind", {"to": "a"})

    assert response.status_code == 200, response.text
    assert (response.json()["state"], response.json()["nodes"]) == ({"a": {"is": "a1"}}, ["b"])
    assert response.json() == await api.show(ulid)
    steps = {(step["node"], step["visit"]): step for step in await api.list_all(ulid, "steps")}
    assert [place for place, step in steps.items() if step["undone_at"]] == [("b", 1)]
    assert (steps["c", 1]["status"], steps["b", 2]["status"]) == ("cancelled", "queued")
    await work(api, flows, ulid, 2)
    ended = await api.show(ulid)
    assert (ended["status"], ended["result"]) == (
        "completed",
        {"a": {"is": "a1"}, "b": {"is": "b2"}, "c": {"is": "c2"}},
    )
    [line] = [event for event in await api.list_all(ulid, "events") if event["type"] == "InstanceRewound"]
    assert line["data"]["to"] == {"node": "a", "step": steps["a", 1]["id"]}
    assert line["data"]["actor"]["token"] == "test"


async def test_what_was_undone_is_read_by_nobody(api: Api, flows: Flows) -> None:
    reads = node("d", "set_field", field="state.seen", value={"ref": "steps.b.output.is", "default": None})
    await api.publish(chain("reads", save("a"), save("b"), save("c"), reads))
    ulid = (await api.start("reads"))["id"]
    await work(api, flows, ulid, 2)
    await api.post(f"/v1/instances/{ulid}/rewind", {"to": "a"})
    await work(api, flows, ulid, 2)
    assert (await api.show(ulid))["state"]["seen"] == "b2"


async def test_what_is_no_place_is_told(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    for to, code in (("c", "step_not_completed"), ("nothing", "step_not_completed")):
        refused = await api.post(f"/v1/instances/{ulid}/rewind", {"to": to})
        assert (refused.status_code, refused.json()["code"]) == (409, code)
        assert [error["pointer"] for error in refused.json()["errors"]] == ["/to"]
    for body, pointer in (({}, "/to"), ({"to": 1}, "/to"), ({"to": "a", "x": 1}, "/x")):
        refused = await api.post(f"/v1/instances/{ulid}/rewind", body)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, pointer)
    assert [step["undone_at"] for step in await api.list_all(ulid, "steps")] == [None, None, None]
    await work(api, flows, ulid)
    refused = await api.post(f"/v1/instances/{ulid}/rewind", {"to": "a"})
    assert (refused.status_code, refused.json()["code"]) == (409, "instance_not_rewindable")


async def test_t_x_2_a_fork_is_a_run_of_its_own(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)

    response = await api.post(f"/v1/instances/{ulid}/fork", {"to": "a"})

    assert response.status_code == 201, response.text
    made = response.json()
    assert made["id"] != ulid
    assert (made["state"], made["nodes"], made["labels"]) == ({"a": {"is": "a1"}}, ["b"], [f"forked_from:{ulid}"])
    assert made == await api.show(made["id"])
    await work(api, flows, made["id"], 2)
    await work(api, flows, ulid)
    first, second = await api.show(ulid), await api.show(made["id"])
    assert first["status"] == second["status"] == "completed"
    for one, member, other in ((ulid, "fork", made["id"]), (made["id"], "source", ulid)):
        [line] = [event for event in await api.list_all(one, "events") if event["type"] == "InstanceForked"]
        assert line["data"][member] == other
    assert {item["id"] for item in (await api.get("/v1/instances", label=f"forked_from:{ulid}")).json()["items"]} == {
        made["id"]
    }


async def test_a_fork_that_is_asked_for_twice_under_one_key_is_made_once(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    answers = [await api.post(f"/v1/instances/{ulid}/fork", {}, headers={"idempotency-key": "k"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert len(await api.fetch("select 1 from workflow_instances")) == 2


async def test_a_fork_of_a_completed_run_goes_on_from_an_earlier_step(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows, 3)
    made = (await api.post(f"/v1/instances/{ulid}/fork", {"to": "b"})).json()
    assert (made["status"], sorted(made["state"]), made["nodes"]) == ("running", ["a", "b"], ["c"])


async def test_only_operators_do(api: Api, flows: Flows) -> None:
    """T-PERM-1, for these"""
    ulid = await begin(api, flows)
    for role in (OwnerRole.VIEWER, OwnerRole.STARTER, OwnerRole.AUTHOR):
        token = await api.make_token(role)
        for verb in ("rewind", "fork"):
            refused = await api.post(f"/v1/instances/{ulid}/{verb}", {"to": "a"}, token=token)
            assert refused.status_code == 403
    other = await api.make_token(OwnerRole.OPERATOR, owner="team:2")
    for verb in ("rewind", "fork"):
        assert (await api.post(f"/v1/instances/{ulid}/{verb}", {"to": "a"}, token=other)).status_code == 404


async def test_t_log_2_history_tells_what_each_step_wrote(api: Api, flows: Flows) -> None:
    await api.publish(chain("writes", save("a"), node("n", "set_field", field="state.n.m", value=1), save("b")))
    ulid = (await api.start("writes"))["id"]
    await work(api, flows, ulid, 2)
    wrote = {
        event["node"]: event["data"]["wrote"]
        for event in await api.list_all(ulid, "events")
        if event["type"] == "StepCompleted"
    }
    assert wrote == {"a": {"a": {"is": "a1"}}, "n": {"n": {"m": 1}}, "b": {"b": {"is": "b1"}}, "done": {}}
    state = (await api.show(ulid))["state"]
    assert state == {**wrote["a"], **wrote["n"], **wrote["b"]}
