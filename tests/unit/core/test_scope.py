"""A body that events, a time limit or its own end bring to an end: what lives inside is cancelled."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.counters import Pages
from korak.core.facts import CancelAsked, PauseAsked, Raised, ResumeAsked, RetryAsked
from korak.core.snapshot import Policy
from korak.graphs.validation import validate
from korak.model import InstanceStatus, JsonObject, ScopeStatus, StepStatus
from tests.support.bodies import (
    body,
    document,
    drain,
    find,
    for_each,
    get_state,
    get_status,
    list_scopes,
    node,
    work,
)
from tests.support.plans import registry
from tests.support.runs import Run

REFUSED = Raised("test.refused", "no", is_retryable=False)
EVENTS = [{"event": "withdrawn", "match": {"order": {"ref": "input.order"}}, "outcome": "withdrawn"}]
TIMEOUT = {"after": 600, "outcome": "late"}
EDGES = (
    ("start", "next", "around"),
    ("around", "next", "done"),
    ("around", "withdrawn", "refund"),
    ("around", "late", "refund"),
    ("around", "error", "refund"),
    ("refund", "next", "done"),
)


def around(inner: JsonObject, **members: Any) -> JsonObject:
    paid = {"ref": "state.paid.value", "default": None} if "paid" in str(inner) else None
    refund = node("refund", value=paid, save={"key": "refund"})
    config: Any = {"events": EVENTS, "timeout": TIMEOUT, **members}
    return document(node("around", "scope", body=inner, save={"key": "out"}, **config), refund, edges=EDGES)


def begin(inner: JsonObject, **members: Any) -> Run:
    return Run(around(inner, **members), given={"order": 7})


TWO = body(node("x", value=1, save={"key": "paid"}), node("y", value=2))


def test_its_body_ends_and_the_exits_are_closed() -> None:
    run = begin(TWO)
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert get_state(run) == {"paid": {"value": 1, "visit": 1}, "out": {"value": 2, "visit": 1}}
    assert not run.waits
    assert not run.list_steps("refund")


def test_an_event_cancels_what_lives_inside_and_its_edge_is_followed() -> None:
    run = begin(TWO)
    work(run, find(run, "x"))
    run.emit("withdrawn", {"order": 8})
    run.emit("withdrawn", {"order": 7}, "e2")
    work(run, find(run, "around"))
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert get_state(run)["refund"]["value"] == 1
    assert get_state(run)["out"] == {"key": "withdrawn", "payload": {"order": 7}}
    assert run.list_steps("y")[0].status is StepStatus.CANCELLED
    assert [scope.status for scope in list_scopes(run)] == [ScopeStatus.CANCELLED]


def test_a_signal_of_the_event_s_name_does_it_too() -> None:
    run = begin(TWO)
    drain_container(run)
    run.signal("withdrawn", {"order": 7})
    assert run.list_steps("x")[0].status is StepStatus.CANCELLED
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED


def drain_container(run: Run) -> None:
    """The look that every step that waits for an event is owed."""
    run.claim(find(run, "around"))


def test_a_time_limit_ends_it() -> None:
    run = begin(body(node("w", "wait", signal="go")))
    drain(run)
    assert get_status(run) is InstanceStatus.WAITING
    assert run.pass_time(599) == 0
    assert run.pass_time(2) == 1
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert run.list_steps("around")[0].outcome == "late"
    assert run.list_steps("w")[0].status is StepStatus.CANCELLED


def test_its_error_exit_is_taken() -> None:
    run = begin(body(node("x", "test.flaky", for_good=True)))
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert len(run.list_steps("refund")) == 1
    assert not run.waits


def test_what_lives_deeper_inside_is_cancelled_too() -> None:
    run = begin(body(for_each(list(range(60)), body(node("x", value={"ref": "item"})))))
    run.pass_time(601)
    work(run, find(run, "around"))
    assert {scope.status for scope in list_scopes(run)} == {ScopeStatus.CANCELLED}
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED


def test_a_pause_stops_its_clock() -> None:
    run = begin(body(node("w", "wait", signal="go")))
    drain(run)
    run.tell(PauseAsked())
    assert run.pass_time(5_000) == 0
    run.tell(ResumeAsked())
    drain(run)
    assert run.pass_time(590) == 0
    assert run.pass_time(11) == 1


def test_a_cancel_closes_its_exits() -> None:
    run = begin(TWO)
    run.tell(CancelAsked())
    assert not run.waits
    assert not run.live


def test_a_retry_goes_on_inside_and_listens_again() -> None:
    edges = tuple(edge for edge in EDGES if edge[1] != "error")
    inner: Any = around(body(node("x", value=1, save={"key": "paid"}), node("y")))
    head = {**inner, "edges": [{"from": source, "outcome": way, "to": target} for source, way, target in edges]}
    run = Run(head, given={"order": 7})
    work(run, find(run, "x"))
    run.claim(find(run, "y"))
    run.finish(REFUSED, step=find(run, "y"))
    assert get_status(run) is InstanceStatus.FAILED
    run.pass_time(5_000)
    run.tell(RetryAsked())
    assert [wait.kind for wait in run.waits] == ["event", "timeout"]
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert (len(run.list_steps("x")), len(run.list_steps("y"))) == (1, 2)
    assert get_state(run)["paid"]["value"] == 1


def test_a_body_that_has_ended_and_is_still_to_be_merged_is_left_by_no_exit() -> None:
    run = Run(around(TWO), given={"order": 7}, policy=Policy(pages=Pages(2, small=0)))
    for name in ("around", "x", "y"):
        work(run, find(run, name))
    assert [step.node_id for step in run.live] == ["around"]
    assert not run.waits
    run.signal("withdrawn", {"order": 7})
    assert run.pass_time(601) == 0
    drain(run)
    assert get_state(run) == {"paid": {"value": 1, "visit": 1}, "out": {"value": 2, "visit": 1}}
    assert not run.list_steps("refund")


def test_a_retry_of_a_merge_that_failed_listens_no_more() -> None:
    run = Run(around(TWO), given={"order": 7}, policy=Policy(limits={**Policy().limits, "max_state_bytes": 50}))
    drain(run)
    assert run.instance.failure_code == "budget_state_bytes"
    run.memory.policy = Policy()
    run.tell(RetryAsked())
    assert not run.waits
    run.signal("withdrawn", {"order": 7})
    drain(run)
    assert get_state(run) == {"paid": {"value": 1, "visit": 1}, "out": {"value": 2, "visit": 1}}
    assert not run.list_steps("refund")


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"events": []}, "/config/events"),
        ({"events": [{"event": "a", "outcome": "next"}]}, "/config/events/0/outcome"),
        ({"events": [{"event": "", "outcome": "a"}]}, "/config/events/0/event"),
        ({"events": [{"event": "e", "match": {"a..b": 1}, "outcome": "a"}]}, "/config/events/0/match/a..b"),
        ({"events": [{"event": "a"}]}, "/config/events/0/outcome"),
        ({"timeout": {"after": "soon"}}, "/config/timeout/after"),
        ({"timeout": {"after": 5, "outcome": "error"}}, "/config/timeout/outcome"),
        ({"timeout": 5}, "/config/timeout"),
    ],
)
def test_what_is_wrong_with_a_scope_is_told_at_publish(members: dict[str, Any], pointer: str) -> None:
    issues = validate(around(TWO, **members), registry()).issues
    assert f"/nodes/1{pointer}" in {issue.pointer for issue in issues}


def test_every_exit_leads_somewhere() -> None:
    document_: Any = around(TWO)
    document_["edges"] = [edge for edge in document_["edges"] if edge.get("outcome") != "late"]
    [issue] = validate(document_, registry()).issues
    assert (issue.code, issue.params["outcome"]) == ("outcome_unconnected", "late")
