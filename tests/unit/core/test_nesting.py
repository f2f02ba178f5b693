"""Runs below runs: started with their parent's record, told back, tried again, cancelled and paused with it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from korak.core.facts import CancelAsked, Lost, PauseAsked, Raised, ResumeAsked, RetryAsked
from korak.core.snapshot import DEFAULT_LIMITS, Policy
from korak.errors import Conflict
from korak.model import EventType, InstanceStatus, JsonObject, StepRole, StepStatus
from korak.steps.results import Complete
from tests.support import handlers, stamps
from tests.support.bodies import body, node, parallel
from tests.support.kin import Kin

REFUSED = Raised("test.refused", "no", is_retryable=False)

STARTED = "/settings/limits/max_started_workflows"


def document(key: str, *nodes: JsonObject, **settings: Any) -> JsonObject:
    """A graph that takes its input into the state and ends with the whole state."""
    begin = node("begin", "set_field", field="state", value={"ref": "input"})
    start: JsonObject = {"id": "start", "type": "trigger", "config": {"on": "manual"}}
    end: JsonObject = {"id": "done", "type": "end", "config": {"result": {"ref": "state"}}}
    inner = body(start, begin, *nodes, end)
    head: JsonObject = {"schema": "korak.graph/v1", "key": key, "settings": settings}
    return {**head, "nodes": inner["nodes"], "edges": inner["edges"]}


def nested(name: str = "sub", child: str = "child", **members: Any) -> JsonObject:
    """A node that runs a child with the whole state and takes its state in."""
    given: JsonObject = {"definition": child, "inputs": {"ref": "state"}, "wait": True}
    return node(name, "start_workflow", **{**given, "save": {"merge": True}, **members})


def many(**members: Any) -> JsonObject:
    """A node that starts a child for each item."""
    given: JsonObject = {"definition": "child", "items": {"ref": "state.items"}, "save": {"merge": True}}
    return node("many", "start_workflows", **{**given, **members})


CHILD = document("child", node("work", save={"key": "worked"}, value=1))
FLAKY = document("child", node("work", "test.flaky", for_good={"ref": "input.is_bad"}))


def list_states(kin: Kin, ulids: Sequence[str]) -> list[Any]:
    return [kin.instance(ulid).input for ulid in ulids]


def test_t_nest_1_the_parent_waits_and_gets_what_the_child_has_made() -> None:
    kin = Kin(document("parent", nested(), node("after", value={"ref": "state.worked"}, save={"key": "seen"})), CHILD)
    parent = kin.start("parent", {"a": 1})
    kin.work(parent)
    [child] = kin.children(parent)
    assert kin.instance(parent).status is InstanceStatus.WAITING
    assert kin.instance(child).input == {"a": 1}
    assert (kin.instance(child).depth, kin.instance(child).owner_scope) == (1, "team:1")
    kin.drain()
    assert kin.instance(child).status is InstanceStatus.COMPLETED
    state: Any = kin.instance(parent).state
    assert (state["a"], state["worked"]["value"], state["seen"]["value"]["value"]) == (1, 1, 1)
    assert kin.instance(parent).status is InstanceStatus.COMPLETED


def test_t_comp_6_the_undo_of_a_child_sees_what_it_brought() -> None:
    undo: JsonObject = {"type": "test.ok", "config": {"value": {"ref": "state.worked"}}}
    kin = Kin(document("parent", {**nested(), "compensate": undo}, node("ask", "test.ask", signal="go")), CHILD)
    parent = kin.start("parent", {"a": 1})
    kin.drain()
    kin.tell(parent, CancelAsked())
    kin.drain()
    [hook] = [step for step in kin.get(parent).steps.values() if step.role is StepRole.COMPENSATE]
    assert (hook.node_id, hook.status) == ("sub", StepStatus.COMPLETED)
    assert hook.input == {"value": {"value": 1, "visit": 1}}


def test_t_nest_2_as_the_last_step_it_completes_the_parent() -> None:
    kin = Kin(document("parent", nested()), CHILD)
    parent = kin.start("parent")
    kin.drain()
    assert kin.instance(parent).status is InstanceStatus.COMPLETED
    assert kin.instance(parent).result == kin.instance(parent).state


def test_t_nest_3_three_levels() -> None:
    kin = Kin(document("a", nested(child="b")), document("b", nested(child="c")), document("c", nested()), CHILD)
    top = kin.start("a", {"x": 1})
    kin.drain()
    state: Any = kin.instance(top).state
    assert (kin.instance(top).status, state["x"], state["worked"]["value"]) == (InstanceStatus.COMPLETED, 1, 1)
    assert sorted(family.instance.depth for family in kin.memory.families.values()) == [0, 1, 2, 3]


def test_a_run_below_the_deepest_is_refused() -> None:
    """LM-2, LM-9."""
    kin = Kin(document("again", nested(child="again")))
    top = kin.start("again")
    kin.drain()
    deepest = max(kin.memory.families.values(), key=lambda family: family.instance.depth).instance
    assert (deepest.depth, deepest.failure_code) == (3, "nesting_depth_exceeded")
    assert deepest.failure_params == {"pointer": "/definition", "limit": 3, "actual": 4}
    assert kin.instance(top).failure_code == "child_failed"
    with pytest.raises(Conflict, match=r"limits\.max_depth is used up; raise it first"):
        kin.tell(deepest.ulid, RetryAsked())
    kin.memory.policy = Policy(limits={**DEFAULT_LIMITS, "max_depth": 4})
    kin.tell(deepest.ulid, RetryAsked())
    assert kin.instance(deepest.ulid).status is InstanceStatus.RUNNING


def test_who_starts_nothing_is_never_too_deep() -> None:
    """However deep it runs itself since the engine's limit was lowered."""
    shallow = document("child", many())
    kin = Kin(document("top", nested(child="middle")), document("middle", nested()), shallow)
    top = kin.start("top", {"items": []})
    while len(kin.memory.families) < 3:
        kin.work(max(family.instance.ulid for family in kin.memory.families.values()))
    kin.memory.policy = Policy(limits={**DEFAULT_LIMITS, "max_depth": 1})
    kin.drain()
    assert kin.instance(top).status is InstanceStatus.COMPLETED


def test_t_nest_4_a_failing_child_fails_the_parent_and_a_retry_goes_to_the_child() -> None:
    """Defect 4: what becomes of the child reaches the parent."""
    kin = Kin(document("parent", nested()), FLAKY)
    parent = kin.start("parent", {"is_bad": True})
    kin.drain()
    [child] = kin.children(parent)
    failed = kin.instance(parent)
    assert (failed.status, failed.failure_code) == (InstanceStatus.FAILED, "child_failed")
    assert failed.failure_params == {"child": child, "code": "test.refused", "message": "no"}
    assert len(kin.get(parent).steps) == 2, "it isn't tried again by itself"
    kin.tell(parent, RetryAsked())
    kin.work(parent)
    assert kin.deliver(child)
    assert kin.instance(child).status is InstanceStatus.RUNNING
    [step] = [step for step in kin.get(child).live if step.ready_at]
    changes = kin.claim(child, step)
    kin.finish(child, changes.claimed[0].step, Complete(output={"ok": True}))
    kin.drain()
    assert kin.instance(child).status is InstanceStatus.COMPLETED
    assert kin.instance(parent).status is InstanceStatus.COMPLETED
    assert kin.children(parent) == [child]


def test_a_child_that_fails_again_fails_the_parent_again() -> None:
    kin = Kin(document("parent", nested()), FLAKY)
    parent = kin.start("parent", {"is_bad": True})
    kin.drain()
    kin.tell(parent, RetryAsked())
    kin.drain()
    assert kin.instance(parent).failure_code == "child_failed"
    assert [step.status for step in kin.get(parent).steps.values() if step.node_id == "sub"] == [StepStatus.FAILED] * 2


def test_the_retry_of_a_parent_leaves_what_its_child_could_not_undo_to_the_childs_own() -> None:
    undo: JsonObject = {"type": "test.flaky", "config": {"for_good": True}}
    failing = node("work", "test.flaky", for_good=True)
    child = document("child", {**node("made"), "compensate": undo}, failing, compensate_on_failure=True)
    kin = Kin(document("parent", nested()), child)
    parent = kin.start("parent")
    kin.drain()
    [ulid] = kin.children(parent)
    assert list_hooks(kin, ulid) == [("made", StepStatus.FAILED)]
    kin.tell(parent, RetryAsked())
    kin.drain()
    assert kin.instance(parent).failure_code == "child_failed"
    assert list_hooks(kin, ulid) == [("made", StepStatus.FAILED)]
    kin.tell(ulid, RetryAsked())
    kin.drain()
    assert list_hooks(kin, ulid) == [("made", StepStatus.FAILED)] * 2


def test_a_child_that_was_mended_by_hand_answers_the_parents_retry_at_once() -> None:
    kin = Kin(document("parent", nested()), FLAKY)
    parent = kin.start("parent", {"is_bad": True})
    kin.drain()
    [child] = kin.children(parent)
    kin.tell(child, RetryAsked())
    [step] = [step for step in kin.get(child).live if step.ready_at]
    kin.finish(child, kin.claim(child, step).claimed[0].step, Complete())
    assert kin.instance(child).status is InstanceStatus.COMPLETED
    assert kin.instance(parent).status is InstanceStatus.FAILED, "nobody waits for it"
    kin.tell(parent, RetryAsked())
    kin.drain()
    assert kin.instance(parent).status is InstanceStatus.COMPLETED


def test_a_node_with_a_retry_of_its_own_tries_the_child_again_by_itself() -> None:
    retry: JsonObject = {"max_attempts": 2, "backoff": [10]}
    kin = Kin(document("parent", nested(retry=retry)), FLAKY)
    parent = kin.start("parent", {"is_bad": True})
    kin.drain()
    [child] = kin.children(parent)
    [step] = [step for step in kin.get(parent).live if step.node_id == "sub"]
    assert (step.attempt, step.status, step.ready_at) == (2, StepStatus.QUEUED, None)
    assert kin.instance(child).status is InstanceStatus.FAILED


def test_a_failed_child_leaves_by_the_error_exit() -> None:
    sub = nested(on_error=[{"codes": ["child_failed"], "outcome": "broken"}])
    graph = document("parent", sub, node("after"))
    nodes: Any = graph["nodes"]
    graph["nodes"] = [*nodes, node("mend", value={"ref": "steps.sub.error.code"})]
    edges: list[Any] = [{"from": "sub", "outcome": "broken", "to": "mend"}, {"from": "mend", "to": "done"}]
    before: Any = graph["edges"]
    graph["edges"] = [*before, *edges]
    kin = Kin(graph, FLAKY)
    parent = kin.start("parent", {"is_bad": True})
    kin.drain()
    assert kin.instance(parent).status is InstanceStatus.COMPLETED
    [mend] = [step for step in kin.get(parent).steps.values() if step.node_id == "mend"]
    assert mend.output is not None
    assert mend.output["value"] == "child_failed"


def test_t_nest_5_cancel_goes_to_the_child_that_is_waited_for() -> None:
    kin = Kin(document("parent", nested(), many(items=[1])), CHILD, document("slow", node("work")))
    parent = kin.start("parent")
    kin.work(parent)
    [child] = kin.children(parent)
    kin.tell(parent, CancelAsked("enough"))
    assert kin.instance(child).status is not InstanceStatus.CANCELLED, "it is told, and obeys under its own lock"
    kin.drain()
    assert kin.instance(child).status is InstanceStatus.CANCELLED
    assert kin.instance(parent).status is InstanceStatus.CANCELLED


def test_children_that_nobody_waits_for_are_left_alone() -> None:
    """CN-9."""
    kin = Kin(document("parent", many(items=[1, 2]), node("after")), CHILD)
    parent = kin.start("parent")
    kin.work(parent)
    kin.tell(parent, CancelAsked())
    kin.drain()
    assert [kin.instance(child).status for child in kin.children(parent)] == [InstanceStatus.COMPLETED] * 2


def test_a_cancelled_child_fails_the_step_and_a_retry_starts_another_one() -> None:
    kin = Kin(document("parent", nested()), CHILD)
    parent = kin.start("parent")
    kin.work(parent)
    [child] = kin.children(parent)
    kin.tell(child, CancelAsked("no"))
    kin.deliver(parent)
    failed = kin.instance(parent)
    assert (failed.failure_code, failed.failure_params) == ("child_cancelled", {"child": child, "reason": "no"})
    kin.tell(parent, RetryAsked())
    kin.drain()
    assert kin.instance(parent).status is InstanceStatus.COMPLETED
    assert len(kin.children(parent)) == 2


def test_a_branch_that_fails_takes_the_child_of_the_other_with_it() -> None:
    branches = {"a": body(nested()), "b": body(node("bad", "test.flaky", for_good=True))}
    kin = Kin(document("parent", parallel("both", **branches)), CHILD)
    parent = kin.start("parent")
    kin.work(parent)
    [child] = kin.children(parent)
    kin.work(parent)
    assert kin.instance(parent).failure_code == "test.refused"
    kin.deliver(child)
    assert kin.instance(child).status is InstanceStatus.CANCELLED


def test_a_child_that_ends_under_an_ended_parent_changes_nothing() -> None:
    """Defect 5."""
    kin = Kin(document("parent", nested()), CHILD)
    parent = kin.start("parent")
    kin.work(parent)
    [child] = kin.children(parent)
    kin.work(child)
    assert kin.instance(child).status is InstanceStatus.COMPLETED
    kin.tell(parent, CancelAsked())
    lines = len(kin.get(parent).events)
    kin.drain()
    assert kin.instance(parent).status is InstanceStatus.CANCELLED
    assert len(kin.get(parent).events) == lines


def test_a_pause_goes_to_all_open_children_and_so_does_a_resume() -> None:
    kin = Kin(document("parent", many(items=[1, 2, 3]), node("after")), CHILD)
    parent = kin.start("parent")
    kin.work(parent)
    children = kin.children(parent)
    kin.work(children[0])
    kin.tell(parent, PauseAsked())
    assert kin.cascade()
    assert [kin.deliver(child) for child in children] == [False, True, True]
    assert [kin.instance(child).paused_at is not None for child in children] == [False, True, True]
    kin.drain()
    assert [kin.instance(child).is_ended for child in children] == [True, False, False]
    kin.tell(parent, ResumeAsked())
    kin.drain()
    assert all(kin.instance(run).status is InstanceStatus.COMPLETED for run in [parent, *children])


def test_a_child_of_a_paused_run_begins_paused() -> None:
    kin = Kin(document("parent", nested()), document("child", node("work"), execution_timeout=60))
    parent = kin.start("parent")
    [step] = kin.get(parent).live
    granted = kin.claim(parent, step).claimed[0]
    kin.tell(parent, PauseAsked())
    asked = kin.settle(parent, _ask(granted))
    kin.finish(parent, granted.step, asked)
    [child] = kin.children(parent)
    row = kin.instance(child)
    assert (row.paused_at, row.deadline_at, row.deadline_seconds) == (kin.now, None, 60)
    assert [event.type for event in kin.get(child).events][:2] == [
        EventType.INSTANCE_STARTED,
        EventType.INSTANCE_PAUSED,
    ]
    kin.drain()
    assert not kin.instance(child).is_ended
    kin.tell(parent, ResumeAsked())
    kin.drain()
    assert kin.instance(parent).status is InstanceStatus.COMPLETED


def _ask(granted: Any) -> Any:
    return handlers.run(granted, is_raw=True)


def test_t_start_1_one_run_an_item_and_the_parent_goes_on() -> None:
    kin = Kin(document("parent", many(), node("after", value={"ref": "state.ids"})), CHILD)
    parent = kin.start("parent", {"items": ["a", "b", "c"]})
    kin.work(parent)
    children = kin.children(parent)
    state: Any = kin.instance(parent).state
    assert state["ids"] == children
    assert [kin.instance(child).input["item"] for child in children] == ["a", "b", "c"]
    kin.work(parent)
    assert kin.instance(parent).status is InstanceStatus.COMPLETED
    assert not any(kin.instance(child).is_ended for child in children)


def test_t_start_2_and_3_what_children_are_given() -> None:
    """T-START-3: an object's own keys on top, anything else under the payload key; keys left out aren't there."""
    items: list[Any] = [{"name": "a", "_own": 1, "x": 2}, "b", [3], None]
    given = {"inputs": {"ref": "state"}, "without": ["items", "ids"], "index_key": "start_item_index"}
    kin = Kin(document("parent", many(**given)), CHILD)
    parent = kin.start("parent", {"items": items, "x": 1})
    kin.drain()
    assert list_states(kin, kin.children(parent)) == [
        {"name": "a", "x": 2, "start_item_index": 0},
        {"item": "b", "x": 1, "start_item_index": 1},
        {"item": [3], "x": 1, "start_item_index": 2},
        {"item": None, "x": 1, "start_item_index": 3},
    ]


@pytest.mark.parametrize("count", [0, 1, 499, 500, 501, 1_201])
def test_many_children_are_started_page_by_page(count: int) -> None:
    kin = Kin(document("parent", many(save={"key": "kept"})), CHILD)
    parent = kin.start("parent", {"items": list(range(count))})
    pages = 0
    while kin.work(parent):
        pages += 1
    assert pages == max(1, -(-count // 500))
    state: Any = kin.instance(parent).state
    children = kin.children(parent)
    assert state["kept"]["ids"] == children
    assert [kin.instance(child).input["item"] for child in children] == list(range(count))


def test_a_lost_attempt_between_pages_starts_none_twice() -> None:
    """T-START-5, defect 6: what is recorded stands, what isn't never was."""
    kin = Kin(document("parent", many()), CHILD)
    parent = kin.start("parent", {"items": list(range(700))})
    kin.work(parent)
    assert len(kin.children(parent)) == 500
    [step] = kin.get(parent).live
    granted = kin.claim(parent, step).claimed[0]
    asked = kin.settle(parent, _ask(granted))
    kin.tell(parent, Lost(granted.step.id, granted.step.claim_token or ""))
    late = kin.finish(parent, granted.step, asked)
    assert (late.dropped, late.outward) == ("stale_token", None)
    assert len(kin.children(parent)) == 500
    kin.now += timedelta(hours=1)
    stamps.stamp_due(kin.get(parent), kin.now)
    kin.drain()
    assert len(kin.children(parent)) == 700
    items: list[Any] = [kin.instance(child).input["item"] for child in kin.children(parent)]
    assert sorted(items) == list(range(700))


def test_t_guard_10_a_limit_on_starts_is_looked_at_before_the_first_one() -> None:
    kin = Kin(document("parent", many(), limits={"max_started_workflows": 1}), CHILD)
    parent = kin.start("parent", {"items": [1, 2]})
    kin.drain()
    row = kin.instance(parent)
    assert (row.failure_code, row.failure_params) == ("budget_children", {"pointer": STARTED, "limit": 1, "actual": 2})
    assert kin.children(parent) == []
    assert "ids" not in row.state
    with pytest.raises(Conflict, match=r"limits\.max_started_workflows of its version is used up"):
        kin.tell(parent, RetryAsked())


def test_the_limit_on_starts_counts_the_whole_run() -> None:
    policy = Policy(limits={**DEFAULT_LIMITS, "max_started_workflows": 3})
    kin = Kin(document("parent", many(), {**many(), "id": "more"}), CHILD, policy=policy)
    parent = kin.start("parent", {"items": [1, 2]})
    kin.drain()
    assert kin.instance(parent).failure_params == {"pointer": STARTED, "limit": 3, "actual": 4}
    assert len(kin.children(parent)) == 2


def test_ids_that_have_no_room_in_the_state_start_nothing() -> None:
    kin = Kin(document("parent", many(), limits={"max_state_bytes": 60}), CHILD)
    parent = kin.start("parent", {"items": [1, 2]})
    kin.drain()
    assert kin.instance(parent).failure_code == "budget_state_bytes"
    assert kin.children(parent) == []


def test_t_nest_5_the_child_is_undone_before_its_parent() -> None:
    """What undoes the parent waits until the child has cleaned up, however long that takes."""
    undo: JsonObject = {"type": "test.ok", "config": {"value": "undone"}}
    done = {**node("done_before"), "compensate": undo}
    child = document("child", {**node("made"), "compensate": undo}, node("gate", "wait", signal="go"))
    kin = Kin(document("parent", done, nested()), child)
    parent = kin.start("parent")
    kin.drain()
    [ulid] = kin.children(parent)
    assert kin.instance(ulid).status is InstanceStatus.WAITING
    kin.tell(parent, CancelAsked("enough"))
    assert list_hooks(kin, parent) == []
    kin.deliver(ulid)
    assert list_hooks(kin, ulid) == [("made", StepStatus.QUEUED)]
    kin.deliver(parent)
    assert list_hooks(kin, parent) == [], "the child is cancelled, and not clean yet"
    kin.work(ulid)
    assert list_hooks(kin, ulid) == [("made", StepStatus.COMPLETED)]
    kin.deliver(parent)
    assert list_hooks(kin, parent) == [("done_before", StepStatus.QUEUED)]
    kin.drain()
    assert list_hooks(kin, parent) == [("done_before", StepStatus.COMPLETED)]


def list_hooks(kin: Kin, ulid: str) -> list[Any]:
    return [(step.node_id, step.status) for step in kin.get(ulid).steps.values() if step.role is StepRole.COMPENSATE]


def test_a_child_that_ended_in_the_same_instant_holds_nothing_up() -> None:
    undo: JsonObject = {"type": "test.ok", "config": {"value": "undone"}}
    kin = Kin(document("parent", {**node("done_before"), "compensate": undo}, nested()), CHILD)
    parent = kin.start("parent")
    kin.work(parent)
    kin.work(parent)
    [child] = kin.children(parent)
    kin.work(child)
    kin.tell(parent, CancelAsked())
    kin.drain()
    assert kin.instance(child).status is InstanceStatus.COMPLETED
    assert kin.instance(parent).status is InstanceStatus.CANCELLED
    assert list_hooks(kin, parent) == [("done_before", StepStatus.COMPLETED)]
