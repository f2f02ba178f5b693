"""Limits, each at its number and one over, and what the message names (LM-1, LM-7 to LM-9, LM-11)."""

from __future__ import annotations

import pytest

from korak.codes import render
from korak.core.snapshot import Policy
from korak.graphs.builder import graph, ref
from korak.model import FailureCategory, InstanceStatus, JsonObject
from korak.steps.results import Complete
from tests.support.plans import line
from tests.support.runs import Run


def limited(**limits: int) -> Policy:
    return Policy(limits={**Policy().limits, **limits})


def finish_line(policy: Policy, settings: JsonObject | None = None) -> Run:
    """Two steps and the end: three visits, two transitions; where the first one fails it is one step less."""
    built = line(("a", "test.ok", {}), ("b", "test.ok", {})).edge("a", "done", "error")
    run = Run(built.settings(limits=settings) if settings else built, policy=policy)
    while run.instance.ended_at is None:
        run.work()
    return run


@pytest.mark.parametrize(
    ("name", "enough", "code"),
    [("max_steps", 3, "step_limit_exceeded"), ("max_transitions", 2, "budget_transitions")],
)
def test_lm_1_9_a_limit_holds_at_its_number_and_fails_one_over(name: str, enough: int, code: str) -> None:
    assert finish_line(limited(**{name: enough})).instance.status is InstanceStatus.COMPLETED
    instance = finish_line(limited(**{name: enough - 1})).instance
    assert (instance.status, instance.failure_code) == (InstanceStatus.FAILED, code)
    assert instance.failure_category is FailureCategory.LIMIT
    message = render(code, instance.failure_params)
    assert f"limits.{name} is {enough - 1}" in message


@pytest.mark.parametrize(("given", "completes"), [(3, True), (2, False), (150, False)])
def test_lm_1_a_definition_only_lowers_the_limit(given: int, completes: bool) -> None:
    run = finish_line(limited(max_steps=2 if given == 150 else 50), {"max_steps": given})
    assert (run.instance.status is InstanceStatus.COMPLETED) is completes


def test_lm_11_attempts_do_not_count_as_steps() -> None:
    run = Run(line(("a", "test.flaky", {"times": 2})), policy=limited(max_steps=2))
    for _ in range(3):
        run.work()
        run.pass_time(1_000)
    assert (run.instance.status, run.instance.steps_count) == (InstanceStatus.COMPLETED, 2)


@pytest.mark.parametrize(("size", "completes"), [(20, True), (19, False)])
def test_the_state_is_bounded_for_what_a_step_saves(size: int, completes: bool) -> None:
    built = graph("s").trigger("manual").node("done", "end").node("a", "test.ok").save()
    run = Run(built.edge("start", "a").edge("a", "done"), policy=limited(max_state_bytes=size))
    run.claim()
    run.finish(Complete(output={"x": "y" * 12}))
    check_state(run, completes, size)


@pytest.mark.parametrize(("size", "completes"), [(20, True), (19, False)])
def test_the_state_is_bounded_for_what_set_field_writes(size: int, completes: bool) -> None:
    config: JsonObject = {"field": "state.x", "value": ref("input.x")}
    run = Run(line(("s", "set_field", config)), given={"x": "y" * 12}, policy=limited(max_state_bytes=size))
    check_state(run, completes, size)
    assert run.instance.state == ({"x": "y" * 12} if completes else {})


def check_state(run: Run, completes: bool, size: int) -> None:
    if completes:
        assert run.instance.status is InstanceStatus.COMPLETED
    else:
        assert run.instance.failure_code == "budget_state_bytes"
        assert f"limits.max_state_bytes is {size}" in render("budget_state_bytes", run.instance.failure_params)


@pytest.mark.parametrize(("limit", "completes"), [(6, True), (5, False)])
def test_a_result_is_bounded_like_the_state(limit: int, completes: bool) -> None:
    built = graph("s").trigger("manual").node("done", "end", result=ref("input.text")).edge("start", "done")
    run = Run(built, given={"text": "four"}, policy=limited(max_state_bytes=limit))
    assert (run.instance.status is InstanceStatus.COMPLETED) is completes
    assert completes or (run.instance.failure_code, run.instance.failure_params) == (
        "invalid_output",
        {"pointer": "/result", "detail": "it is 6 bytes, 5 at most"},
    )


def test_a_value_that_would_come_to_gigabytes_fails_its_step() -> None:
    text = {"template": "${input.text}" * 3_000}
    built = graph("s").trigger("manual").node("a", "test.ok", said=text).node("done", "end")
    run = Run(built.edge("start", "a").edge("a", "done"), given={"text": "x" * 1_000_000})
    run.claim()
    assert (run.instance.status, run.instance.failure_code) == (InstanceStatus.FAILED, "value_too_large")
