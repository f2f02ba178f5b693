"""What an attempt leaves beside its result, as the core decides it: with the record, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.facts import Finished, HandlerResult, Left, Raised
from korak.core.rows import StepRun
from korak.graphs.builder import graph
from korak.model import StepStatus
from korak.steps.artifacts import make
from korak.steps.contract import Complete, Fail, Wait, WaitSpec
from tests.support.runs import Run

LEFT = Left((make("report", {"a": 1}, limit=100), make("raw", b"x", limit=100)), has_streamed=True)


def begin(kind: str = "test.ok", **config: Any) -> Run:
    """A run whose one step is claimed."""
    run = Run(
        graph("g").trigger("manual").node("a", kind, config).node("done", "end").edge("start", "a").edge("a", "done")
    )
    run.claim()
    run.family.chunks[run.step.execution_id] = ["once"]
    return run


def finish(run: Run, result: HandlerResult, left: Left | None = LEFT, step: StepRun | None = None) -> StepRun:
    step = step or run.step
    run.tell(Finished(step.id, step.claim_token or "", result, None, left), (step.id,))
    return run.family.steps[step.id]


def test_what_completes_has_left_it_and_needs_its_chunks_no_longer() -> None:
    run = begin()
    step = finish(run, Complete())
    assert step.status is StepStatus.COMPLETED
    assert {key: (kept.kind, kept.content, kept.size) for key, kept in run.family.artifacts.items()} == {
        "report": ("json", b'{"a":1}', 7),
        "raw": ("bytes", b"x", 1),
    }
    report = run.family.artifacts["report"]
    assert (report.node_id, report.visit, report.execution_id) == ("a", 1, step.execution_id)
    assert run.family.chunks == {}


@pytest.mark.parametrize(
    "result", [Raised("exception"), Fail("no"), Complete("nowhere"), Raised("x", is_retryable=False)]
)
def test_what_fails_leaves_nothing_and_keeps_its_chunks(result: HandlerResult) -> None:
    run = begin()
    step = finish(run, result)
    assert step.status is StepStatus.FAILED
    assert run.family.artifacts == {}
    assert run.family.chunks == {step.execution_id: ["once"]}


def test_what_parks_has_left_its_artifacts_and_still_has_its_chunks() -> None:
    run = begin("test.nap", duration="PT1H")
    step = finish(run, Wait(WaitSpec.timer("PT1H")))
    assert step.status is StepStatus.WAITING
    assert list(run.family.artifacts) == ["report", "raw"]
    assert run.family.chunks == {step.execution_id: ["once"]}


def test_a_result_under_another_token_leaves_nothing() -> None:
    run = begin()
    step = run.step
    run.tell(Finished(step.id, "01J0000000000000000000000Z", Complete(), None, LEFT), (step.id,))
    assert (run.family.artifacts, run.last.is_empty) == ({}, True)


def test_who_leaves_nothing_costs_nothing() -> None:
    run = begin()
    finish(run, Complete(), None)
    assert run.last.leavings is None
