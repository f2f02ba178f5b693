"""What is never tried again by itself, code by code, from the handler to the end of the run (RT-8)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from korak.core.facts import HandlerResult
from korak.errors import Invalid, KorakError, StepFailed, StepRetry
from korak.graphs.builder import graph
from korak.graphs.paths import MissingValue
from korak.model import InstanceStatus, SignalKind
from korak.steps.contract import Complete, Fail, Signal
from korak_engine import outcomes
from tests.support.attempts import NOW, Maker, benched
from tests.support.runs import Run
from tests.unit.engine import hostile

LIMIT = 64 << 10
AT = datetime(2030, 1, 1, tzinfo=UTC)


def flaky() -> Run:
    """A run whose step may be tried three times, and runs."""
    built = graph("f").trigger("manual").node("a", "test.flaky", {"times": 0}).retry(3, [10]).node("done", "end")
    run = Run(built.edge("start", "a").edge("a", "done"))
    run.claim()
    return run


def end(result: HandlerResult) -> tuple[InstanceStatus | None, str | None, int]:
    """How the run ends with that result, and how many attempts it took."""
    run = flaky()
    run.finish(result)
    return run.instance.status, run.instance.failure_code, len(run.list_steps("a"))


@pytest.mark.parametrize(
    ("returned", "code"),
    [
        ([1, 2], "invalid_output"),
        ({"x": float("nan")}, "invalid_output"),
        ({"x": "y" * LIMIT}, "invalid_output"),
        (Fail("no_stock", "none left"), "no_stock"),
        (Complete("nowhere"), "unknown_outcome"),
    ],
)
def test_rt_8_what_was_returned(returned: object, code: str) -> None:
    result = outcomes.tidy(outcomes.read(returned, LIMIT), (), LIMIT)
    assert end(result) == (InstanceStatus.FAILED, code, 1)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StepFailed("acme.refused", "no"), "acme.refused"),
        (StepFailed("subject_missing"), "subject_missing"),
        (StepFailed("owner_mismatch"), "owner_mismatch"),
        (MissingValue("state.x"), "missing_value"),
        (Invalid("invalid_value", detail="no"), "invalid_value"),
        (KorakError("invalid_expression"), "invalid_expression"),
    ],
)
def test_rt_8_what_was_raised(error: BaseException, code: str) -> None:
    assert end(outcomes.tidy(outcomes.describe(error, AT), (), LIMIT)) == (InstanceStatus.FAILED, code, 1)


@pytest.mark.parametrize(
    ("given", "how", "code"),
    [
        (hostile.Asking, {}, "authorization_denied"),
        (hostile.tells, {"config": {"key": {"secret": "nobody_has_it"}}}, "secret_missing"),
        (hostile.fine, {"signal": Signal(SignalKind.EVENT, "paid", {}, at=NOW), "parked": {}}, "resume_unsupported"),
    ],
)
async def test_rt_8_what_the_engine_says_of_a_step(given: Any, how: dict[str, Any], code: str) -> None:
    async with benched() as bench:
        result = await bench.handlers.run(Maker(**how).make(bench.registry, bench.registry.add(given)))
    assert end(result) == (InstanceStatus.FAILED, code, 1)


@pytest.mark.parametrize("error", [ValueError("bad"), StepRetry("busy"), SystemExit(3)])
def test_rt_10_all_else_is_tried_again(error: BaseException) -> None:
    run = flaky()
    run.finish(outcomes.describe(error, run.now))
    assert (run.instance.status, len(run.list_steps("a"))) == (InstanceStatus.WAITING, 2)
