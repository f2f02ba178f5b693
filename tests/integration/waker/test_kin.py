"""What joins runs, seen by a waker: commands to children, ends that nobody took, and waits that nobody told."""

from __future__ import annotations

from korak.core.facts import CancelAsked, PauseAsked, RetryAsked
from korak.model import InstanceStatus, JsonObject
from korak.steps.results import Complete
from tests.integration.store.test_children import REFUSED
from tests.support import eventually
from tests.support.children import CHILD, Families, graph, many, nested, waiting
from tests.support.flows import NOW, Flows, work
from tests.support.wakers import Wakers, at


async def test_a_cancel_that_lies_there_is_carried_out(families: Families, wakers: Wakers) -> None:
    """T-NEST-5."""
    flows = families.flows
    found = await families.publish(graph("parent", nested()), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    [child] = await families.list_children(parent)
    await flows.answer(parent, CancelAsked(), NOW)
    report = await wakers.run(0.5)
    assert await flows.get_status(child["id"]) == InstanceStatus.RUNNING
    report = await wakers.run(1.5)
    assert (report.deliveries, report.errors) == (1, 0)
    assert await flows.get_status(child["id"]) == InstanceStatus.CANCELLED


async def test_an_end_that_nobody_told_reaches_the_parent(families: Families, wakers: Wakers) -> None:
    """T-NEST-1: whoever recorded the end was gone before it told anybody."""
    flows = families.flows
    found = await families.publish(graph("parent", nested()), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    [child] = await families.list_children(parent)
    await families.work(child["id"])
    assert await flows.get_status(parent) == InstanceStatus.WAITING
    await wakers.run(1.5)
    assert await flows.get_status(parent) == InstanceStatus.COMPLETED


async def test_a_retry_that_lies_there_reaches_the_child(families: Families, wakers: Wakers) -> None:
    """T-NEST-4."""
    flows = families.flows
    found = await families.publish(graph("parent", nested()), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    [child] = await families.list_children(parent)
    grant, _ = await families.ask(await families.claim(child["id"]))
    await families.finish(grant, REFUSED)
    await wakers.run(1.5)
    assert await flows.get_status(parent) == InstanceStatus.FAILED
    families.now = at(2)
    await flows.answer(parent, RetryAsked(), at(2))
    await families.work(parent)
    await wakers.run(4)
    assert await flows.get_status(child["id"]) == InstanceStatus.RUNNING
    grant, _ = await families.ask(await families.claim(child["id"]))
    await families.finish(grant, Complete(output={"by": "child"}))
    await wakers.run(6)
    assert await flows.get_status(parent) == InstanceStatus.COMPLETED


async def test_a_wait_whose_looks_were_lost_is_looked_at(families: Families, wakers: Wakers) -> None:
    """Defect 9: neither side looked after its commit."""
    flows = families.flows
    found = await families.publish(graph("waiter", waiting({"ref": "input.ids"})), CHILD)
    runs = [await families.start(found["child"]) for _ in range(3)]
    waiter, _ = await families.start(found["waiter"], {"ids": [ulid for _, ulid in runs]})
    await families.work(waiter)
    for run, _ in runs:
        await families.work(run)
    report = await wakers.run(1)
    assert report.requeued == 1
    while await families.work(waiter):
        pass
    assert await flows.get_status(waiter) == InstanceStatus.COMPLETED


async def test_children_are_paused_in_passes(families: Families, wakers: Wakers) -> None:
    flows = families.flows
    found = await families.publish(graph("parent", many(list(range(30))), work("after")), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    await flows.answer(parent, PauseAsked(), NOW)
    report = await wakers.run(1)
    assert report.cascaded == 30
    await wakers.run(3)
    count = await flows.get("select count(*) from workflow_instances where paused_at is not null")
    assert count == 31


async def test_t_nest_5_a_child_is_undone_before_its_parent(families: Families, wakers: Wakers) -> None:
    """The answer that it has cleaned up is a row in the parent's deliveries; the waker brings it there."""
    flows = families.flows
    undo: JsonObject = {"type": "test.work", "config": {}}
    child = graph("child", work("made", compensate=undo), {"id": "gate", "type": "wait", "config": {"signal": "go"}})
    found = await families.publish(graph("parent", work("before", compensate=undo), nested()), child)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    await families.work(parent)
    [row] = await families.list_children(parent)
    await families.work(row["id"])
    await flows.answer(parent, CancelAsked(), NOW)
    await wakers.run(1.5)
    assert await list_undone(flows) == [(row["id"], "queued")]
    await families.work(row["id"])
    await wakers.run(3)
    assert await list_undone(flows) == [(row["id"], "completed"), (parent, "queued")]
    await families.work(parent)
    assert await list_undone(flows) == [(row["id"], "completed"), (parent, "completed")]
    assert await flows.get("select count(*) from workflow_signals where taken_at is null") == 0


async def test_a_child_is_cancelled_with_the_run_that_a_waker_ends(families: Families, wakers: Wakers) -> None:
    """In the same pass, though nobody looks at the child in it."""
    flows = families.flows
    found = await families.publish(graph("parent", nested(), execution_timeout="PT1M"), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    [child] = await families.list_children(parent)
    report = await wakers.run(61)
    assert (report.deadlines, report.deliveries) == (1, 0)
    assert await flows.get_status(parent) == InstanceStatus.FAILED

    async def is_cancelled() -> bool:
        return await flows.get_status(child["id"]) == InstanceStatus.CANCELLED

    await eventually(is_cancelled)


async def list_undone(flows: Flows) -> list[tuple[int, str]]:
    rows = await flows.fetch(
        "select instance_id, status from workflow_step_runs where role = 'compensate' order by created_at, id"
    )
    return [(row["instance_id"], row["status"]) for row in rows]
