"""A for_each with a reducer: one step over what the items came to, T-FE-6."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.containers import MOST
from korak.core.facts import CancelAsked, Raised, RetryAsked
from korak.core.snapshot import Policy
from korak.graphs.validation import validate
from korak.model import InstanceStatus, JsonObject, ScopeStatus, StepStatus
from korak.steps.results import Complete
from tests.support.bodies import body, document, drain, find, for_each, get_state, get_status, list_scopes, node, work
from tests.support.plans import registry
from tests.support.runs import Run

ITEM = body(node("x", value={"ref": "item"}))
REDUCER: JsonObject = {"type": "test.ok", "config": {"value": {"ref": "item.succeeded"}}}
REFUSED = Raised("test.refused", "no", is_retryable=False)


def reduced(items: Any, /, after: tuple[JsonObject, ...] = (), **members: Any) -> JsonObject:
    members.setdefault("reducer", REDUCER)
    return document(for_each(items, ITEM, save={"key": "r"}, **members), *after)


@pytest.mark.parametrize("inline", [False, True])
@pytest.mark.parametrize("count", [0, 1, 3, 60])
def test_it_runs_once_and_what_it_returns_goes_over_the_results(count: int, *, inline: bool) -> None:
    run = Run(reduced([*range(count)]))
    drain(run, inline=inline)
    assert len(run.list_steps("each_reducer")) == 1
    result = get_state(run)["r"]
    assert (result["total"], result["value"], len(result["results"])) == (count, count, count)
    assert get_status(run) is InstanceStatus.COMPLETED


def test_its_jump_is_honoured() -> None:
    middle, late = node("middle"), node("late")
    run = Run(reduced([1], after=(middle, late), jumps=["late"]))
    work(run, find(run, "x"))
    step = find(run, "each_reducer")
    run.claim(step)
    run.finish(Complete("next", {"_next_step": "late", "sum": 7}), step=find(run, "each_reducer"))
    drain(run)
    assert (run.list_steps("middle"), len(run.list_steps("late"))) == ([], 1)
    assert get_state(run)["r"]["sum"] == 7


def test_what_it_fails_with_is_what_the_for_each_fails_with_and_a_retry_runs_it_alone() -> None:
    run = Run(reduced(["a", "b", "c"], mode="quorum", quorum=2))
    for index in (1, 0):
        work(run, find(run, "x", index))
    run.claim(find(run, "each"))
    run.finish(REFUSED, step=find(run, "each_reducer"))
    assert (run.instance.failure_code, run.instance.failed_node_id) == ("test.refused", "each")
    run.tell(RetryAsked())
    drain(run)
    assert get_status(run) is InstanceStatus.COMPLETED
    assert [step.status for step in run.list_steps("each_reducer")] == [StepStatus.FAILED, StepStatus.COMPLETED]
    assert len(run.list_steps("x")) == 3
    assert get_state(run)["r"]["value"] == 2


def test_items_that_still_run_are_cancelled_before_it_begins() -> None:
    run = Run(reduced([1, 2], mode="first_success"))
    run.claim(find(run, "x", 1))
    work(run, find(run, "x", 0))
    assert [scope.status for scope in list_scopes(run)] == [ScopeStatus.COMPLETED, ScopeStatus.CANCELLED]
    drain(run)
    assert get_state(run)["r"]["winner"] == 0
    assert get_state(run)["r"]["value"] == 1


def test_a_cancel_reaches_it() -> None:
    run = Run(reduced([1]))
    work(run, find(run, "x"))
    run.claim(find(run, "each_reducer"))
    run.tell(CancelAsked())
    assert get_status(run) is InstanceStatus.CANCELLED
    assert list_scopes(run)[-1].status is ScopeStatus.CANCELLED


def test_more_results_than_an_output_may_have_fail_with_both_numbers() -> None:
    """What is too large is told with the bound; nothing of it is kept."""
    large = "x" * (60 << 10)
    run = Run(document(for_each({"ref": "input.items"}, ITEM)), policy=Policy(), given={"items": [large] * 40})
    drain(run)
    assert run.instance.failure_code == "invalid_output"
    assert f"{MOST} at most" in str(run.instance.failure_params)


@pytest.mark.parametrize(
    ("reducer", "code", "pointer"),
    [
        ({"type": "test.missing"}, "unknown_type", "/nodes/1/config/reducer/type"),
        ({"config": {}}, "invalid_config", "/nodes/1/config/reducer/type"),
        ({"type": "test.ok", "config": {"value": {"ref": "inptu.x"}}}, "invalid_config", "/nodes/1/config/reducer"),
    ],
)
def test_what_is_wrong_with_it_is_told_at_publish(reducer: JsonObject, code: str, pointer: str) -> None:
    issues = validate(reduced([1], reducer=reducer), registry()).issues
    assert any(issue.pointer.startswith(pointer) for issue in issues), [(one.code, one.pointer) for one in issues]
    assert code in {issue.code for issue in issues} or pointer == "/nodes/1/config/reducer"
