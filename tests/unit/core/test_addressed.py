"""Signals for one visit alone: given to an attempt of it, however late that parks, and to nobody after it."""

from __future__ import annotations

import pytest

from korak.core.facts import Delivered, PauseAsked, Raised, ResumeAsked
from korak.core.rows import Delivery
from korak.model import DeliveryKind, EventType
from korak.steps.results import Complete, Wait
from korak.steps.waits import WaitSpec
from tests.support.bodies import body, document, for_each, list_ready, node
from tests.support.plans import line
from tests.support.runs import Run

GO = Wait(WaitSpec.signal("go").timeout(60, "late"))


def waiting() -> Run:
    """A run whose first step waits, with a second one behind it that may wait for the same."""
    run = Run(line(("a", "test.ask", {"signal": "go"}), ("b", "test.ask", {"signal": "go"})))
    run.claim()
    run.finish(GO)
    return run


def send(run: Run, name: str = "go") -> Delivery:
    """A signal for the visit that waits now; nobody looks at it yet."""
    return run.send(DeliveryKind.SIGNAL, name, {"by": "ana"}, step_run_id=run.step.id)


def tell(run: Run) -> list[tuple[bool, bool, bool]]:
    """Of each signal whether it is taken, buffered, discarded."""
    return [
        (row.taken_at is not None, row.buffered_at is not None, row.discarded_at is not None)
        for row in run.family.signals.values()
    ]


def test_the_visit_takes_it() -> None:
    run = waiting()
    send(run)
    run.tell(Delivered())
    run.claim()
    assert (run.get_grant().step.resume_signal or {})["payload"] == {"by": "ana"}
    assert tell(run) == [(True, False, False)]


@pytest.mark.parametrize("is_seen", [True, False])
def test_one_that_the_visit_did_not_take_comes_to_nothing(is_seen: bool) -> None:
    run = waiting()
    run.pass_time(61)
    run.claim()
    send(run)
    if is_seen:
        run.tell(Delivered())
        assert tell(run) == [(False, True, False)]  # an attempt that runs may park again
    run.finish(Complete("next"))
    run.tell(Delivered())
    assert tell(run) == [(True, is_seen, True)]
    run.claim()
    run.finish(GO)
    run.claim()
    assert run.list_events(EventType.SIGNAL_RECEIVED) == []


def test_a_later_attempt_of_the_visit_takes_it() -> None:
    run = waiting()
    run.pass_time(61)
    run.claim()
    send(run)
    run.finish(Raised("boom", "", is_retryable=True))
    run.tell(Delivered())
    run.pass_time(3600)
    run.claim()
    run.finish(GO)
    run.claim()
    assert (run.get_grant().step.resume_signal or {})["payload"] == {"by": "ana"}
    assert tell(run) == [(True, True, False)]


@pytest.mark.parametrize(("name", "told"), [("go", (False, True, False)), ("stop", (True, True, True))])
def test_a_paused_run_keeps_what_its_visit_waits_for(name: str, told: tuple[bool, bool, bool]) -> None:
    run = waiting()
    send(run, name)
    run.tell(PauseAsked(None))
    run.tell(Delivered())
    assert tell(run) == [(False, True, False)]
    run.tell(ResumeAsked(None))
    run.tell(Delivered())
    assert tell(run) == [told]


def test_a_visit_that_leaves_by_its_error_exit_takes_nothing_any_more() -> None:
    edges = [("start", "next", "a"), ("a", "next", "done"), ("a", "error", "b"), ("b", "next", "done")]
    run = Run(document(node("a", "test.ask", signal="go"), node("b"), edges=edges))
    run.claim()
    run.finish(GO)
    run.pass_time(61)
    run.claim()
    send(run)
    run.tell(Delivered())
    run.finish(Raised("boom", "", is_retryable=False))
    assert [step.node_id for step in run.live] == ["b"]
    assert tell(run) == [(True, True, True)]


def test_nor_does_one_that_is_cancelled_with_its_body() -> None:
    each = for_each([1, 2], body(node("y", "test.ask", signal="go")), mode="first_success")
    run = Run(document(each, node("z")))
    for ready in list_ready(run):
        run.claim(ready)
        run.finish(GO, step=ready)
    first, second = sorted((step for step in run.live if step.node_id == "y"), key=lambda step: step.id)
    run.pass_time(61)
    run.claim(second)
    run.send(DeliveryKind.SIGNAL, "go", {"by": "ana"}, step_run_id=second.id)
    run.tell(Delivered())
    assert tell(run) == [(False, True, False)]
    run.claim(first)
    run.finish(Complete("next"), step=first)
    assert "z" in [step.node_id for step in run.live]
    assert tell(run) == [(True, True, True)]


def test_an_ended_run_keeps_it_for_a_manual_retry() -> None:
    run = waiting()
    run.pass_time(61)
    run.claim()
    send(run)
    run.finish(Raised("boom", "", is_retryable=False))
    assert tell(run) == [(False, True, False)]
