"""Parents and children over HTTP: whose a run is, what it waits for, and lists of a family."""

from __future__ import annotations

from typing import Any

from ulid import ULID

from korak.core.facts import CancelAsked, Raised
from korak.model import JsonObject
from tests.support.apis import Api
from tests.support.children import CHILD, Families, graph, many, nested, waiting
from tests.support.copied import get_head, send_in, take_out
from tests.support.flows import Flows, work


async def get(api: Api, path: str, **params: Any) -> Any:
    response = await api.get(path, **params)
    assert response.status_code == 200, response.text
    return response.json()


async def list_ids(api: Api, **params: Any) -> list[str]:
    return [item["id"] for item in (await get(api, "/v1/instances", **params))["items"]]


async def test_a_family_is_listed_by_parent_and_by_root(api: Api, families: Families) -> None:
    found = await families.publish(graph("a", nested("b")), graph("b", nested()), CHILD)
    top, top_ulid = await families.start(found["a"])
    await families.start(found["child"])
    await families.work(top)
    [middle] = await families.list_children(top)
    await families.work(middle["id"])
    [bottom] = await families.list_children(middle["id"])
    shown = await get(api, f"/v1/instances/{bottom['ulid']}")
    assert (shown["parent"], shown["root"], shown["depth"]) == (middle["ulid"], top_ulid, 2)
    steps = (await get(api, f"/v1/instances/{middle['ulid']}/steps"))["items"]
    [step] = [step for step in steps if step["node"] == "sub"]
    told = {"instance": middle["ulid"], "node": "sub", "execution": step["execution"], "index": 0}
    assert shown["trigger"]["payload"] == told
    assert await list_ids(api, parent=top_ulid) == [middle["ulid"]]
    assert await list_ids(api, root=top_ulid) == [bottom["ulid"], middle["ulid"], top_ulid]
    assert await list_ids(api, root=top_ulid, status="running") == [bottom["ulid"]]
    assert await list_ids(api, parent="01JZZZZZZZZZZZZZZZZZZZZZZZ") == []


async def test_a_family_is_counted_and_listed_from_its_oldest(api: Api, families: Families) -> None:
    found = await families.publish(graph("parent", many([1, 2, 3])), CHILD)
    parent, ulid = await families.start(found["parent"])
    await families.work(parent)
    ulids = [child["ulid"] for child in await families.list_children(parent)]
    assert (await api.post(f"/v1/instances/{ulids[0]}/pause")).status_code == 200
    assert (await api.post(f"/v1/instances/{ulids[1]}/cancel")).status_code == 200

    counts = await get(api, "/v1/instances/counts", parent=ulid)
    told = [(row["status"], row["count"]) for row in counts["items"]]
    assert (told, counts["is_capped"]) == ([("cancelled", 1), ("paused", 1), ("running", 1)], False)
    counts = await get(api, "/v1/instances/counts", parent=ulid, status="running", by=["parent", "definition"])
    assert counts["items"] == [{"parent": ulid, "definition": "child", "count": 1}]
    assert await get(api, "/v1/instances/counts", by="parent", root=ulid, definition="parent") == {
        "items": [{"parent": None, "count": 1}],
        "is_capped": False,
    }

    refused = await api.get("/v1/instances/counts", by="parent")
    assert (refused.status_code, refused.json()["code"], refused.json()["params"]["name"]) == (
        422,
        "invalid_parameter",
        "by",
    )

    page = await get(api, "/v1/instances", parent=ulid, sort="created", limit=2)
    assert [item["id"] for item in page["items"]] == ulids[:2]
    assert await list_ids(api, parent=ulid, sort="created", cursor=page["next"]) == ulids[2:]
    assert await list_ids(api, parent=ulid, sort="-created") == ulids[::-1]


async def test_a_run_tells_which_child_it_waits_for(api: Api, families: Families) -> None:
    found = await families.publish(graph("parent", nested()), CHILD)
    parent, ulid = await families.start(found["parent"])
    await families.work(parent)
    [child] = await families.list_children(parent)
    shown = await get(api, f"/v1/instances/{ulid}")
    [wait] = shown["waiting_for"]
    assert (shown["status"], wait["kind"], wait["node"]) == ("waiting", "child", "sub")
    assert (wait["child"], wait["remaining"]) == (child["ulid"], [child["ulid"]])


async def test_a_run_tells_which_runs_it_waits_for_and_which_have_come(api: Api, families: Families) -> None:
    """T-LIFE-1: what the chain calls waiting_for_workflows."""
    wait = waiting({"ref": "state.ids"}, mode="quorum", quorum=2)
    found = await families.publish(graph("parent", many([1, 2, 3, 4]), wait), CHILD)
    parent, ulid = await families.start(found["parent"])
    await families.work(parent)
    await families.work(parent)
    children = await families.list_children(parent)
    await families.work(children[0]["id"])
    await families.flows.answer(children[1]["id"], CancelAsked(), families.now)
    ids = [child["ulid"] for child in children]
    [told] = (await get(api, f"/v1/instances/{ulid}"))["waiting_for"]
    assert (told["kind"], told["mode"], told["names"]) == ("workflows", "quorum", ids)
    assert (told["quorum"], told["matched"], told["remaining"], told["failed"]) == (2, [ids[0]], ids[2:], [ids[1]])
    assert told["result_key"] == "r"
    assert told["runs"] == {"total": 4, "completed": 0, "failed": 0}, "as it has been told by now"
    shown = await get(api, f"/v1/instances/{ulid}")
    assert shown["budget"]["started_workflows"] == 4
    assert shown["budget"]["limits"]["max_started_workflows"] == 10_000


async def test_what_can_t_go_on_below_is_no_retry_of_the_parent(api: Api, families: Families) -> None:
    """Whatever lies in between: the run that failed, used up what it may use or was undone decides for those above."""
    spent = graph("child", work("one"), work("two"), limits={"max_transitions": 1})
    found = await families.publish(graph("a", nested("b")), graph("b", nested()), spent)
    top, top_ulid = await families.start(found["a"])
    await families.drain()
    [middle] = await families.list_children(top)
    [bottom] = await families.list_children(middle["id"])
    for ulid in (bottom["ulid"], middle["ulid"], top_ulid):
        shown = await get(api, f"/v1/instances/{ulid}")
        assert (shown["status"], shown["actions"]["retry"]) == ("failed", "instance_not_retryable")
        refused = await api.post(f"/v1/instances/{ulid}/retry")
        assert (refused.status_code, refused.json()["code"]) == (409, "instance_not_retryable"), ulid
    assert f"it failed by {middle['ulid']}, which can't be retried" in refused.json()["detail"]
    listed = await get(api, "/v1/instances", status="failed")
    assert {item["actions"]["retry"] for item in listed["items"]} == {"instance_not_retryable"}


async def test_what_a_run_could_not_undo_is_retried_whatever_became_of_its_child(api: Api, families: Families) -> None:
    """Both were undone as they failed; of the parent one undo has failed."""
    undo: JsonObject = {"type": "test.work", "config": {}}
    child = graph("child", work("one"), limits={"max_transitions": 1}, compensate_on_failure=True)
    top_graph = graph("a", work("first", compensate=undo), nested(), compensate_on_failure=True)
    found = await families.publish(top_graph, child)
    top, ulid = await families.start(found["a"])
    await families.work(top)
    await families.work(top)
    [below] = await families.list_children(top)
    while await families.work(below["id"]):
        pass
    await families.look()
    await families.deliver([top])
    [grant] = (await families.claim(top)).claimed
    await families.finish(grant, Raised("test.no", "no", is_retryable=False))
    shown = await api.show(ulid)
    assert (shown["compensation"]["failed"], shown["actions"]["retry"]) == (1, True)
    assert (await api.post(f"/v1/instances/{ulid}/retry")).json()["compensation"]["pending"] == 1


async def test_whose_failure_an_import_tells_is_no_run_of_its_own(api: Api, families: Families) -> None:
    """It may name any run, itself too, or one of another owner: its retry starts another child."""
    failing = graph("child", work("one"), work("two"), limits={"max_transitions": 1})
    found = await families.publish(graph("a", nested()), failing)
    top, ulid = await families.start(found["a"])
    await families.drain()
    [child] = await families.list_children(top)
    lines = await take_out(api, ulid)
    assert (await api.show(ulid))["actions"]["retry"] == "instance_not_retryable"
    for number, culprit in enumerate((ulid, child["ulid"], "01JZZZZZZZZZZZZZZZZZZZZZZZ")):
        told = get_head(lines)["instance"]
        told["failure_params"] = {**told["failure_params"], "child": culprit}
        told["input"] = {"number": number}
        made = (await send_in(api, lines)).json()
        assert made["actions"]["retry"] is True, culprit
        listed = {item["id"]: item["actions"]["retry"] for item in (await get(api, "/v1/instances"))["items"]}
        assert (listed[made["id"]], listed[ulid]) == (True, "instance_not_retryable"), culprit
        assert (await api.post(f"/v1/instances/{made['id']}/retry")).status_code == 200
    itself = str(ULID())
    told["id"], told["failure_params"]["child"], told["input"] = itself, itself, {"number": "itself"}
    made = (await send_in(api, lines)).json()
    assert (made["id"], made["actions"]["retry"]) == (itself, True)


async def test_a_command_over_http_reaches_the_children(api: Api, families: Families) -> None:
    """T-NEST-5: the cancel lies with the child before the answer is given."""
    found = await families.publish(graph("parent", nested()), CHILD)
    parent, ulid = await families.start(found["parent"])
    await families.work(parent)
    response = await api.post(f"/v1/instances/{ulid}/cancel", {"reason": "enough"})
    assert response.status_code == 200
    [child] = await families.list_children(parent)
    flows: Flows = families.flows
    assert await flows.get("select kind from workflow_signals where instance_id = $1", child["id"]) == "cancel"
