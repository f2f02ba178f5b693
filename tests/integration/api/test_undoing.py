"""What HTTP tells of compensations and hooks, and which commands it takes of a failed run."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.facts import Raised
from korak.model import JsonObject
from korak.steps.results import Complete
from tests.support.apis import Api, chain, node
from tests.support.copied import get_head, list_rows, send_in, take_out
from tests.support.flows import Flows, open_flows

UNDO: JsonObject = {"type": "test.ok", "config": {"value": {"ref": "state"}}}
STEPS = (
    {**node("a", "test.ok"), "compensate": UNDO},
    {**node("b", "test.ok"), "compensate": UNDO},
    node("c", "test.ok"),
)
NONE = {"kept": 0, "pending": 0, "completed": 0, "failed": 0}


async def begin(api: Api, **settings: Any) -> str:
    """The path of a run."""
    await api.publish(chain("undone", *STEPS, **settings))
    return f"/v1/instances/{(await api.start('undone'))['id']}"


async def act(api: Api, flows: Flows, *results: Complete | Raised) -> None:
    """Let an engine run what is ready, to these results."""
    [row] = await api.fetch("select id from workflow_instances")
    now = api.resources.clock.now()
    engine = await flows.register(now)
    for result in results:
        await flows.finish(await flows.claim(row["id"], engine, now), result, now)


BROKEN = Raised("test.no", "no", is_retryable=False)


async def test_a_cancelled_run_tells_how_far_its_undoing_is(api: Api, database_url: str) -> None:
    """T-COMP-1 over HTTP"""
    one = await begin(api, on_cancel=UNDO)
    assert (await api.get(one)).json()["compensation"] is None
    async with open_flows(database_url) as flows:
        await act(api, flows, Complete(), Complete())
        assert (await api.get(one)).json()["compensation"] == {**NONE, "kept": 2}
        cancelled = (await api.post(f"{one}/cancel")).json()
        assert (cancelled["status"], cancelled["compensation"]) == ("cancelled", {**NONE, "pending": 2})
        assert cancelled["actions"]["cancel"] == "instance_not_cancellable"
        await act(api, flows, Complete())
        assert (await api.get(one)).json()["compensation"] == {**NONE, "pending": 1, "completed": 1}
        await act(api, flows, BROKEN, Complete())
    ended = (await api.get(one)).json()
    assert (ended["status"], ended["compensation"]) == ("cancelled", {**NONE, "completed": 1, "failed": 1})
    steps = (await api.get(f"{one}/steps")).json()["items"]
    hooks = [f"{step['role']} {step['node']} {step['status']}" for step in steps if step["role"] != "step"]
    assert hooks == ["compensate b completed", "compensate a failed", "on_cancel $on_cancel completed"]
    orders = [step["order"] for step in steps if step["role"] == "compensate"]
    assert orders == sorted(orders, reverse=True)
    assert {step["order"] for step in steps if step["role"] != "compensate"} == {None}
    [failure] = (await api.get(f"{one}/failures")).json()["items"]
    assert (failure["source"], failure["node"], failure["code"]) == ("hook", "a", "test.no")
    assert failure["handled"] is False
    events = [event for event in (await api.get(f"{one}/events")).json()["items"] if event["type"].startswith("Hook")]
    assert [(event["type"], event["data"]["role"]) for event in events] == [
        ("HookStarted", "compensate"),
        ("HookCompleted", "compensate"),
        ("HookStarted", "compensate"),
        ("HookFailed", "compensate"),
        ("HookStarted", "on_cancel"),
        ("HookCompleted", "on_cancel"),
    ]


async def test_a_failed_run_is_cancelled_while_it_keeps_compensations(api: Api, database_url: str) -> None:
    """T-COMP-3; DESIGN 10"""
    one = await begin(api)
    async with open_flows(database_url) as flows:
        await act(api, flows, Complete(), Complete(), BROKEN)
    failed = (await api.get(one)).json()
    assert (failed["status"], failed["compensation"]) == ("failed", {**NONE, "kept": 2})
    assert (failed["actions"]["cancel"], failed["actions"]["retry"]) == (True, True)
    assert (await api.post(f"{one}/cancel")).json()["compensation"] == {**NONE, "pending": 2}
    again = await api.post(f"{one}/cancel")
    assert (again.status_code, again.json()["code"]) == (409, "instance_not_cancellable")


async def test_a_compensated_run_is_not_retried(api: Api, database_url: str) -> None:
    """T-COMP-4"""
    one = await begin(api, compensate_on_failure=True)
    async with open_flows(database_url) as flows:
        await act(api, flows, Complete(), Complete(), BROKEN, Complete())
    failed = (await api.get(one)).json()
    assert (failed["status"], failed["compensation"]) == ("failed", {**NONE, "pending": 1, "completed": 1})
    assert failed["actions"]["retry"] == "instance_not_retryable"
    for verb in ("retry", "cancel"):
        refused = await api.post(f"{one}/{verb}")
        assert (refused.status_code, refused.json()["code"]) == (409, failed["actions"][verb])


async def test_what_could_not_be_undone_is_retried(api: Api, database_url: str) -> None:
    """An action of a cancelled run, once nothing is being undone."""
    one = await begin(api, on_cancel=UNDO)
    async with open_flows(database_url) as flows:
        await act(api, flows, Complete(), Complete())
        await api.post(f"{one}/cancel")
        await act(api, flows, BROKEN)
        assert (await api.get(one)).json()["actions"]["retry"] == "instance_not_retryable"
        busy = await api.post(f"{one}/retry")
        assert (busy.status_code, busy.json()["code"]) == (409, "instance_not_retryable")
        await act(api, flows, Complete())
        assert (await api.get(one)).json()["actions"]["retry"] is True
        await act(api, flows, BROKEN)
        left = (await api.get(one)).json()
        assert (left["compensation"], left["actions"]["retry"]) == ({**NONE, "completed": 1, "failed": 1}, True)
        again = (await api.post(f"{one}/retry")).json()
        assert (again["status"], again["compensation"]) == ("cancelled", {**NONE, "completed": 1, "pending": 1})
        await act(api, flows, Complete(), BROKEN)
        lost = (await api.get(one)).json()
        assert (lost["compensation"], lost["actions"]["retry"]) == ({**NONE, "completed": 2}, True)
        await api.post(f"{one}/retry")
        await act(api, flows, Complete())
    done = (await api.get(one)).json()
    assert done["actions"]["retry"] == "instance_not_retryable"
    steps = (await api.get(f"{one}/steps")).json()["items"]
    hooks = [f"{step['role']} {step['status']}" for step in steps if step["role"] != "step"]
    assert hooks == [
        *("compensate failed", "compensate completed", "on_cancel failed"),
        *("compensate completed", "on_cancel failed", "on_cancel completed"),
    ]


async def test_what_could_not_be_undone_travels(api: Api, database_url: str) -> None:
    """T-X-3: an import tries it again under the call that comes next; a document that is older than calls is taken."""
    one = await begin(api)
    async with open_flows(database_url) as flows:
        await act(api, flows, Complete(), Complete())
        await api.post(f"{one}/cancel")
        await act(api, flows, BROKEN, Complete())
        await api.post(f"{one}/retry")
        await act(api, flows, BROKEN)
    lines = await take_out(api, one.rpartition("/")[2])
    [other, failed] = list_rows(lines, "compensation")
    assert [(row["node_id"], row["status"], row["call"]) for row in (other, failed)] == [
        ("a", "completed", 1),
        ("b", "failed", 2),
    ]
    made = (await send_in(api, lines)).json()
    assert (made["compensation"], made["actions"]["retry"]) == ({**NONE, "completed": 1, "failed": 1}, True)
    await api.post(f"/v1/instances/{made['id']}/retry")
    steps = (await api.get(f"/v1/instances/{made['id']}/steps")).json()["items"]
    assert [step["status"] for step in steps if step["node"] == "b"] == ["completed", "failed", "failed", "queued"]
    del other["call"]
    get_head(lines)["instance"]["input"] = {"older": True}
    assert (await send_in(api, lines)).status_code == 201
    for name, wrong in (("node_id", "c"), ("call", 0), ("call", 32_767)):
        right = other.get(name, 1)
        other[name] = wrong
        refused = await send_in(api, lines)
        other[name] = right
        assert refused.status_code == 422, wrong
        [issue] = refused.json()["errors"]
        assert (issue["code"], issue["pointer"].rpartition("/")[2]) == ("invalid_export", name)


async def test_a_cancel_lies_there_for_a_failed_run_too(api: Api, database_url: str) -> None:
    """Where somebody holds the failed run, the row that is left is obeyed by the next holder."""
    one = await begin(api)
    async with open_flows(database_url) as flows:
        await act(api, flows, Complete(), BROKEN)
        [row] = await api.fetch("select id from workflow_instances")
        async with flows.database.transaction() as connection:
            await connection.execute("select 1 from workflow_instances for update")
            left = await api.post(f"{one}/cancel")
            assert (left.status_code, left.json()["status"]) == (200, "failed")
        await flows.obey(row["id"], api.resources.clock.now())
    assert (await api.get(one)).json()["status"] == "cancelled"


@pytest.mark.parametrize("member", ["on_cancel", "on_deadline"])
async def test_a_hook_that_can_not_be_one_is_refused_with_its_pointer(api: Api, member: str) -> None:
    hook: dict[str, Any] = {member: {"type": "delay", "config": {"for": 5}}}
    document = chain("undone", *STEPS, **hook)
    response = await api.send("PUT", "/v1/definitions/undone", {"graph": document}, publish="true")
    assert response.status_code == 422
    [issue] = response.json()["errors"]
    assert (issue["code"], issue["pointer"]) == ("invalid_config", f"/settings/{member}/type")
