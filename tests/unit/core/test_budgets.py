"""What a run may spend, and what leaves its state by itself (T-GUARD-3, 7 and 9, T-PRUNE-1 to T-PRUNE-4)."""

from __future__ import annotations

from typing import Any

import pytest

from korak.codes import render
from korak.core.snapshot import Policy
from korak.graphs.builder import graph
from korak.model import EventType, FailureCategory, InstanceStatus, Json, JsonObject
from korak.steps.results import Complete
from tests.support.bodies import body, document, drain, find, for_each, get_state, get_status, node, parallel
from tests.support.plans import line
from tests.support.runs import Run

COMPLETED, FAILED = InstanceStatus.COMPLETED, InstanceStatus.FAILED

COST = "/settings/limits/max_cost_units"
TRANSITIONS = "/settings/limits/max_transitions"


def fails_with(run: Run, code: str) -> Any:
    """The params of the one failure that ended the run."""
    instance = run.instance
    assert (instance.status, instance.failure_code) == (FAILED, code)
    assert instance.failure_category is FailureCategory.LIMIT
    assert "{" not in render(code, instance.failure_params)
    return instance.failure_params


def save(name: str, key: str | None = None, **members: Any) -> JsonObject:
    """A node that saves its output."""
    return node(name, save={"merge": True} if key is None else {"key": key}, **members)


@pytest.mark.parametrize(("limit", "completes"), [(4, True), (3, False)])
def test_t_guard_9_the_costs_of_completed_steps_are_added_up(limit: int, completes: bool) -> None:
    run = Run(document(save("a", "a", cost=2), save("b", "b", cost=2), limits={"max_cost_units": limit}))
    drain(run)
    if completes:
        assert get_status(run) is COMPLETED
    else:
        assert fails_with(run, "budget_cost") == {"pointer": COST, "limit": 3, "actual": 4}
        assert list(get_state(run)) == ["a"]
        assert run.instance.failed_node_id == "b"


def test_t_guard_7_what_breaks_a_limit_is_tried_once_and_follows_no_exit() -> None:
    retried = save("a", "a", cost=2, retry={"max_attempts": 5})
    edges = [("start", "next", "a"), ("a", "next", "b"), ("a", "error", "b"), ("b", "next", "done")]
    run = Run(document(retried, node("b"), edges=edges, limits={"max_cost_units": 1}))
    drain(run)
    fails_with(run, "budget_cost")
    assert [step.attempt for step in run.list_steps("a")] == [1]
    assert run.list_steps("b") == []
    assert len(run.family.failures) == 1
    assert get_state(run) == {}


@pytest.mark.parametrize(("limit", "completes"), [(2, True), (1, False)])
def test_what_counts_with_the_step_before_it_is_no_transition(limit: int, completes: bool) -> None:
    run = Run(document(save("a", "a"), save("b", "b", counts=False), save("c", "c"), limits={"max_transitions": limit}))
    drain(run)
    if completes:
        assert (get_status(run), run.instance.transitions_count) == (COMPLETED, 2)
    else:
        assert fails_with(run, "budget_transitions") == {"pointer": TRANSITIONS, "limit": 1, "actual": 2}
        assert sorted(get_state(run)) == ["a", "b"]


def test_what_counts_with_the_step_before_it_is_pruned_with_it() -> None:
    run = Run(document(save("a", "a"), save("b", "b", counts=False), save("c", "c"), prune_state_after=1))
    run.work()
    run.work()
    assert sorted(get_state(run)) == ["a", "b"]
    drain(run)
    assert list(get_state(run)) == ["c"]


def test_every_branch_and_item_costs_and_what_is_decided_without_a_handler_does_not() -> None:
    items = for_each([1, 2, 3], body(node("x")))
    both = parallel(a=body(node("y", cost=0)), b=body(node("z", cost=5)))
    run = Run(document(items, both, node("w", "wait", signal="go"), limits={"max_cost_units": 8}))
    drain(run)
    assert get_status(run) is InstanceStatus.WAITING
    assert run.instance.walk is not None
    assert run.instance.walk["units"] == {"count": 8}


def test_a_failed_attempt_costs_nothing() -> None:
    run = Run(document(node("a", "test.flaky", times=2), limits={"max_cost_units": 1}))
    for _ in range(3):
        run.work()
        run.pass_time(1_000)
    assert get_status(run) is COMPLETED


@pytest.mark.parametrize("mode", ["all", "first_success"])
def test_a_budget_that_an_item_breaks_ends_the_run_whatever_the_others_do(mode: str) -> None:
    items = for_each([1, 2, 3], body(node("x", cost=2)), mode=mode, concurrency=1)
    edges = [("start", "next", "each"), ("each", "next", "done"), ("each", "error", "done")]
    run = Run(document(items, edges=edges, limits={"max_cost_units": 1}))
    drain(run)
    assert fails_with(run, "budget_cost") == {"pointer": COST, "limit": 1, "actual": 2, "node": "x", "branch": "0"}
    assert len(run.list_steps("x")) == 1


def test_nobody_pays_for_counting_without_a_limit() -> None:
    run = Run(line(("a", "test.ok", {})))
    run.work()
    assert run.instance.walk is None


def test_the_engine_may_have_a_ceiling_that_a_definition_only_lowers() -> None:
    policy = Policy(limits={**Policy().limits, "max_cost_units": 1})
    for given in ({}, {"max_cost_units": 9}):
        run = Run(document(node("a"), node("b"), limits=given), policy=policy)
        drain(run)
        assert fails_with(run, "budget_cost")["limit"] == 1


def test_the_branches_of_a_parallel_are_no_items() -> None:
    both = parallel(a=body(node("x")), b=body(node("y")))
    run = Run(document(both, limits={"max_for_each_items": 1}))
    drain(run)
    assert get_status(run) is COMPLETED


def pruned(*nodes: JsonObject, keep: int, given: JsonObject | None = None, **settings: Any) -> Run:
    """A run that has pruned for as long as it went on by itself."""
    run = Run(document(*nodes, prune_state_after=keep, **settings), given=given)
    drain(run)
    return run


def list_states(run: Run) -> list[list[str]]:
    """The keys of the state after each completed step, by what history tells of it."""
    state: dict[str, Json] = {}
    seen: list[list[str]] = []
    for event in run.list_events(EventType.STEP_COMPLETED):
        told: Any = event.data
        assert event.step_run_id is not None
        step = run.family.steps[event.step_run_id]
        state = {**state, **(told.get("wrote") or {})}
        if run.plan.nodes[step.node_id].save:
            state[step.node_id] = step.output
        state = {key: value for key, value in state.items() if key not in told.get("removed", ())}
        seen.append(sorted(state))
    return seen


def test_t_prune_1_what_older_steps_returned_leaves_the_state() -> None:
    run = pruned(*(save(name, name) for name in "abcde"), keep=2)
    assert list_states(run)[:5] == [["a"], ["a", "b"], ["b", "c"], ["c", "d"], ["d", "e"]]
    assert sorted(get_state(run)) == ["d", "e"]


def test_t_prune_2_without_it_everything_stays() -> None:
    run = Run(document(*(save(name, name) for name in "abcde")))
    drain(run)
    assert (sorted(get_state(run)), run.instance.walk) == (list("abcde"), None)


def test_t_prune_3_what_set_field_put_there_stays_and_bookkeeping_is_no_part_of_the_state() -> None:
    begin = node("begin", "set_field", field="state", value={"ref": "input"})
    run = pruned(begin, save("a", "a"), save("b", "b"), keep=1, given={"order": 1})
    assert sorted(get_state(run)) == ["b", "order"]


def test_a_key_of_the_start_that_a_step_overwrote_is_pruned_with_that_step() -> None:
    begin = node("begin", "set_field", field="state", value={"ref": "input"})
    run = pruned(begin, save("a", "order"), save("b", "b"), save("c", "c"), keep=2, given={"order": 1})
    assert sorted(get_state(run)) == ["b", "c"]


def test_t_prune_4_a_key_counts_as_its_newest_writers() -> None:
    run = pruned(save("a", "cursor"), save("b", "b"), save("c", "c"), save("d", "cursor"), keep=2)
    assert sorted(get_state(run)) == ["c", "cursor"]
    run = pruned(save("a", "cursor"), save("b", "cursor"), save("c", "c"), keep=2)
    assert sorted(get_state(run)) == ["c", "cursor"]


def test_a_key_that_set_field_rewrote_is_the_authors() -> None:
    mine = node("mine", "set_field", field="state.a", value=1)
    run = pruned(save("a", "a"), mine, save("b", "b"), save("c", "c"), save("d", "d"), keep=1)
    assert get_state(run)["a"] == 1
    assert sorted(get_state(run)) == ["a", "d"]


def test_all_branches_keys_are_their_containers() -> None:
    both = parallel(a=body(save("x", "x")), b=body(save("y", "y")))
    assert sorted(get_state(pruned(both, save("c", "c"), keep=2))) == ["c", "x", "y"]
    assert sorted(get_state(pruned(both, save("c", "c"), save("d", "d"), keep=2))) == ["c", "d"]


def test_the_state_is_measured_after_pruning() -> None:
    nodes = [save(name, name, value="x" * 40) for name in "abcd"]
    assert get_status(pruned(*nodes, keep=1, limits={"max_state_bytes": 100})) is COMPLETED
    run = Run(document(*nodes, limits={"max_state_bytes": 100}))
    drain(run)
    told = fails_with(run, "budget_state_bytes")
    assert (told["limit"], told["pointer"]) == (100, "/b")


def test_rounds_are_counted_by_visit() -> None:
    looped = node("again", "loop", over={"literal": [1, 2, 3]}, max_iterations=9)
    edges = [
        ("start", "next", "a"),
        ("a", "next", "again"),
        ("again", "body", "a"),
        ("again", "done", "b"),
        ("b", "next", "done"),
    ]
    run = Run(document(save("a", "a"), looped, save("b", "b"), edges=edges, prune_state_after=2))
    drain(run)
    assert sorted(get_state(run)) == ["b"]
    assert find_visit(run, "a") == 4


def find_visit(run: Run, name: str) -> int:
    return max(step.visit for step in run.list_steps(name))


def test_an_output_over_a_limit_is_in_no_history_of_the_state() -> None:
    built = graph("g").trigger("manual").node("a", "test.ok").save("a").cost(2).node("done", "end")
    run = Run(built.edge("start", "a").edge("a", "done").settings(limits={"max_cost_units": 1}))
    run.claim()
    run.finish(Complete(output={"value": 1}), step=find(run, "a"))
    assert run.list_events(EventType.STEP_COMPLETED) == []
