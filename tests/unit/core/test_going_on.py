"""A retry by hand of a failed container: how many bodies live at a time, where each goes on, and that all end."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from korak.core.counters import Counters
from korak.core.facts import CancelAsked, PauseAsked, Raised, ResumeAsked, RetryAsked
from korak.core.rows import StepRun
from korak.model import InstanceStatus, JsonObject, ScopeStatus, StepStatus
from korak.steps.contract import Complete
from tests.support import handlers
from tests.support.bodies import (
    body,
    document,
    drain,
    find,
    for_each,
    get_status,
    list_ready,
    list_scopes,
    node,
    parallel,
)
from tests.support.runs import Run

REFUSED = Raised("test.refused", "no", is_retryable=False)


def check_bound(run: Run) -> None:
    """Every body that runs has one live step, and no container has more of them than it may."""
    running = [scope for scope in run.family.scopes.values() if scope.status is ScopeStatus.RUNNING]
    steps = run.family.steps
    for container, count in Counter(scope.step_run_id for scope in running).items():
        counters = Counters.from_json(steps[container].counters or {})
        assert count <= (1 if counters.is_decided else counters.concurrency)
    places = [None, *(scope.id for scope in running)] if not run.instance.is_ended else []
    assert Counter(step.scope_id for step in run.live) == Counter(places)


def settle(run: Run, step: StepRun, *, fails: bool = False) -> None:
    """Claim a step, and record what its handler comes to if one runs."""
    run.claim(step)
    check_bound(run)
    if run.last.claimed:
        held = run.family.steps[run.get_grant().step.id]
        run.finish(REFUSED if fails else handlers.run(run.get_grant()), step=held)
        check_bound(run)


LEAF = body(node("w"), node("x"))


@st.composite
def shapes(draw: st.DrawFn, depth: int = 0) -> JsonObject:
    """A container whose bodies hold a container in turn, down to two steps."""
    name = f"c{depth}"
    inner = body(node(f"before{depth}"), draw(shapes(depth + 1))) if depth < 2 and draw(st.booleans()) else LEAF
    kind = draw(st.sampled_from(["all", "quorum", "parallel", "scope"]))
    if kind == "parallel":
        return parallel(name, a=inner, b=body(node(f"other{depth}")))
    if kind == "scope":
        return node(name, "scope", body=inner)
    count = draw(st.integers(1, 4))
    how: dict[str, Any] = {} if kind == "all" else {"mode": "quorum", "quorum": draw(st.integers(1, count))}
    reducer: JsonObject = {"type": "test.ok", "config": {"value": 1}}
    how |= {"reducer": reducer} if draw(st.booleans()) else {}
    return for_each(list(range(count)), inner, name, concurrency=draw(st.integers(1, 2)), **how)


@given(shapes(), st.data())
@settings(max_examples=60, deadline=None)
def test_no_more_bodies_live_than_may_and_all_end(shape: JsonObject, data: st.DataObject) -> None:
    run = Run(document(shape))
    fails = data.draw(st.lists(st.booleans(), max_size=12))
    check_bound(run)
    while get_status(run) is not InstanceStatus.COMPLETED:
        if get_status(run) is InstanceStatus.FAILED:
            run.tell(RetryAsked())
            check_bound(run)
        ready = list_ready(run)
        place = data.draw(st.integers(0, len(ready) - 1))
        settle(run, ready[place], fails=bool(fails) and fails.pop())
    for scope in list_scopes(run):
        done = [step.node_id for step in run.family.steps.values() if is_done(step) and step.scope_id == scope.id]
        assert len(set(done)) == len(done), "what has succeeded isn't run again"
        assert scope.halted_step_run_id is None or scope.status is ScopeStatus.CANCELLED


def is_done(step: StepRun) -> bool:
    return step.status is StepStatus.COMPLETED


def fail_many(count: int, failing: int, concurrency: int) -> Run:
    """A run of a quorum that so many bodies have failed."""
    run = Run(
        document(
            for_each(list(range(count)), LEAF, mode="quorum", quorum=count - failing + 1, concurrency=concurrency),
        )
    )
    while get_status(run) is not InstanceStatus.FAILED:
        step = list_ready(run)[0]
        settle(run, step, fails=step.node_id == "x")
    assert sum(scope.status is ScopeStatus.FAILED for scope in list_scopes(run)) == failing
    return run


def test_what_failed_waits_for_its_turn() -> None:
    run = fail_many(80, 60, 5)
    keys = {step.scope_id: step.idempotency_key for step in run.list_steps("x")}
    run.tell(RetryAsked())
    assert [step.node_id for step in run.live] == ["each"]
    assert {scope.status for scope in list_scopes(run)} == {ScopeStatus.PENDING}
    while ready := list_ready(run):
        settle(run, ready[-1])
    assert get_status(run) is InstanceStatus.COMPLETED
    again = [step for step in run.list_steps("x") if step.attempt == 2]
    assert 21 <= len(again) <= 25
    assert all(step.idempotency_key == keys[step.scope_id] for step in again)


def test_a_second_retry_finds_where_they_stood_who_never_came_to_their_turn() -> None:
    run = fail_many(80, 60, 2)
    run.tell(RetryAsked())
    run.claim(find(run, "each"))
    first = list_ready(run)[0]
    fails = 0
    while get_status(run) is not InstanceStatus.FAILED:
        settle(run, first, fails=True)
        fails += 1
        first = next(iter(list_ready(run)), first)
    assert fails == 60
    run.tell(RetryAsked())
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    done = [step.scope_id for step in run.list_steps("w") if is_done(step)]
    assert len(set(done)) == len(done)


def test_what_a_body_had_written_and_read_stands_when_its_turn_comes() -> None:
    inner = body(
        node("w", value={"ref": "item"}, save={"key": "w"}),
        node("x", value=[{"ref": "state.w.value"}, {"ref": "steps.w.output.value"}]),
    )
    run = Run(document(for_each(["a", "b", "c"], inner, mode="quorum", quorum=3, concurrency=3, save={"key": "r"})))
    for index in range(3):
        settle(run, find(run, "w", index))
    settle(run, find(run, "x", 0), fails=True)
    run.tell(RetryAsked())
    drain(run)
    results: Any = run.instance.state["r"]
    assert [row["output"]["value"] for row in results["results"]] == [["a", "a"], ["b", "b"], ["c", "c"]]


def test_a_pause_holds_those_that_wait_for_their_turn() -> None:
    run = fail_many(8, 4, 2)
    run.tell(RetryAsked())
    run.tell(PauseAsked())
    assert not list_ready(run)
    run.tell(ResumeAsked())
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED


def test_a_cancel_ends_those_that_wait_for_their_turn() -> None:
    run = fail_many(8, 4, 2)
    run.tell(RetryAsked())
    run.tell(CancelAsked())
    assert {scope.status for scope in list_scopes(run)} == {ScopeStatus.CANCELLED}
    assert not run.live


def test_a_reducer_whose_result_was_too_large_runs_anew() -> None:
    reducer: JsonObject = {"type": "test.ok", "config": {"value": {"ref": "item.total"}}}
    run = Run(document(for_each([1, 2], body(node("x")), reducer=reducer)))
    settle(run, find(run, "x", 0))
    settle(run, find(run, "x", 1))
    run.claim(find(run, "each_reducer"))
    run.finish(Complete("next", {"x": "x" * (3 << 20)}), step=find(run, "each_reducer"))
    assert run.instance.failure_code == "invalid_output"
    run.tell(RetryAsked())
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert [step.status for step in run.list_steps("each_reducer")] == [StepStatus.COMPLETED] * 2
