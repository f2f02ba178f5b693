"""A body for each item: modes, order, paging, concurrency, and retries of what failed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from korak.core.facts import CancelAsked, Delivered, PauseAsked, Raised, ResumeAsked, RetryAsked
from korak.core.snapshot import Policy
from korak.graphs.builder import ref
from korak.graphs.validation import validate
from korak.model import DeliveryKind, InstanceStatus, JsonObject, ScopeStatus, StepStatus
from tests.support import handlers
from tests.support.bodies import (
    body,
    document,
    drain,
    find,
    for_each,
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
ITEM = body(node("x", value={"ref": "item"}))


def gather(items: Any, inner: JsonObject = ITEM, /, **members: Any) -> JsonObject:
    return document(for_each(items, inner, save={"key": "r"}, **members))


def settle(run: Run, index: int, *, fails: bool = False) -> None:
    step = find(run, "x", index)
    if not fails:
        work(run, step)
        return
    run.claim(step)
    run.finish(REFUSED, step=find(run, "x", index))


def test_a_failure_names_the_step_and_the_item_that_it_came_from() -> None:
    """However many containers lie around it: one of ten thousand items is found by its branch."""
    inner = for_each({"ref": "item"}, ITEM, "inner")
    run = Run(document(parallel(a=body(node("y")), b=body(for_each([["p"], ["q", "r"]], body(inner), "outer")))))
    settle(run, 1, fails=True)
    assert (run.instance.failure_code, run.instance.failed_node_id) == ("test.refused", "both")
    assert run.instance.failure_params == {"node": "x", "branch": "b/1/1"}


def test_a_container_that_could_not_begin_is_itself_what_failed() -> None:
    run = Run(document(for_each([["p"], 5], body(for_each({"ref": "item"}, ITEM, "inner")), "outer")))
    told = run.instance.failure_params or {}
    assert (run.instance.failure_code, told["pointer"]) == ("invalid_input", "/items")
    assert (told["node"], told["branch"]) == ("inner", "1")


def test_results_are_in_the_order_of_the_items() -> None:
    """T-FE-1."""
    run = Run(gather(["a", "b", "c"]))
    for index in (2, 0, 1):
        settle(run, index)
    result: Any = get_state(run)["r"]
    assert (result["total"], result["succeeded"], result["settled"], result["winner"]) == (3, 3, 3, 2)
    assert [(row["index"], row["item"], row["output"]["value"]) for row in result["results"]] == [
        (0, "a", "a"),
        (1, "b", "b"),
        (2, "c", "c"),
    ]


def test_the_first_success_settles_and_late_ones_change_nothing() -> None:
    """T-FE-2."""
    run = Run(gather([1, 2], mode="first_success"))
    run.claim(find(run, "x", 1))
    late = find(run, "x", 1)
    settle(run, 0)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert run.finish(REFUSED, step=late).dropped == "stale_token"
    assert get_state(run)["r"]["winner"] == 0
    assert [scope.status for scope in list_scopes(run)] == [ScopeStatus.COMPLETED, ScopeStatus.CANCELLED]


def test_a_quorum_is_met_in_spite_of_a_failure() -> None:
    """T-FE-3."""
    run = Run(gather([1, 2, 3], mode="quorum", quorum=2))
    settle(run, 1, fails=True)
    settle(run, 2)
    settle(run, 0)
    result: Any = get_state(run)["r"]
    assert (result["failed"], result["succeeded"], result["quorum"]) == (1, 2, 2)
    assert result["failures"][0]["error"]["code"] == "test.refused"
    assert (result["failures"][0]["index"], result["failures"][0]["item"]) == (1, 2)


def test_a_quorum_that_cannot_be_met_fails_at_once() -> None:
    """T-FE-4."""
    run = Run(gather([1, 2, 3], mode="quorum", quorum=3))
    settle(run, 1, fails=True)
    assert (run.instance.status, run.instance.failure_code) == (InstanceStatus.FAILED, "quorum_unreachable")
    assert run.instance.failure_params == {"pointer": "/quorum", "needed": 3, "total": 3, "failed": 1}


def test_a_retry_runs_only_the_item_that_failed() -> None:
    """T-FE-5."""
    run = Run(gather(["a", "b", "c"]))
    settle(run, 0)
    settle(run, 2)
    settle(run, 1, fails=True)
    assert run.instance.failure_code == "test.refused"
    run.tell(RetryAsked())
    drain(run)
    result: Any = get_state(run)["r"]
    assert (result["succeeded"], result["failed"], result["total"]) == (3, 0, 3)
    assert len(run.list_steps("x")) == 4
    assert len({scope.finish_order for scope in list_scopes(run)}) == 3


@pytest.mark.parametrize("mode", ["first_success", "quorum"])
def test_no_items_satisfy_only_all(mode: str) -> None:
    """T-FE-7."""
    run = Run(gather({"literal": []}))
    assert get_state(run)["r"]["total"] == 0
    assert get_status(run) is InstanceStatus.COMPLETED
    run = Run(gather(ref("input.items", []), mode=mode, **({"quorum": 1} if mode == "quorum" else {})))
    assert run.instance.failure_code == "quorum_unreachable"


def test_a_second_visit_expands_the_new_list() -> None:
    """T-FE-8; defect 3 of the reference."""
    edges = (("start", "next", "l"), ("l", "body", "each"), ("each", "next", "l"), ("l", "done", "done"))
    each = for_each({"ref": "loops.l.item"}, ITEM, save={"key": "r"})
    loop = node("l", "loop", over={"literal": [[1, 2, 3], [4]]}, max_iterations=5)
    run = Run(document(loop, each, edges=edges))
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert [row["item"] for row in get_state(run)["r"]["results"]] == [4]


def test_a_list_that_is_none_fails_the_step() -> None:
    run = Run(document(node("first", value=7, save={"key": "s"}), for_each({"ref": "state.s.value"}, ITEM)))
    drain(run)
    assert (run.instance.failure_code, run.instance.failed_node_id) == ("invalid_input", "each")
    assert (run.instance.failure_params or {})["pointer"] == "/items"
    assert get_state(run)["s"]["value"] == 7


def test_more_items_than_the_limit_fail_the_step_and_keep_the_planner() -> None:
    """Defect 19 of the reference."""
    run = Run(gather([1, 2, 3]), policy=Policy(limits={**Policy().limits, "max_for_each_items": 2}))
    assert run.instance.failure_code == "budget_items"
    assert run.instance.failure_params == {"pointer": "/items", "limit": 2, "actual": 3}
    run.memory.policy = Policy()
    run.tell(RetryAsked())
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED


def test_a_quorum_above_the_number_of_items_fails_at_once() -> None:
    run = Run(gather(ref("input.items", [1, 2]), mode="quorum", quorum=3))
    assert run.instance.failure_code == "quorum_unreachable"
    assert run.instance.failure_params == {"pointer": "/quorum", "needed": 3, "total": 2, "failed": 0}


def test_no_more_than_the_concurrency_run_and_the_rest_have_rows() -> None:
    run = Run(gather([1, 2, 3, 4, 5], concurrency=2))
    assert [scope.status for scope in list_scopes(run)].count(ScopeStatus.PENDING) == 3
    assert len(list_ready(run)) == 2
    settle(run, 1)
    assert sorted(step.scope_id is not None for step in list_ready(run)) == [True, True]
    drain(run)
    assert [row["item"] for row in get_state(run)["r"]["results"]] == [1, 2, 3, 4, 5]


def test_an_item_goes_on_where_the_one_before_it_was_recorded() -> None:
    run = Run(gather([1, 2, 3], concurrency=1))
    run.claim(list_ready(run)[0])
    run.finish(handlers.run(run.get_grant()), inline=True, step=find(run, "x"))
    assert run.get_grant().step.scope_id == list_scopes(run)[1].id
    assert run.last.new_steps[0].status is StepStatus.RUNNING


@pytest.mark.parametrize("count", [1, 2, 51, 500, 501])
@pytest.mark.parametrize("concurrency", [None, 3])
def test_any_number_of_items_comes_through(count: int, concurrency: int | None) -> None:
    """Expansion is by pages, and what is merged at the end is all of it, in order."""
    members: dict[str, Any] = {} if concurrency is None else {"concurrency": concurrency}
    run = Run(gather(list(range(count)), **members))
    assert len(run.family.scopes) == min(count, 500)
    random = Random(count)
    while ready := list_ready(run):
        step = random.choice(ready)
        if step.node_type == "for_each":
            run.claim(step)
        else:
            run.tell_quickly(step)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert [row["item"] for row in get_state(run)["r"]["results"]] == list(range(count))


def test_pause_and_resume_between_pages() -> None:
    run = Run(gather(list(range(600))))
    run.tell(PauseAsked())
    assert not list_ready(run)
    run.tell(ResumeAsked())
    while ready := list_ready(run):
        run.claim(ready[0]) if ready[0].node_type == "for_each" else run.tell_quickly(ready[0])
    assert get_status(run) is InstanceStatus.COMPLETED


def test_a_cancel_ends_what_has_a_token_and_what_has_none() -> None:
    run = Run(gather(list(range(60)), concurrency=3))
    run.tell(CancelAsked())
    assert {scope.status for scope in list_scopes(run)} == {ScopeStatus.CANCELLED}
    assert not run.live


def test_a_retry_starts_what_never_began() -> None:
    run = Run(gather(list(range(60)), concurrency=2))
    settle(run, 0)
    settle(run, 1, fails=True)
    assert get_status(run) is InstanceStatus.FAILED
    run.tell(RetryAsked())
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert get_state(run)["r"]["succeeded"] == 60


def test_items_and_loops_are_read_inside() -> None:
    reading = node("x", value=[{"ref": "item"}, {"ref": "index"}, {"ref": "loops.outer.index"}])
    inner = for_each({"ref": "item.rows"}, body(reading), "inner")
    run = Run(document(for_each([{"rows": ["a", "b"]}, {"rows": ["c"]}], body(inner), "outer", save={"key": "r"})))
    drain(run)
    found = [[row["output"]["value"] for row in outer["output"]["results"]] for outer in get_state(run)["r"]["results"]]
    assert found == [[["a", 0, 0], ["b", 1, 0]], [["c", 0, 1]]]


def test_a_body_writes_for_itself_alone() -> None:
    inner = body(node("x", value={"ref": "item"}, save={"key": "mine"}), node("y", value={"ref": "state.mine.value"}))
    run = Run(gather([1, 2], inner))
    drain(run)
    assert "mine" not in run.instance.state
    assert [row["output"]["value"] for row in get_state(run)["r"]["results"]] == [1, 2]


def test_items_of_a_container_in_a_branch() -> None:
    run = Run(document(parallel(save={"key": "p"}, a=body(for_each([1, 2], ITEM)), b=body(node("y")))))
    drain(run)
    assert get_state(run)["p"]["a"]["succeeded"] == 2


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"mode": "quorum"}, "invalid_config"),
        ({"quorum": 2}, "invalid_config"),
        ({"mode": "most"}, "invalid_config"),
        ({"mode": {"ref": "input.mode"}}, "invalid_config"),
        ({"concurrency": 0}, "invalid_config"),
    ],
)
def test_what_is_wrong_with_a_for_each_is_told_at_publish(members: dict[str, Any], code: str) -> None:
    issues = validate(gather([1], **members), registry()).issues
    assert code in {issue.code for issue in issues}
    assert all(issue.pointer.startswith("/nodes/1/config") for issue in issues)


def test_items_that_are_no_list_are_told_at_publish() -> None:
    [issue] = validate(gather("abc"), registry()).issues
    assert (issue.code, issue.pointer) == ("invalid_config", "/nodes/1/config/items")


def hear_two(**members: Any) -> Run:
    """Two bodies wait, and two signals are looked at in one decision."""
    inner = body(node("hear", "wait", signal="go", timeout=60), node("x"), edges=[("hear", "timed_out", "x")])
    run = Run(gather([1, 2], inner, **members))
    run.send(DeliveryKind.SIGNAL, "go", 1)
    run.send(DeliveryKind.SIGNAL, "go", 2)
    run.tell(Delivered())
    return run


def test_a_body_that_settles_its_container_leaves_the_next_signal_to_others() -> None:
    """T-FE-2: what comes after the first success, be it in the same decision, changes nothing."""
    run = hear_two(mode="first_success")
    assert run.instance.status is InstanceStatus.COMPLETED
    assert [scope.status for scope in list_scopes(run)] == [ScopeStatus.COMPLETED, ScopeStatus.CANCELLED]
    result: Any = get_state(run)["r"]
    assert (result["succeeded"], result["settled"], len(result["results"])) == (1, 1, 1)
    [row] = [row for row in run.family.signals.values() if row.taken_at is None]
    assert row.payload == 2


def test_all_bodies_that_end_in_one_decision_are_counted() -> None:
    run = hear_two()
    assert [scope.finish_order for scope in list_scopes(run)] == [0, 1]
    assert run.instance.status is InstanceStatus.COMPLETED
