"""Branches that run at the same time: merged in the order of declaration, settled early, retried where they stood."""

from __future__ import annotations

from itertools import permutations

import pytest

from korak.core.facts import CancelAsked, Finished, PauseAsked, Raised, ResumeAsked, RetryAsked
from korak.graphs.validation import validate
from korak.model import EventType, InstanceStatus, JsonObject, ScopeStatus, StepStatus
from korak.steps.contract import Complete
from korak.store.sealing import seal
from tests.support import handlers
from tests.support.bodies import (
    body,
    document,
    drain,
    find,
    get_state,
    get_status,
    list_ready,
    list_scopes,
    node,
    parallel,
    work,
)
from tests.support.plans import registry
from tests.support.runs import Run

REFUSED = Raised("test.refused", "no", is_retryable=False)


def two() -> JsonObject:
    return parallel("both", save={"key": "both"}, a=body(node("x", value=1)), b=body(node("y", value=2)))


def test_both_branches_are_queued_at_once_and_what_follows_runs_once() -> None:
    """T-PAR-1."""
    run = Run(document(two(), node("after", value={"ref": "state.both.b.value"}, save={"key": "after"})))
    assert [step.node_id for step in list_ready(run)] == ["x", "y"]
    assert find(run, "both").status is StepStatus.WAITING
    drain(run)
    assert run.instance.result == {
        "both": {"a": {"value": 1, "visit": 1}, "b": {"value": 2, "visit": 1}},
        "after": {"value": 2, "visit": 1},
    }
    assert len(run.list_steps("after")) == 1
    assert [scope.status for scope in list_scopes(run)] == [ScopeStatus.COMPLETED] * 2


@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("inline", [False, True])
def test_it_stands_anywhere(before: int, after: int, inline: bool) -> None:
    """T-PAR-2."""
    nodes = [*[node("before")] * before, two(), *[node("after")] * after]
    run = Run(document(*nodes))
    drain(run, inline=inline)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert run.instance.steps_count == before + after + 2
    assert run.instance.transitions_count == before + after + 1


def test_a_branch_that_fails_and_is_tried_again_leaves_the_other_alone() -> None:
    """T-PAR-3."""
    flaky = body(node("x", "test.flaky", times=2))
    run = Run(document(parallel(a=flaky, b=body(node("y")))))
    for _ in range(3):
        drain(run)
        run.pass_time(100)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert [step.attempt for step in run.list_steps("x")] == [1, 2, 3]
    assert len(run.list_steps("y")) == 1


def test_a_branch_that_fails_for_good_fails_the_run_and_cancels_the_rest() -> None:
    """T-PAR-4."""
    run = Run(document(parallel(a=body(node("x")), b=body(node("y")))))
    run.claim(find(run, "y"))
    late = find(run, "y")
    run.claim(find(run, "x"))
    run.finish(REFUSED, step=find(run, "x"))
    assert (run.instance.status, run.instance.failure_code) == (InstanceStatus.FAILED, "test.refused")
    assert run.instance.failed_node_id == "both"
    assert run.instance.failure_params == {"node": "x", "branch": "a"}
    assert [scope.status for scope in list_scopes(run)] == [ScopeStatus.FAILED, ScopeStatus.CANCELLED]
    assert run.finish(Complete(), step=late).dropped == "stale_token"


def test_a_retry_runs_only_what_failed_and_goes_on_when_it_succeeds() -> None:
    """T-PAR-5."""
    refusing = body(node("w"), node("x"))
    run = Run(document(parallel(a=refusing, b=body(node("y", save={"key": "y"})))))
    work(run, find(run, "y"))
    work(run, find(run, "w"))
    run.claim(find(run, "x"))
    run.finish(REFUSED, step=find(run, "x"))
    assert get_status(run) is InstanceStatus.FAILED
    run.tell(RetryAsked())
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert [step.status for step in run.list_steps("x")] == [StepStatus.FAILED, StepStatus.COMPLETED]
    assert (len(run.list_steps("w")), len(run.list_steps("y"))) == (1, 1)
    assert run.instance.state == {"y": {"value": None, "visit": 1}}
    assert [step.attempt for step in run.list_steps("both")] == [1, 2]


def test_a_retry_goes_down_to_where_a_nested_branch_stood() -> None:
    """T-PAR-5, a container in a container."""
    inner = parallel("inner", c=body(node("w")), d=body(node("x")))
    run = Run(document(parallel("outer", a=body(node("v"), inner), b=body(node("y")))))
    for name in ("v", "w", "y"):
        work(run, find(run, name))
    run.claim(find(run, "x"))
    run.finish(REFUSED, step=find(run, "x"))
    assert run.instance.failed_node_id == "outer"
    run.tell(RetryAsked())
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert [len(run.list_steps(name)) for name in "vwxy"] == [1, 1, 2, 1]


def test_a_retry_lets_cancelled_branches_go_on_too() -> None:
    run = Run(document(parallel(a=body(node("x")), b=body(node("w"), node("y")))))
    work(run, find(run, "w"))
    run.claim(find(run, "x"))
    run.finish(REFUSED, step=find(run, "x"))
    run.tell(RetryAsked())
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert [step.status for step in run.list_steps("y")] == [StepStatus.CANCELLED, StepStatus.COMPLETED]
    assert len(run.list_steps("w")) == 1


@pytest.mark.parametrize("order", list(permutations("xyz")))
def test_the_result_does_not_depend_on_who_was_faster(order: tuple[str, ...]) -> None:
    """The merge is in the order of declaration, and only of what a branch wrote itself."""
    branches: dict[str, JsonObject] = {
        "a": body(node("x", value=1, save={"key": "k"})),
        "b": body(node("y", value=2, save={"key": "k"})),
        "c": body(node("z", value=3, save={"key": "other"})),
    }
    run = Run(document(node("first", value=0, save={"key": "kept"}), parallel(**branches)))
    drain(run, choose=lambda ready: min(ready, key=lambda step: "fxyz".find(step.node_id[0])))
    again = Run(document(node("first", value=0, save={"key": "kept"}), parallel(**branches)))
    work(again, again.step)
    for name in order:
        work(again, find(again, name))
    assert again.instance.state == run.instance.state
    assert {key: value["value"] for key, value in get_state(run).items()} == {"kept": 0, "k": 2, "other": 3}


def test_a_branch_sees_the_state_at_entry_and_its_own_writes() -> None:
    second = node("x2", value={"ref": "state.k.value"}, save={"key": "x2"})
    writing = body(node("x", value=1, save={"key": "k"}), second)
    looking = body(node("y", value={"ref": "state.k"}, save={"key": "y"}))
    run = Run(document(parallel(a=writing, b=looking)))
    work(run, find(run, "x"))
    work(run, find(run, "x2"))
    drain(run)
    assert get_state(run)["y"]["value"] is None
    assert get_state(run)["x2"]["value"] == 1


def test_steps_are_read_in_the_branch_and_then_outward() -> None:
    reading = body(node("x", value={"ref": "steps.first.output.value"}), node("x2", value={"ref": "steps.x.output"}))
    run = Run(document(node("first", value=7), parallel(save={"key": "both"}, a=reading)))
    drain(run)
    assert get_state(run)["both"]["a"]["value"] == {"value": 7, "visit": 1}


def test_an_end_ends_its_branch_with_its_result() -> None:
    ending = body(node("x", value=1), node("stop", "end", result={"ref": "steps.x.output.value"}))
    run = Run(document(parallel(save={"key": "both"}, a=ending, b=body(node("y")))))
    drain(run)
    assert run.instance.result == {"both": {"a": 1, "b": {"value": None, "visit": 1}}}


def test_an_end_that_terminates_ends_the_run() -> None:
    ending = body(node("x", value=1), node("stop", "end", terminate=True, result="over"))
    run = Run(document(parallel(a=ending, b=body(node("y"), node("y2")))))
    work(run, find(run, "x"))
    assert (run.instance.status, run.instance.result) == (InstanceStatus.COMPLETED, "over")
    assert not run.live
    assert not list_ready(run)
    assert {scope.status for scope in list_scopes(run)} == {ScopeStatus.CANCELLED}


def test_an_end_that_terminates_without_a_result_gives_the_last_output_around_it() -> None:
    ending = body(node("stop", "end", terminate=True))
    run = Run(document(node("first", value=1), parallel(a=ending)))
    drain(run)
    assert run.instance.result == {"value": 1, "visit": 1}


def test_the_error_exit_of_the_container_is_taken() -> None:
    edges = (("start", "next", "both"), ("both", "next", "done"), ("both", "error", "mend"), ("mend", "next", "done"))
    reading = node("mend", value={"ref": "steps.both.error.code"}, save={"key": "m"})
    built = parallel("both", a=body(node("x", "test.flaky", for_good=True)), b=body(node("y")))
    run = Run(document(built, reading, edges=edges))
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert get_state(run)["m"]["value"] == "test.refused"
    assert not run.list_steps("y") or run.list_steps("y")[0].status is StepStatus.CANCELLED


def test_an_error_exit_inside_keeps_the_branch_going() -> None:
    edges = (("x", "error", "mend"), ("x", "next", "mend"))
    inner = body(node("x", "test.flaky", for_good=True), node("mend", value={"ref": "steps.x.error.code"}), edges=edges)
    run = Run(document(parallel(save={"key": "both"}, a=inner)))
    drain(run)
    assert get_state(run)["both"]["a"]["value"] == "test.refused"


def test_branches_that_end_at_the_same_instant_go_on_once() -> None:
    """T-PAR-6: both are decided from one snapshot; the one that is written second is decided again."""
    run = Run(document(two(), node("after")))
    for name in "xy":
        run.claim(find(run, name))
    snapshot = run.memory.load(run.instance.id)
    facts = [Finished(step.id, step.claim_token or "", Complete()) for step in (find(run, "x"), find(run, "y"))]
    first, second = (run.decide(snapshot, fact) for fact in facts)
    run.write(first)
    seal(second, run.ids)
    assert not run.memory.apply(second)
    run.tell(facts[1])
    assert [step.status for step in run.list_steps("after")] == [StepStatus.QUEUED]


def test_a_visit_in_a_loop_counts_its_own_branches() -> None:
    """Defect 2 of the reference: branches of an earlier round don't let a later one go on."""
    edges = (("start", "next", "l"), ("l", "body", "both"), ("both", "next", "l"), ("l", "done", "done"))
    loop = node("l", "loop", over={"literal": [1, 2]}, max_iterations=5)
    run = Run(document(loop, two(), edges=edges))
    for name in ("x", "y", "x"):
        work(run, find(run, name))
    assert len(run.list_steps("both")) == 2
    assert find(run, "both").status is StepStatus.WAITING
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED


def test_more_branches_than_run_at_a_time_come_through() -> None:
    branches = {f"b{number}": body(node(f"x{number}", value=number, save={"key": "last"})) for number in range(120)}
    run = Run(document(parallel("both", **branches)))
    assert len(list_ready(run)) == 100
    while ready := list_ready(run):
        run.claim(ready[0]) if ready[0].node_id == "both" else run.tell_quickly(ready[0])
    assert get_status(run) is InstanceStatus.COMPLETED
    assert get_state(run)["last"]["value"] == 119


def test_a_cancel_reaches_every_branch_and_its_hooks() -> None:
    asking = body(node("x", "test.ask", signal="go"))
    run = Run(document(parallel(a=asking, b=body(node("y")))))
    run.claim(find(run, "x"))
    run.finish(handlers.run(run.get_grant()), step=find(run, "x"))
    run.tell(CancelAsked())
    assert get_status(run) is InstanceStatus.CANCELLED
    assert [hook.node_id for hook in run.hooks] == ["x"]
    assert not run.waits
    assert {scope.status for scope in list_scopes(run)} == {ScopeStatus.CANCELLED}


def test_a_pause_holds_every_branch_and_a_resume_lets_all_go_on() -> None:
    napping = body(node("nap", "delay", **{"for": 60}))
    run = Run(document(parallel(a=body(node("x"), node("x2")), b=body(node("y")), c=napping)))
    run.claim(find(run, "x"))
    running = run.get_grant()
    run.tell(PauseAsked())
    run.finish(handlers.run(running), step=find(run, "x"))
    assert not list_ready(run)
    assert {step.parked_for for step in run.live if step.status is StepStatus.QUEUED} == {"pause"}
    run.pass_time(1_000)
    run.tell(ResumeAsked())
    drain(run)
    run.pass_time(61)
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED


def test_containers_in_loops_make_bodies_anew() -> None:
    edges = (("start", "next", "l"), ("l", "body", "both"), ("both", "next", "l"), ("l", "done", "done"))
    inner = body(node("x", value={"ref": "loops.l.item"}, save={"key": "k"}))
    run = Run(document(node("l", "loop", over={"literal": [1, 2]}, max_iterations=5), parallel(a=inner), edges=edges))
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert get_state(run)["k"]["value"] == 2
    assert [step.visit for step in run.list_steps("x")] == [1, 2]
    assert len(list_scopes(run)) == 2


def test_loops_inside_count_for_their_branch() -> None:
    def go_round(name: str) -> JsonObject:
        loop = node(f"l{name}", "loop", over={"literal": [1, 2, 3]}, max_iterations=5)
        return body(
            loop,
            node(name, value={"ref": f"loops.l{name}.item"}),
            node(f"{name}_end", "end", result={"ref": f"steps.{name}.output.value", "default": None}),
            edges=((f"l{name}", "body", name), (name, "next", f"l{name}"), (f"l{name}", "done", f"{name}_end")),
        )

    run = Run(document(parallel(save={"key": "both"}, a=go_round("x"), b=go_round("y"))))
    drain(run, choose=lambda ready: ready[-1])
    assert run.instance.state == {"both": {"a": 3, "b": 3}}


def test_jumps_inside_are_bounded_for_their_branch() -> None:
    jumping = node("x", "test.price", order="1", jumps=["x"])
    run = Run(document(parallel(a=body(jumping)), limits={"max_transitions": 5}))
    for _ in range(6):
        if not run.instance.is_ended:
            run.claim(find(run, "x"))
            run.finish(Complete(output={"_next_step": "x"}), step=find(run, "x"))
    assert run.instance.failure_code == "budget_transitions"


def test_signals_wake_the_branch_that_waits() -> None:
    waiting = body(node("w", "wait", signal="go"))
    run = Run(document(parallel(save={"key": "both"}, a=waiting, b=body(node("y")))))
    drain(run)
    assert get_status(run) is InstanceStatus.WAITING
    run.signal("go", {"n": 1})
    assert get_state(run)["both"]["a"] == {"key": "go", "payload": {"n": 1}}


def test_bodies_are_told_in_history() -> None:
    run = Run(document(two()))
    drain(run)
    assert [event.data for event in run.list_events(EventType.BODY_COMPLETED)] == [{"branch": "a"}, {"branch": "b"}]


@pytest.mark.parametrize(
    ("built", "code", "pointer"),
    [
        ({"id": "both", "type": "parallel"}, "invalid_config", "/nodes/1"),
        ({"id": "both", "type": "parallel", "branches": {}}, "invalid_config", "/nodes/1/branches"),
        (node("both", "parallel", branches={"a": {"start": "no", "nodes": [node("x")]}}), "edge_unknown_node", ""),
        (node("both", "parallel", branches={"a": body(node("x"))}, body=body(node("y"))), "invalid_config", ""),
        (parallel(a=body(node("x", value={"ref": "item"}))), "unknown_reference", ""),
        (parallel(a=body(node("x")), b=body(node("y", value={"ref": "steps.x.output"}))), "reference_not_ancestor", ""),
        (parallel(a=body(node("x")), b=body(node("x"))), "duplicate_node", ""),
    ],
)
def test_what_is_wrong_with_a_parallel_is_told_at_publish(built: JsonObject, code: str, pointer: str) -> None:
    issues = validate(document(built), registry()).issues
    assert code in {issue.code for issue in issues}
    assert any(issue.pointer.startswith(pointer) for issue in issues)


def test_what_the_same_decision_cancels_is_given_to_nobody() -> None:
    """One branch begins where the step before was recorded, the other ends the run at once."""
    branches = parallel(x=body(node("x", "test.ask", signal="go")), y=body(node("stop", "end", terminate=True)))
    run = Run(document(node("a"), branches))
    run.claim()
    changes = run.finish(Complete(), inline=True)
    assert (run.instance.status, changes.claimed) == (InstanceStatus.COMPLETED, [])
    assert [step.status for step in run.list_steps("x")] == [StepStatus.CANCELLED]
