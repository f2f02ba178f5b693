"""Chains over HTTP: how their runs stand, what they wait for, and what their history has."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from korak import chain
from korak.core.facts import Finished, Raised
from korak.model import JsonObject
from korak.steps.contract import Complete
from tests.support.apis import Api, node
from tests.support.apis import chain as line
from tests.support.bodies import body, for_each, parallel
from tests.support.flows import Flows, open_flows

TRACE = "Traceback: step.py, line 7"


async def run(api: Api, document: JsonObject, payload: JsonObject | None = None) -> str:
    """The ULID of a new run of the document."""
    await api.publish(document)
    return str((await api.start(str(document["key"]), {"input": payload or {}}))["id"])


async def claim(flows: Flows, api: Api) -> Any:
    """The one ready step of the one open run, claimed."""
    [row] = await api.fetch("select id from workflow_instances where ended_at is null")
    now = api.resources.clock.now()
    return await flows.claim(row["id"], await flows.register(now), now)


async def work(flows: Flows, api: Api, result: Any = None) -> None:
    """Claim that step and record what it came to."""
    step = await claim(flows, api)
    fact = Finished(step.id, step.claim_token or "", result or Complete(output={"n": 1}))
    await flows.answer(step.instance_id, fact, api.resources.clock.now(), step=step.id)


async def test_every_way_that_a_run_can_stand(api: Api, database_url: str) -> None:
    """T-LIFE-1: those that wait have one status, and `waiting_for` says for what."""
    built = chain("stands").max_attempts(1).then("test.ok", "a").wait_for_signal("go").delay(hours=1).then("test.ok")
    ulid = await run(api, built.document())
    one = f"/v1/instances/{ulid}"
    told: list[tuple[str, list[str]]] = []

    async def look() -> Any:
        shown = await api.show(ulid)
        told.append((shown["status"], [waiting["kind"] for waiting in shown["waiting_for"]]))
        return shown

    async with open_flows(database_url) as flows:
        await look()
        await work(flows, api)
        await look()
        await api.post(f"{one}/pause")
        await look()
        await api.post(f"{one}/resume")
        await api.post(f"{one}/signal", {"name": "go"})
        await look()
        await api.post(f"{one}/cancel")
        await look()
        failing = await run(api, chain("fails").max_attempts(1).then("test.ok").document())
        await work(flows, api, Raised("test.no", "no", is_retryable=False))
        completing = await run(api, chain("works").then("test.ok").document())
        await work(flows, api)
    assert told == [
        ("running", []),
        ("waiting", ["signal"]),
        ("paused", ["signal"]),
        ("waiting", ["timer"]),
        ("cancelled", []),
    ]
    assert (await api.show(failing))["status"] == "failed"
    assert (await api.show(completing))["status"] == "completed"


async def test_a_run_says_at_which_of_its_steps_it_is(api: Api, database_url: str) -> None:
    """Alone and in a list; a failed one says where that was, a cancelled one nothing"""
    built = chain("goes").max_attempts(1).then("test.ok", "First").wait_for_signal("go").then("test.ok", "last")
    ulid = await run(api, built.document())
    one = f"/v1/instances/{ulid}"

    async def look() -> tuple[Any, ...]:
        [listed] = [item for item in (await api.get("/v1/instances")).json()["items"] if item["id"] == ulid]
        shown = await api.show(ulid)
        assert shown["progress"] == listed["progress"]
        return tuple((shown["progress"] or {}).values())

    async with open_flows(database_url) as flows:
        assert await look() == ("First", 0, 3)
        await work(flows, api)
        assert await look() == ("wait_for_go", 1, 3)
        await api.post(f"{one}/pause")
        assert (await api.post(f"{one}/resume")).json()["progress"] == {"name": "wait_for_go", "index": 1, "total": 3}
        await api.post(f"{one}/signal", {"name": "go", "payload": {}})
        assert await look() == ("last", 2, 3)
        await work(flows, api, Raised("test.no", "no", is_retryable=False))
        assert await look() == ("last", 2, 3)
        await api.post(f"{one}/retry")
        await work(flows, api)
        assert await look() == (None, 3, 3)
        ulid = await run(api, built.document())
        one = f"/v1/instances/{ulid}"
        await api.post(f"{one}/cancel")
        assert await look() == ()


async def test_a_graph_with_several_ways_says_no_progress(api: Api) -> None:
    inner = parallel("both", left=body(node("ask", "wait", signal="go")), right=body(node("other", "wait", signal="x")))
    await api.publish(line("rows", inner))
    assert (await api.start("rows"))["progress"] == {"name": "both", "index": 0, "total": 1}
    ways = line("ways", node("big", "condition", **{"if": {"cel": "true"}}), node("nap", "wait", signal="go"))
    edges: Any = ways["edges"]
    edges[-2:] = [
        {"from": "big", "outcome": "true", "to": "nap"},
        {"from": "big", "outcome": "false", "to": "done"},
        {"from": "nap", "to": "done"},
    ]
    await api.publish(ways)
    assert (await api.start("ways"))["progress"] == {"name": "nap", "index": 1, "total": 2}
    ways["key"] = "other-ways"
    nodes: Any = ways["nodes"]
    nodes.append({"id": "other", "type": "wait", "config": {"signal": "go"}})
    edges[-2:] = [
        {"from": "big", "outcome": "false", "to": "other"},
        {"from": "nap", "to": "done"},
        {"from": "other", "to": "done"},
    ]
    await api.publish(ways)
    assert (await api.start("other-ways"))["progress"] is None


async def test_a_run_that_has_used_up_its_limit_offers_no_retry(api: Api, database_url: str) -> None:
    """Spec 6: what `actions` says is what the command answers."""
    built = chain("spent").max_transitions(1).then("test.ok").then("test.ok")
    ulid = await run(api, built.document())
    async with open_flows(database_url) as flows:
        await work(flows, api)
        await work(flows, api)
    shown = await api.show(ulid)
    assert (shown["failure"]["code"], shown["actions"]["retry"]) == ("budget_transitions", "instance_not_retryable")
    refused = await api.post(f"/v1/instances/{ulid}/retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "instance_not_retryable")
    why = "limits.max_transitions of its version is used up; start it under one that allows more"
    assert refused.json()["detail"] == f"This instance can't be retried: {why}."


async def test_a_paused_run_is_not_paused_again(api: Api) -> None:
    """Spec 6: and nothing is told of it."""
    ulid = await run(api, chain("held").wait_for_signal("go").document())
    assert (await api.post(f"/v1/instances/{ulid}/pause")).json()["actions"]["pause"] == "instance_not_pausable"
    refused = await api.post(f"/v1/instances/{ulid}/pause")
    assert (refused.status_code, refused.json()["code"]) == (409, "instance_not_pausable")
    events = (await api.get(f"/v1/instances/{ulid}/events")).json()["items"]
    assert [event["type"] for event in events].count("InstancePaused") == 1


async def test_a_delay_says_when_it_ends(api: Api) -> None:
    """T-LIFE-3, T-DELAY-1."""
    shown = await api.show(await run(api, chain("naps").delay(hours=1, minutes=30).document()))
    [waiting] = shown["waiting_for"]
    since, due = (datetime.fromisoformat(waiting[name]) for name in ("since", "due_at"))
    assert (shown["status"], waiting["kind"], waiting["node"]) == ("waiting", "timer", "delay_0")
    assert due - since == timedelta(seconds=5_400)


async def test_a_wait_says_what_came_what_remains_and_what_must_agree(api: Api) -> None:
    """T-SIG-9."""
    built = chain("asks").wait_for_signals(["paid", "packed"], result_key="both", name="w", correlation_key="order")
    ulid = await run(api, built.document(), {"order": 7})
    one = f"/v1/instances/{ulid}"
    [waiting] = (await api.show(ulid))["waiting_for"]
    assert (waiting["mode"], waiting["matched"], waiting["remaining"]) == ("all", [], ["paid", "packed"])
    assert waiting["correlation"] == {"key": "order", "value": 7}
    assert waiting["result_key"] == "both"
    await api.post(f"{one}/signal", {"name": "paid", "payload": {"order": 8}})
    await api.post(f"{one}/signal", {"name": "packed", "payload": {"order": 7}})
    [waiting] = (await api.show(ulid))["waiting_for"]
    assert (waiting["matched"], waiting["remaining"]) == (["packed"], ["paid"])
    [paused] = (await api.post(f"{one}/pause")).json()["waiting_for"]
    assert paused == waiting


async def test_what_waits_in_a_branch_or_an_item_is_told_with_its_path(api: Api) -> None:
    item = body(node("ask", "wait", signal="go"), node("work", "test.ok"))
    outer = parallel("both", left=body(for_each([1, 2], item)), right=body(node("other", "wait", signal="x")))
    document = line("paths", outer, node("last", "wait", signal="end"))
    await api.publish(document)
    started = await api.start("paths")
    expected = {("ask", "left/0"), ("ask", "left/1"), ("other", "right")}
    for shown in (started, await api.show(started["id"])):
        assert {(waiting["node"], waiting["branch"]) for waiting in shown["waiting_for"]} == expected
    paused = (await api.post(f"/v1/instances/{started['id']}/pause")).json()
    assert paused["waiting_for"] == (await api.show(started["id"]))["waiting_for"]
    [listed] = (await api.get("/v1/instances")).json()["items"]
    assert {waiting["branch"] for waiting in listed["waiting_for"]} == {"left/0", "left/1", "right"}


async def test_the_trail_of_a_step_that_fails_twice_and_passes(api: Api, database_url: str) -> None:
    """T-LOG-1, T-LOG-3, T-LOG-5, T-LOG-6: with code and trace of both failures, in pages of any size."""
    document = line("flaky", {**node("a", "test.ok"), "retry": {"max_attempts": 3, "backoff": [0]}})
    ulid = await run(api, document)
    raised = Raised("test.flaky", "not yet", type="Busy", trace=TRACE)
    async with open_flows(database_url) as flows:
        for result in (raised, raised, None):
            await make_due(api)
            await work(flows, api, result)
    whole = (await api.get(f"/v1/instances/{ulid}/events")).json()["items"]
    kinds = ["InstanceStarted", *["StepStarted", "StepFailed"] * 2, "StepStarted", "StepCompleted"]
    assert [event["type"] for event in whole] == [*kinds, "StepCompleted", "InstanceCompleted"]
    for size in (1, 2, 5):
        assert await read_pages(api, f"/v1/instances/{ulid}/events", size) == whole
    failed = [event for event in whole if event["type"] == "StepFailed"]
    assert [(event["data"]["code"], event["data"]["will_retry"]) for event in failed] == [("test.flaky", True)] * 2
    failures = (await api.get(f"/v1/instances/{ulid}/failures")).json()["items"]
    assert [(each["step"], each["type"], each["trace"]) for each in failures] == [
        (event["step"], "Busy", TRACE) for event in failed
    ]
    steps = (await api.get(f"/v1/instances/{ulid}/steps")).json()["items"]
    attempts = [step for step in steps if step["node"] == "a"]
    assert [(step["attempt"], step["status"]) for step in attempts] == [
        (1, "failed"),
        (2, "failed"),
        (3, "completed"),
    ]
    assert all(step["started_at"] and step["finished_at"] for step in attempts)


async def make_due(api: Api) -> None:
    """The pause before an attempt is over."""
    await api.fetch(
        "update workflow_step_runs set ready_at = created_at where status = 'queued' and ready_at is null returning id"
    )


async def read_pages(api: Api, path: str, size: int) -> list[Any]:
    """Every item, page by page."""
    items: list[Any] = []
    given: dict[str, Any] = {}
    while True:
        page = (await api.get(path, limit=size, **given)).json()
        assert len(page["items"]) <= size
        items += page["items"]
        if page["next"] is None:
            return items
        given["cursor"] = page["next"]
