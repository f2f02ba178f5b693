"""Parents and children on the server: created with a record, told back in the child's own, cancelled and paused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from korak.core.facts import CancelAsked, Lost, PauseAsked, Raised, ResumeAsked, RetryAsked
from korak.model import InstanceStatus, JsonObject
from korak.steps.results import Complete
from tests.support.children import CHILD, Families, copy_children, graph, many, nested
from tests.support.flows import NOW, Flows, work

REFUSED = Raised("test.refused", "no", is_retryable=False)


async def test_t_nest_1_a_child_is_made_with_its_parents_record(families: Families) -> None:
    """Linked to parent, step and root; its key hangs on the parent; its end is a row in the parent's deliveries."""
    flows = families.flows
    found = await families.publish(graph("parent", nested(), work("after")), CHILD)
    parent, ulid = await families.start(found["parent"], {"a": 1})
    await families.work(parent)
    [child] = await families.list_children(parent)
    step = await flows.get("select id from workflow_step_runs where instance_id = $1 and node_id = 'sub'", parent)
    assert (child["parent_step_run_id"], child["root_instance_id"], child["depth"]) == (step, parent, 1)
    assert (child["trigger_type"], child["trigger_payload"]["instance"]) == ("workflow", ulid)
    [key] = await flows.fetch("select * from workflow_idempotency_keys where parent_instance_id = $1", parent)
    assert (key["scope"], key["instance_id"], key["expires_at"]) == ("start", child["id"], None)
    [wait] = await flows.fetch("select * from workflow_waits where instance_id = $1", parent)
    assert (wait["kind"], wait["event_key"], wait["status"]) == ("child", child["ulid"], "pending")
    await families.work(child["id"])
    [row] = await flows.fetch("select * from workflow_signals where instance_id = $1", parent)
    assert (row["kind"], row["wait_id"], row["name"], row["taken_at"]) == ("child", wait["id"], child["ulid"], None)
    assert row["payload"]["status"] == "completed"
    await families.drain()
    instance = await flows.get_instance(parent)
    assert (instance["status"], instance["state"]["worked"]) == ("completed", {"by": "child"})


async def test_the_root_is_the_same_at_every_depth(families: Families) -> None:
    """T-NEST-3."""
    found = await families.publish(graph("a", nested("b")), graph("b", nested("c")), graph("c", nested()), CHILD)
    top, _ = await families.start(found["a"])
    await families.drain()
    rows = await families.flows.fetch("select depth, root_instance_id, status from workflow_instances order by depth")
    assert [tuple(row) for row in rows] == [
        (0, None, "completed"),
        *((depth, top, "completed") for depth in (1, 2, 3)),
    ]


async def test_a_lost_token_creates_no_child(families: Families) -> None:
    """T-START-5, defect 6: the children are those of the record, and there is one record."""
    flows = families.flows
    found = await families.publish(graph("parent", nested()), CHILD)
    parent, _ = await families.start(found["parent"])
    grant, result = await families.ask(await families.claim(parent))
    await flows.answer(parent, Lost(grant.step.id, grant.step.claim_token or ""), NOW, step=grant.step.id)
    late = await families.finish(grant, result)
    assert late.dropped == "stale_token"
    assert await families.list_children(parent) == []
    assert await flows.get("select count(*) from workflow_idempotency_keys") == 0


async def test_one_record_of_two_creates_the_children(families: Families) -> None:
    found = await families.publish(graph("parent", many([1, 2, 3])), CHILD)
    parent, _ = await families.start(found["parent"])
    grant, result = await families.ask(await families.claim(parent))
    await families.finish(grant, result)
    again = await families.finish(grant, result)
    assert again.dropped == "stale_token"
    assert len(await families.list_children(parent)) == 3


async def test_many_children_come_page_by_page(families: Families) -> None:
    """T-START-1."""
    found = await families.publish(graph("parent", many(list(range(1_100)))), CHILD)
    parent, _ = await families.start(found["parent"])
    counts = []
    while await families.work(parent):
        counts.append(len(await families.list_children(parent)))
    assert counts == [500, 1_000, 1_100]
    instance = await families.flows.get_instance(parent)
    children = await families.list_children(parent)
    assert instance["status"] == "completed"
    assert instance["state"]["ids"] == [child["ulid"] for child in children]
    assert [child["input"]["item"] for child in children] == list(range(1_100))


@pytest.mark.parametrize(
    ("config", "detail"),
    [
        ({"definition": "nobody"}, "there is no such definition"),
        ({"version": 7}, "it has no such version"),
        ({"checksum": "f" * 64}, "it has no such version"),
        ({"inputs": {"n": "x"}}, "integer"),
    ],
)
async def test_what_cant_be_started_fails_the_step(families: Families, config: JsonObject, detail: str) -> None:
    child: Any = graph("child", work())
    child["nodes"][0]["config"]["inputs"] = {"n": {"type": "integer"}}
    found = await families.publish(graph("parent", nested(config=config)), child)
    parent, _ = await families.start(found["parent"])
    await families.drain()
    instance = await families.flows.get_instance(parent)
    assert instance["failure_code"] == "child_not_started"
    assert detail in instance["failure_params"]["detail"]
    assert await families.list_children(parent) == []


async def test_a_pinned_child_is_the_one_of_that_checksum(families: Families) -> None:
    found = await families.publish(graph("parent", nested(config={"checksum": "0" * 64})), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.drain()
    assert await families.flows.get_status(parent) == InstanceStatus.COMPLETED


async def test_an_archived_definition_takes_no_children(families: Families) -> None:
    found = await families.publish(graph("parent", nested()), CHILD)
    async with families.flows.database.transaction() as connection:
        await connection.execute("update workflow_definitions set status = 'archived' where key = 'child'")
    parent, _ = await families.start(found["parent"])
    await families.drain()
    instance = await families.flows.get_instance(parent)
    assert instance["failure_params"] == {"pointer": "/definition", "key": "child", "detail": "it is archived"}


async def test_t_nest_4_a_retry_of_the_parent_goes_to_the_child(families: Families) -> None:
    """Defect 4."""
    flows = families.flows
    found = await families.publish(graph("parent", nested()), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    [child] = await families.list_children(parent)
    grant, _ = await families.ask(await families.claim(child["id"]))
    await families.finish(grant, REFUSED)
    await families.deliver()
    instance = await flows.get_instance(parent)
    assert (instance["failure_code"], instance["failure_params"]["code"]) == ("child_failed", "test.refused")
    await flows.answer(parent, RetryAsked(), NOW)
    await families.drain()
    assert await flows.get_status(parent) == InstanceStatus.COMPLETED
    [child] = await families.list_children(parent)
    assert child["status"] == InstanceStatus.COMPLETED
    assert await flows.get("select count(*) from workflow_waits where kind = 'child' and status = 'fired'") == 2


async def test_t_nest_5_a_cancel_goes_to_the_child(families: Families) -> None:
    """Defect 5: what the child comes to afterwards changes nothing."""
    flows = families.flows
    found = await families.publish(graph("parent", nested()), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    [child] = await families.list_children(parent)
    granted = await families.claim(child["id"])
    await flows.answer(parent, CancelAsked("enough"), NOW)
    [row] = await flows.fetch("select * from workflow_signals where instance_id = $1", child["id"])
    assert (row["kind"], row["sender"]) == ("cancel", {"instance": (await flows.get_instance(parent))["ulid"]})
    late = await families.finish(granted.claimed[0], Complete())
    assert late.dropped == "stale_token", "the command that lies there is obeyed first"
    await families.drain()
    assert await flows.get_status(child["id"]) == InstanceStatus.CANCELLED
    assert await flows.get_status(parent) == InstanceStatus.CANCELLED


async def test_ten_thousand_children_are_paused_page_by_page(families: Families) -> None:
    """Interrupted between pages, and overtaken by the resume before the last of them."""
    flows = families.flows
    found = await families.publish(graph("parent", many([1]), work("after")), CHILD)
    parent, ulid = await families.start(found["parent"])
    await families.work(parent)
    await copy_children(flows, parent, 10_000)
    await flows.answer(parent, PauseAsked(), NOW)
    assert [await families.cascade() for _ in range(3)] == [500, 500, 500]
    assert await count_told(flows, "pause") == 1_500
    await flows.answer(parent, ResumeAsked(), NOW)
    assert await families.cascade() == 0, "the pause is overtaken: it ends where it is"
    pages = []
    while (page := await families.cascade()) is not None:
        pages.append(page)
    assert sum(pages) == 10_001
    assert await count_told(flows, "pause") == 1_500
    assert await count_told(flows, "resume") == 10_001
    assert await flows.get("select count(*) from workflow_cascades") == 0
    await flows.answer(parent, PauseAsked(), NOW)
    pages = []
    while (page := await families.cascade()) is not None:
        pages.append(page)
    assert (len(pages), sum(pages)) == (21, 10_001)
    assert await count_told(flows, "pause") == 11_501
    sources = await flows.fetch("select distinct source_id from workflow_signals where kind = 'pause' order by 1")
    assert all(row["source_id"].startswith(f"{ulid}:") for row in sources)
    assert len(sources) == 2


async def test_a_pause_goes_to_an_ended_child_that_was_bidden_to_go_on(families: Families) -> None:
    flows = families.flows
    found = await families.publish(graph("parent", many([1, 2, 3]), work("after")), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    bidden, over, open_ = [child["id"] for child in await families.list_children(parent)]
    for child in (bidden, over):
        await families.work(child)
        assert await flows.get_status(child) == InstanceStatus.COMPLETED
    await flows.fetch(
        "insert into workflow_signals (instance_id, owner_scope, kind, source_id, created_at)"
        " values ($1, '*', 'retry', 'x:1', $2)",
        bidden,
        NOW,
    )
    await flows.answer(parent, PauseAsked(), NOW)
    assert await families.cascade() == 2
    rows = await flows.fetch("select instance_id from workflow_signals where kind = 'pause' order by instance_id")
    assert [row["instance_id"] for row in rows] == [bidden, open_]


async def count_told(flows: Flows, kind: str) -> int:
    count: int = await flows.get("select count(*) from workflow_signals where kind = $1", kind)
    return count


async def test_a_paused_parents_children_begin_paused_and_go_on_with_it(families: Families) -> None:
    flows = families.flows
    found = await families.publish(graph("parent", nested()), CHILD)
    parent, _ = await families.start(found["parent"])
    grant, result = await families.ask(await families.claim(parent))
    await flows.answer(parent, PauseAsked(), NOW)
    await families.finish(grant, result)
    [child] = await families.list_children(parent)
    assert child["paused_at"] == NOW
    await families.drain()
    assert await flows.get_status(child["id"]) == InstanceStatus.RUNNING
    families.now += timedelta(seconds=1)
    await flows.answer(parent, ResumeAsked(), families.now)
    await families.drain()
    assert await flows.get_status(parent) == InstanceStatus.COMPLETED


async def test_a_child_that_ends_as_it_begins_is_told_in_the_same_record(families: Families) -> None:
    found = await families.publish(graph("parent", nested()), graph("child"))
    parent, _ = await families.start(found["parent"], {"x": 1})
    await families.work(parent)
    row: Any = await families.flows.fetch("select * from workflow_signals where instance_id = $1", parent)
    assert [each["payload"]["status"] for each in row] == ["completed"]
    await families.drain()
    assert await families.flows.get_status(parent) == InstanceStatus.COMPLETED


async def test_rt_9_a_limit_on_starts_is_tried_again_or_waited_for(families: Families) -> None:
    """One child is `child_not_started`, retryably; of a list the rest come when there is room, without an attempt."""
    flows = families.flows
    child = graph("child", work(), limits={"max_starts_per_minute": 2})
    found = await families.publish(graph("parent", many([1, 2, 3, 4, 5]), nested()), child)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    assert len(await families.list_children(parent)) == 2
    [wait] = await flows.fetch("select kind, due_at from workflow_waits where instance_id = $1", parent)
    assert wait["kind"] == "timer"
    assert NOW < wait["due_at"] <= NOW + timedelta(minutes=1)
    other, _ = await families.start((await families.publish(graph("other", nested())))["other"])
    await families.work(other)
    [failed, again] = await flows.fetch(
        "select * from workflow_step_runs where instance_id = $1 and node_id = 'sub' order by attempt", other
    )
    assert (failed["error_code"], again["status"]) == ("child_not_started", "queued")
    assert again["scheduled_for"] > NOW
