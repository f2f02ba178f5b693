"""Reading instances over HTTP: lists, one, and what stands below it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from korak.core.facts import Finished, Raised
from korak.core.rows import StepRun
from korak.model import OwnerRole
from korak.steps.contract import Complete
from tests.support.apis import ORDER, PURE, Api, chain, node
from tests.support.flows import Flows, open_flows

WAITS = chain(
    "waits",
    node("ask", "wait", signals=["a", "b"], mode="all", timeout="PT1H"),
    node("paid", "wait", event="paid", match={"order": {"ref": "input.order"}}, timeout="PT2H"),
    node("nap", "wait", **{"for": "PT3H"}),
)
TRACE = "Traceback: secret=hunter2"


async def claim(flows: Flows, api: Api, ulid: str) -> StepRun:
    """The instance's one ready step, claimed."""
    engine = await flows.register(api.resources.clock.now())
    return await flows.claim(await api.get_id(ulid), engine, api.resources.clock.now())


async def finish(flows: Flows, api: Api, step: StepRun, result: Any) -> None:
    """Record a result of a claimed step."""
    assert step.claim_token is not None
    fact = Finished(step.id, step.claim_token, result)
    await flows.answer(step.instance_id, fact, api.resources.clock.now(), step=step.id)


async def list_all(api: Api, path: str, limit: int, **params: Any) -> list[Any]:
    """Every item of every page."""
    items: list[Any] = []
    while True:
        page = (await api.get(path, limit=limit, **params)).json()
        assert len(page["items"]) <= limit
        items += page["items"]
        if page["next"] is None:
            return items
        params["cursor"] = page["next"]


async def test_an_unknown_instance_isn_t_there(api: Api) -> None:
    for path in ("", "/steps", "/events", "/waits", "/failures"):
        for ulid in ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "x", "1", "%00"):
            response = await api.get(f"/v1/instances/{ulid}{path}")
            assert response.status_code == 404, path


async def test_ow_another_owner_s_instance_isn_t_there(api: Api) -> None:
    await api.publish(ORDER)
    instance = await api.start("order", {"input": {"order": "a"}}, headers={"korak-owner": "team:1"})
    other = await api.make_token(OwnerRole.ADMIN, owner="team:2")
    own = await api.make_token(OwnerRole.VIEWER, owner="team:1")
    one = f"/v1/instances/{instance['id']}"

    for path in ("", "/steps", "/events", "/waits", "/failures"):
        assert (await api.get(one + path, token=other)).status_code == 404
        assert (await api.get(one + path)).status_code == 404
        assert (await api.get(one + path, token=own)).status_code == 200
    for verb in ("cancel", "pause", "resume", "retry", "signal"):
        assert (
            await api.post(f"{one}/{verb}", {"name": "a"} if verb == "signal" else {}, token=other)
        ).status_code == 404
    assert (await api.get("/v1/instances", token=other)).json()["items"] == []
    assert len((await api.get("/v1/instances", token=own)).json()["items"]) == 1
    assert len((await api.get("/v1/instances", headers={"korak-owner": "*"})).json()["items"]) == 1
    assert (await api.get("/v1/instances")).json()["items"] == []


async def test_lists_are_newest_first_in_pages(api: Api) -> None:
    await api.publish(ORDER)
    started = [await api.start("order", {"input": {"order": str(number)}}) for number in range(7)]

    listed = await list_all(api, "/v1/instances", 3)

    assert [item["id"] for item in listed] == sorted((each["id"] for each in started), reverse=True)
    assert {item["id"]: item for item in listed} == {each["id"]: each for each in started}


async def test_lists_are_filtered(api: Api) -> None:
    await api.publish(ORDER)
    await api.publish(PURE)
    await api.publish(WAITS)
    order = await api.start("order", {"input": {"order": "a"}, "labels": ["vip", "eu"]})
    pure = await api.start("pure")
    waiting = await api.start("waits", {"input": {"order": "a"}})
    paused = await api.start("order", {"input": {"order": "b"}})
    await api.post(f"/v1/instances/{paused['id']}/pause")

    async def ids(**params: Any) -> set[str]:
        response = await api.get("/v1/instances", **params)
        assert response.status_code == 200, response.text
        return {item["id"] for item in response.json()["items"]}

    assert await ids(status="running") == {order["id"]}
    assert await ids(status="waiting") == {waiting["id"]}
    assert await ids(status="paused") == {paused["id"]}
    assert await ids(status=["completed", "running"]) == {pure["id"], order["id"]}
    assert await ids(definition="order") == {order["id"], paused["id"]}
    assert await ids(definition=["pure", "waits"], status="completed") == {pure["id"]}
    assert await ids(definition="nothing") == set()
    assert await ids(label="vip") == {order["id"]}
    assert await ids(label=["vip", "us"]) == set()
    now = api.resources.clock.now()
    later, earlier = (now + timedelta(hours=1)).isoformat(), (now - timedelta(hours=1)).isoformat()
    everything = {order["id"], pure["id"], waiting["id"], paused["id"]}
    assert await ids(created_after=earlier, created_before=later) == everything
    assert await ids(created_after=later) == await ids(created_before=earlier) == set()
    assert await ids(created_after=pure["created_at"], created_before=paused["created_at"]) == {
        pure["id"],
        waiting["id"],
    }
    assert await ids(ended_after=earlier) == {pure["id"]}
    assert await ids(updated_before=earlier) == set()
    assert await ids(created_after="0001-01-01T00:00:00Z", created_before="9999-12-31T00:00:00Z") == everything


@pytest.mark.parametrize(
    "params",
    [
        {"status": "running,waiting"},
        {"status": "nothing"},
        {"limit": "0"},
        {"limit": "-1"},
        {"limit": "x"},
        {"limit": ["1", "2"]},
        {"cursor": "x"},
        {"cursor": "WzFd"},
        {"cursor": "WyJhXHUwMDAwIl0"},
        {"created_after": "yesterday"},
        {"created_after": "2026-13-01"},
        {"label": "a\0b"},
        {"q": "x"},
        {"sort": "created_at"},
        {"failure_code": "x"},
    ],
)
async def test_wrong_parameters_are_told(shared_api: Api, params: dict[str, Any]) -> None:
    response = await shared_api.get("/v1/instances", **params)

    assert response.status_code == 422
    assert response.json()["code"] in ("invalid_parameter", "unknown_parameter")
    assert response.json()["params"]["name"] == next(iter(params))
    assert [error["pointer"] for error in response.json()["errors"]] == [f"/{next(iter(params))}"]


async def test_a_page_is_never_larger_than_the_server_s_bound(shared_api: Api) -> None:
    assert (await shared_api.get("/v1/instances", limit=10**17)).status_code == 200
    assert (await shared_api.get("/v1/instances", limit=10**19)).status_code == 422


async def test_what_an_instance_waits_for(api: Api) -> None:
    await api.publish(WAITS)
    instance = await api.start("waits", {"input": {"order": "a"}})
    one = f"/v1/instances/{instance['id']}"

    assert instance["status"] == "waiting"
    [waiting] = instance["waiting_for"]
    assert waiting["kind"] == "signal"
    assert (waiting["node"], waiting["mode"]) == ("ask", "all")
    assert (waiting["names"], waiting["matched"], waiting["remaining"]) == (["a", "b"], [], ["a", "b"])
    assert waiting["since"] == instance["created_at"]
    assert waiting["due_at"] is not None

    await api.post(f"{one}/signal", {"name": "b"})
    [waiting] = (await api.show(instance["id"]))["waiting_for"]
    assert (waiting["matched"], waiting["remaining"]) == (["b"], ["a"])

    await api.post(f"{one}/signal", {"name": "a"})
    [waiting] = (await api.show(instance["id"]))["waiting_for"]
    assert (waiting["kind"], waiting["node"], waiting["names"]) == ("event", "paid", ["paid"])
    waits = await list_all(api, f"{one}/waits", 2)
    assert [(wait["kind"], wait["name"], wait["status"]) for wait in waits] == [
        ("signal", "a", "fired"),
        ("signal", "b", "fired"),
        ("timeout", None, "cancelled"),
        ("event", "paid", "pending"),
        ("timeout", None, "pending"),
    ]
    assert waits[3]["match"] == {"order": "a"}


async def test_steps_events_and_failures_of_a_run(api: Api, database_url: str) -> None:
    await api.publish(chain("flaky", node("work", "test.flaky"), node("price", "test.ok")))
    instance = await api.start("flaky")
    one = f"/v1/instances/{instance['id']}"
    async with open_flows(database_url) as flows:
        first = await claim(flows, api, instance["id"])
        await finish(flows, api, first, Raised("test.flaky", "not yet"))

        retrying = await api.show(instance["id"])
        assert retrying["status"] == "waiting"
        [waiting] = retrying["waiting_for"]
        assert (waiting["kind"], waiting["node"]) == ("retry", "work")
        assert waiting["due_at"] is not None

    steps = await list_all(api, f"{one}/steps", 1)
    failed, queued = steps
    assert (failed["node"], failed["type"], failed["type_version"]) == ("work", "test.flaky", 1)
    assert (failed["visit"], failed["attempt"], failed["status"], failed["retry"]) == (1, 1, "failed", None)
    told = {"code": "test.flaky", "message": "not yet", "params": {}, "retryable": True, "category": "step"}
    assert failed["error"] == told
    assert failed["idempotency_key"] == queued["idempotency_key"] == f"wf:{instance['id']}:work:1"
    assert failed["execution"] == queued["execution"] == failed["id"] != queued["id"]
    assert queued["status"] == "queued"
    assert queued["retry"]["of"] == failed["execution"]
    assert queued["retry"]["after_attempt_id"] == failed["id"]
    assert queued["retry"]["after_attempt"] == 1
    assert queued["retry"]["backoff_seconds"] > 0
    assert queued["scheduled_for"] == waiting["due_at"]
    events = await list_all(api, f"{one}/events", 2)
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event["type"] for event in events] == ["InstanceStarted", "StepStarted", "StepFailed"]
    assert events[1]["step"] == failed["id"]
    assert "engine" not in events[1]["data"]
    assert events[2]["data"]["will_retry"] is True
    assert (await api.get(f"{one}/events", after=2)).json()["items"] == events[2:]
    [failure] = (await api.get(f"{one}/failures")).json()["items"]
    assert (failure["code"], failure["propagation"], failure["step"]) == ("test.flaky", "retry", failed["id"])


async def test_rt_10_the_text_of_an_unknown_exception_is_for_operators_authors_and_admins(
    api: Api, database_url: str
) -> None:
    await api.publish(chain("fails", node("work", "test.ok")))
    instance = await api.start("fails")
    one = f"/v1/instances/{instance['id']}"
    raised = Raised("exception", TRACE, {"text": TRACE}, is_retryable=False, type="ValueError", trace=TRACE)
    async with open_flows(database_url) as flows:
        await finish(flows, api, await claim(flows, api, instance["id"]), raised)
    paths = ("", "/steps", "/events", "/failures")

    for role in (OwnerRole.OPERATOR, OwnerRole.AUTHOR, OwnerRole.ADMIN):
        token = await api.make_token(role)
        shown = await api.show(instance["id"], token=token)
        assert shown["failure"]["message"] == TRACE
        [failure] = (await api.get(f"{one}/failures", token=token)).json()["items"]
        assert (failure["message"], failure["trace"], failure["type"]) == (TRACE, TRACE, "ValueError")
        assert (await api.get(f"{one}/steps", token=token)).json()["items"][0]["error"]["message"] == TRACE
    for role in (OwnerRole.VIEWER, OwnerRole.STARTER):
        token = await api.make_token(role)
        for path in paths:
            response = await api.get(one + path, token=token)
            assert response.status_code == 200
            assert "hunter2" not in response.text, path
        failure = (await api.show(instance["id"], token=token))["failure"]
        assert failure["message"] == "The step raised an unexpected error."
        assert failure["node"] == "work"
        assert failure["non_retryable"] is True
        listed = await api.get("/v1/instances", token=token)
        assert "hunter2" not in listed.text


async def test_what_may_be_done_is_told(api: Api, database_url: str) -> None:
    await api.publish(ORDER)
    instance = await api.start("order", {"input": {"order": "a"}})
    assert instance["actions"] == {
        "cancel": True,
        "pause": True,
        "resume": "instance_not_paused",
        "retry": "instance_not_retryable",
        "signal": True,
    }

    paused = (await api.post(f"/v1/instances/{instance['id']}/pause")).json()
    assert (paused["actions"]["pause"], paused["actions"]["resume"]) == ("instance_not_pausable", True)
    await api.post(f"/v1/instances/{instance['id']}/resume")
    async with open_flows(database_url) as flows:
        step = await claim(flows, api, instance["id"])
        await finish(flows, api, step, Raised("test.no", "no", is_retryable=False))

    assert (await api.show(instance["id"]))["actions"] == {
        "cancel": "instance_not_cancellable",
        "pause": "instance_not_pausable",
        "resume": "instance_not_paused",
        "retry": True,
        "signal": "instance_ended",
    }


async def test_a_get_waits_for_the_end(api: Api, database_url: str) -> None:
    await api.publish(ORDER)
    instance = await api.start("order", {"input": {"order": "a"}})
    one = f"/v1/instances/{instance['id']}"
    assert (await api.get(one, wait="0.05")).json()["status"] == "running"
    async with open_flows(database_url) as flows:
        step = await claim(flows, api, instance["id"])
        await finish(flows, api, step, Complete("next", {"total": 1}))

    ended = (await api.get(one, wait=30)).json()

    assert ended["status"] == "completed"
    assert (await api.get(one, wait=30)).json() == ended


async def test_an_instance_shows_its_limits_and_what_it_has_used(api: Api, database_url: str) -> None:
    """The limits in force are the definition's where they are lower; units are counted where they have one."""
    limits = {"max_transitions": 7, "max_cost_units": 3}
    priced = node("price", "test.price", order="a") | {"save": {"key": "price"}}
    await api.publish(chain("spends", priced, node("nap", "wait", **{"for": "PT3H"}), limits=limits))
    started = await api.start("spends")
    async with open_flows(database_url) as flows:
        await finish(flows, api, await claim(flows, api, started["id"]), Complete(output={"unit": 1}))

    budget = (await api.show(started["id"]))["budget"]

    engine = api.resources.limits.run
    others = {
        name: engine[name] for name in ("max_steps", "max_for_each_items", "max_started_workflows", "max_state_bytes")
    }
    assert budget["limits"] == {**others, **limits}
    assert (budget["steps"], budget["transitions"], budget["cost_units"], budget["started_workflows"]) == (2, 1, 1, 0)
    assert budget["state_bytes"] == len('{"price":{"unit":1}}')
    assert started["budget"]["limits"] == budget["limits"]
