"""What has been undone is no place for a fork, and what it takes along of bodies and artifacts."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.changes import Changes
from korak.core.facts import ForkAsked, RewindAsked
from korak.core.past import Line, Past
from korak.errors import Conflict
from korak.graphs.builder import ref
from korak.model import CompensationStatus, EventType, JsonObject
from korak.steps.results import Complete
from tests.support.bodies import body, document, drain, find, list_ready, node, parallel
from tests.support.runs import Run
from tests.support.undoing import CANCEL, one_by_one, three, undone

OTHER = "01JBBBBBBBBBBBBBBBBBBBBBBB"


def fork(run: Run, to: str | None = None) -> Changes:
    run.tell(ForkAsked(OTHER, to))
    assert run.last.fork is not None
    return run.last.fork


def refuse(run: Run, to: str | None = None) -> Conflict:
    with pytest.raises(Conflict) as refused:
        run.tell(ForkAsked(OTHER, to))
    return refused.value


def get_node(changes: Changes) -> str:
    """Where the fork goes on."""
    [step] = changes.after.steps.values()
    return step.node_id


def check_undone(run: Run) -> None:
    assert (refuse(run).code, refuse(run, "a").params) == ("step_undone", {"node": "a", "visit": 1})
    assert get_node(fork(run, "start")) == "a"


def test_what_is_undone_is_no_place_and_what_is_kept_is() -> None:
    """What is kept will be undone once its run is cleaning up: whichever hook has run, it is no place."""
    run = three()
    drain(run)
    assert get_node(fork(run)) == "c"
    assert get_node(fork(run, "a")) == "b"
    run.tell(CANCEL)
    check_undone(run)
    run.claim(list_ready(run)[0])
    run.finish(Complete(), step=run.hooks[0])
    check_undone(run)
    one_by_one(run)
    check_undone(run)
    assert {row.status for row in run.family.compensations.values()} == {CompensationStatus.COMPLETED}


def test_what_failed_to_be_undone_counts_as_undone() -> None:
    failing: JsonObject = {"type": "test.flaky", "config": {"for_good": True}}
    last = node("c", "test.flaky", for_good=True)
    run = Run(document(undone("a") | {"compensate": failing}, last, compensate_on_failure=True))
    drain(run)
    assert [row.status for row in run.family.compensations.values()] == [CompensationStatus.FAILED]
    assert refuse(run, "a").code == "step_undone"


def test_a_failure_that_undid_nothing_refuses_nothing() -> None:
    run = Run(document(undone("a"), node("c", "test.flaky", for_good=True)))
    drain(run)
    assert get_node(fork(run)) == "c"


def test_a_failed_run_whose_steps_were_undone_is_told_what_to_do_instead() -> None:
    run = Run(document(undone("a"), node("c", "test.flaky", for_good=True), compensate_on_failure=True))
    drain(run)
    with pytest.raises(Conflict, match="what it had done was undone; fork it to a step before that") as refused:
        run.tell(RewindAsked("a"))
    assert refused.value.code == "instance_not_rewindable"


def test_what_was_undone_in_a_body_is_told_by_its_own_name() -> None:
    both = parallel("both", a=body(undone("x")), b=body(node("y")))
    run = Run(document(node("first"), both, node("c", "test.ask", signal="go")))
    drain(run)
    run.tell(CANCEL)
    one_by_one(run)
    assert refuse(run).params["node"] == "x"
    assert sorted(step.node_id for step in fork(run, "first").after.steps.values()) == ["both", "x", "y"]


def test_what_a_rewind_left_behind_stands_in_no_fork() -> None:
    """The visit that was undone isn't among those that stand; the place behind another way is still one."""
    ways = [("start", "next", "a"), ("a", "yes", "b"), ("a", "no", "c"), ("b", "next", "d"), ("c", "next", "d")]
    asking = node("d", "test.ask", signal="go")
    run = Run(document(node("a", "test.fork"), undone("b"), node("c"), asking, edges=[*ways, ("d", "next", "done")]))
    run.work()
    run.work()
    run.tell(RewindAsked("start"))
    run.claim()
    run.finish(Complete("no"))
    run.work()
    run.work()
    run.tell(CANCEL)
    one_by_one(run)
    assert get_node(fork(run, "c")) == "d"


def test_a_place_stands_until_a_rewind_has_left_it() -> None:
    lines = (
        Line(1, EventType.INSTANCE_STARTED, {}, None),
        Line(9, EventType.INSTANCE_REWOUND, {"seq": 4}, None),
    )
    past = Past(lines, {})
    assert [seq for seq in range(1, 13) if past.stands(seq, 11)] == [1, 2, 3, 4, 9, 10, 11]


def starting(name: str) -> JsonObject:
    config: JsonObject = {"definition": "child", "items": ref("input.items"), "group": "g"}
    return {"id": name, "type": "start_workflows", "config": config}


def start(run: Run, name: str, *ulids: str) -> None:
    """Let the step have started these."""
    run.claim(find(run, name))
    run.finish(Complete(output={"ids": list(ulids)}), step=find(run, name))


def get_begun(changes: Changes) -> Any:
    [told] = [event for event in changes.events if event.type is EventType.INSTANCE_FORKED]
    return (told.data or {}).get("started")


def test_a_fork_knows_what_bodies_before_its_place_had_started() -> None:
    both = parallel("both", a=body(starting("x")), b=body(starting("y")))
    run = Run(document(node("first"), both, node("c", "test.ask", signal="go")), given={"items": [1]})
    run.work()
    start(run, "x", "X1")
    start(run, "y", "Y1", "Y2")
    made = fork(run)
    line = next(event.seq for event in made.events if event.node_id == "both")
    assert get_begun(made) == [{"seq": line, "ids": ["X1"]}, {"seq": line, "ids": ["Y1", "Y2"]}]
    assert get_begun(fork(run, "first")) is None
