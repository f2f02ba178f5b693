"""The step contract: defaults, results and what the rest of Korak is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from korak.errors import StepFailed
from korak.graphs.contracts import OutcomeSpec, RetryPolicy
from korak.model import JsonObject, SignalKind
from korak.steps.contract import Complete, Fail, Outcome, Retry, Signal, StepContext, StepResult, StepType, WaitSpec
from korak.steps.results import read_result
from tests.support.entries import Context


class Plain(StepType):
    key = "acme.plain"

    async def handle(self, ctx: StepContext) -> StepResult:
        return StepResult.complete()


SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"key": {"type": "string", "x-korak-secret": True}, "id": {"type": "string"}},
}


class Full(StepType):
    key = "acme.full"
    version = 2
    label = "Full"
    has_side_effects = False
    ability = "orders.sign"
    retry = Retry(5, [10, "PT1M", timedelta(minutes=5)])
    timeout = timedelta(minutes=2)
    isolation = "process"
    config_schema = SCHEMA

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        return [Outcome("signed", label="Signed"), Outcome("later", required=False)]

    def handle(self, ctx: Any) -> StepResult:
        return StepResult.wait(WaitSpec.signal("sign"))

    def resume(self, ctx: Any, signal: Signal) -> StepResult:
        return StepResult.complete("signed")

    def cancel(self, ctx: Any) -> None:
        pass


def test_the_defaults_of_13_2() -> None:
    contract = Plain().contract()
    assert (contract.key, contract.version, contract.label, contract.category) == (
        "acme.plain",
        1,
        "acme.plain",
        "custom",
    )
    assert contract.outcomes({}) == (OutcomeSpec("next"),)
    assert contract.config_schema == {"type": "object"}
    assert contract.has_side_effects
    assert contract.can_fail
    assert (contract.output_schema, contract.ability, contract.retry, contract.timeout) == (None, None, None, None)
    flags = (contract.is_pure, contract.supports_escalations, contract.has_cancel_hook, contract.waits)
    assert flags == (False, False, False, False)


def test_st_1_one_class_says_everything() -> None:
    contract = Full().contract()
    assert contract.retry == RetryPolicy(5, (10, "PT1M", 300.0), 0.1)
    assert contract.timeout == 120
    assert contract.secret_members == {"key"}
    assert contract.outcomes({}) == (OutcomeSpec("signed", True, "Signed"), OutcomeSpec("later", False))
    assert contract.has_cancel_hook
    assert contract.waits
    assert not contract.has_side_effects


def test_a_handler_runs_where_its_kind_says() -> None:
    assert (Plain().runs_in, Full().runs_in) == ("async", "process")


@pytest.mark.parametrize(
    ("signal", "expected"),
    [
        (Signal(SignalKind.TIMER), Complete("next", {"a": 1})),
        (Signal(SignalKind.TIMEOUT, outcome="late"), Complete("late", {"a": 1})),
        (Signal(SignalKind.TIMEOUT), Complete("timed_out", {"a": 1})),
        (
            Signal(SignalKind.EVENT, "paid"),
            Fail("resume_unsupported", params={"type": "acme.plain", "kind": "event"}),
        ),
    ],
)
def test_wt_15_the_default_resume(signal: Signal, expected: StepResult) -> None:
    assert Plain().resume(Context(parked={"a": 1}), signal) == expected


def test_13_5_results_tell_what_they_are() -> None:
    complete, wait, fail = StepResult.complete(), StepResult.wait(WaitSpec.timer(1)), StepResult.fail("declined", "No.")
    results: list[StepResult] = [complete, wait, fail]
    assert [(each.is_complete, each.is_wait, each.is_fail) for each in results] == [
        (True, False, False),
        (False, True, False),
        (False, False, True),
    ]
    assert (complete.outcome, complete.output, wait.output, fail.message) == ("next", {}, {}, "No.")


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, Complete()),
        ({"total": 3}, Complete(output={"total": 3})),
        (Outcome("declined", {"why": "late"}), Complete("declined", {"why": "late"})),
        (Outcome("declined"), Complete("declined")),
        (Fail("declined"), Fail("declined")),
    ],
)
def test_what_a_handler_may_return(returned: object, expected: StepResult) -> None:
    assert read_result(returned) == expected


@pytest.mark.parametrize("returned", [[1], 3, "x", True, object(), ({},)])
def test_any_other_return_is_invalid_output(returned: object) -> None:
    with pytest.raises(StepFailed) as caught:
        read_result(returned)
    assert caught.value.code == "invalid_output"


@pytest.mark.parametrize(
    ("output", "pointer"),
    [
        ({"a": [float("nan")]}, "/a/0"),
        ({"a": "\0"}, "/a"),
        ({"a": object()}, "/a"),
        ({"a": 2**70}, "/a"),
        ({"a": (1,)}, "/a"),
    ],
)
def test_13_6_an_output_that_is_not_json_is_invalid_output_with_its_place(output: Any, pointer: str) -> None:
    with pytest.raises(StepFailed) as caught:
        read_result(StepResult.complete("next", output))
    assert (caught.value.code, caught.value.params["pointer"]) == ("invalid_output", pointer)


def test_lm_6_an_output_over_the_cap_gives_size_limit_and_a_way_out() -> None:
    output: JsonObject = {"a": "x" * 92}
    assert read_result(output, max_bytes=100) == Complete(output=output)
    with pytest.raises(StepFailed, match=r"101 bytes, 100 at most.*elsewhere") as caught:
        read_result({"a": "x" * 93}, max_bytes=100)
    assert (caught.value.params["size"], caught.value.params["limit"]) == (101, 100)


def test_a_wait_s_output_is_checked_too() -> None:
    with pytest.raises(StepFailed):
        read_result(StepResult.wait(WaitSpec.timer(1), {"a": float("inf")}))
