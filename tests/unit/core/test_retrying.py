"""Retries: whose policy, when, how often, of what (RT-1 to RT-13), and by hand (MR-1 to MR-6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.core import retries
from korak.core.facts import Freed, Raised, RetryAsked
from korak.core.snapshot import Policy
from korak.errors import Conflict
from korak.graphs.builder import graph
from korak.graphs.contracts import RetryPolicy
from korak.model import EventType, FailureCategory, InstanceStatus, StepStatus, WaitKind
from korak.steps.results import Complete
from tests.support.plans import line
from tests.support.runs import Run, get_time

FLAKY = ("a", "test.flaky", {"times": 100})


def flaky(*, node: Any = None, settings: Any = None, kind: str = "test.flaky", policy: Policy | None = None) -> Run:
    built = graph("f").trigger("manual").node("a", kind, {"times": 100})
    if node:
        built = built.retry(*node, jitter=0)
    if settings:
        built = built.settings(retry={"max_attempts": settings[0], "backoff": settings[1], "jitter": 0})
    return Run(built.node("done", "end").edge("start", "a").edge("a", "done"), policy=policy)


def fail(run: Run, **more: Any) -> None:
    if run.step.status is not StepStatus.RUNNING:
        run.pass_time(10_000)
        run.claim()
    run.finish(Raised(more.pop("code", "exception"), **more))


@pytest.mark.parametrize(
    ("node", "settings", "kind", "expected"),
    [
        ((3, [7]), (3, [8]), "test.flaky", 7),
        (None, (3, [8]), "test.flaky", 8),
        (None, None, "test.flaky", 5),
        (None, None, "test.ok", 30),
    ],
)
def test_rt_1_the_first_of_four_sources_counts(node: Any, settings: Any, kind: str, expected: float) -> None:
    run = flaky(node=node, settings=settings, kind=kind)
    fail(run)
    assert run.step.backoff_seconds == pytest.approx(expected, rel=0.1)


WHOLE: dict[str, Any] = {
    "node": ({"node": (4, [1, 4, 9])}, [1, 4, 9]),
    "settings": ({"settings": (4, [1, 4])}, [1, 4, 4]),
    "type": ({"kind": "test.flaky"}, [5, 20, 20]),
    "default": ({"policy": Policy(retry=RetryPolicy(4, (1, 4, 9)))}, [1, 4, 9]),
}


@pytest.mark.parametrize("source", WHOLE)
def test_rt_1_every_source_gives_its_whole_list_of_pauses(source: str) -> None:
    """Defect 25 of the reference."""
    given, expected = WHOLE[source]
    run = flaky(**{"kind": "test.ok", **given})
    pauses: list[Any] = []
    for _ in expected:
        fail(run)
        pauses.append(run.step.backoff_seconds)
    assert pauses == pytest.approx(expected, rel=0.11)


def test_rt_2_the_default_is_three_attempts_after_30_and_120_seconds() -> None:
    run = flaky(kind="test.ok")
    fail(run)
    assert run.step.backoff_seconds == pytest.approx(30, rel=0.1)
    fail(run)
    assert run.step.backoff_seconds == pytest.approx(120, rel=0.1)
    fail(run)
    assert (run.instance.status, run.instance.failure_code) == (InstanceStatus.FAILED, "exception")


def test_rt_3_attempts_are_capped_at_ten() -> None:
    assert retries.get_max_attempts(RetryPolicy(50), Policy()) == 10
    assert retries.get_max_attempts(RetryPolicy(0), Policy()) == 1


def test_rt_4_the_next_attempt_is_a_new_row_of_the_same_visit() -> None:
    run = flaky(node=(3, [10]))
    fail(run)
    [first, second] = run.list_steps("a")
    assert (first.status, first.error_code) == (StepStatus.FAILED, "exception")
    assert (second.attempt, second.visit, second.status) == (2, 1, StepStatus.QUEUED)
    assert second.idempotency_key == first.idempotency_key
    [told] = run.list_events(EventType.STEP_FAILED)
    assert told.data == {"code": "exception", "attempt": 1, "will_retry": True}


def test_rt_5_the_wait_belongs_to_the_new_attempt_and_mirrors_its_time() -> None:
    run = flaky(node=(3, [10]))
    fail(run)
    [wait] = run.waits
    assert (wait.kind, wait.step_run_id) == (WaitKind.RETRY, run.step.id)
    assert wait.due_at == run.step.scheduled_for == run.now + timedelta(seconds=10)
    assert run.instance.status is InstanceStatus.WAITING


def test_wt_4_a_due_retry_starts_the_next_attempt() -> None:
    run = flaky(node=(3, [10]))
    fail(run)
    assert run.pass_time(9) == 0
    assert run.claim().dropped == "not_ready"
    assert run.pass_time(1) == 1
    run.claim()
    assert (run.step.status, run.step.attempt, run.waits) == (StepStatus.RUNNING, 2, [])


@pytest.mark.parametrize(("after", "expected"), [(5, 10), (60, 60)])
def test_rt_4_a_later_time_of_the_step_wins_and_an_earlier_one_loses(after: int, expected: int) -> None:
    run = flaky(node=(3, [10]))
    run.claim()
    run.finish(Raised("exception", after=run.now + timedelta(seconds=after)))
    assert run.step.backoff_seconds == expected


def test_rt_6_a_failed_resume_is_resumed_again_with_the_same_signal() -> None:
    run = Run(line(("a", "test.ask", {"event": "paid", "match": {"order": 1}, "fails": 2, "timeout": 500})))
    run.work()
    asked = run.step
    run.emit("paid", {"order": 1, "sum": 3})
    run.claim()
    for attempt in (2, 3):
        run.work() if run.step.status is StepStatus.QUEUED else run.finish(Raised("exception"))
        assert (run.step.attempt, run.step.output, run.step.input) == (attempt, asked.output, asked.input)
        assert run.step.resume_signal == (run.list_steps("a")[0].resume_signal)
        run.pass_time(1_000)
    run.work()
    assert run.instance.result == {"kind": "event", "payload": {"order": 1, "sum": 3}}


def test_rt_7_after_the_last_attempt_the_run_has_failed() -> None:
    run = flaky(node=(1,))
    fail(run, message="why", params={"x": 1})
    instance = run.instance
    assert (instance.status, instance.failure_code, instance.failed_node_id) == (
        InstanceStatus.FAILED,
        "exception",
        "a",
    )
    assert (instance.failure_message, instance.failure_params) == ("why", {"x": 1})
    assert (instance.ended_at, instance.failure_category) == (run.now, FailureCategory.STEP)
    assert run.history[-2:] == [EventType.STEP_FAILED, EventType.INSTANCE_FAILED]
    assert (run.live, run.waits) == ([], [])


def test_rt_8_a_permanent_failure_is_not_tried_again() -> None:
    run = flaky()
    fail(run, code="invalid_output", is_retryable=False)
    assert (run.instance.status, len(run.list_steps("a"))) == (InstanceStatus.FAILED, 1)


def test_rt_11_a_crash_on_the_last_attempt_is_given_one_more() -> None:
    run = flaky(node=(1,))
    run.claim()
    run.lose()
    assert run.step.attempt == 2
    run.pass_time(1_000)
    run.claim()
    run.lose()
    assert (run.instance.status, run.instance.failure_code) == (InstanceStatus.FAILED, "lease_expired")


@given(
    st.lists(st.integers(0, 10_000), min_size=1, max_size=6),
    st.floats(0, 1),
    st.integers(1, 30),
    st.text("abc:123", min_size=1),
)
def test_rt_12_13_the_back_off_keeps_its_bounds(backoff: list[int], jitter: float, attempt: int, key: str) -> None:
    policy, start = RetryPolicy(10, tuple(backoff), jitter), get_time(0)
    due = retries.get_due(policy, key, attempt, start, timezone="UTC")
    base = backoff[min(attempt, len(backoff)) - 1]
    assert max(0, base * (1 - jitter)) - 1e-3 <= (due - start).total_seconds() <= base * (1 + jitter) + 1e-3
    assert due == retries.get_due(policy, key, attempt, start, timezone="UTC")


@given(st.integers(0, 500), st.integers(0, 500), st.floats(0, 1))
def test_rt_12_a_time_that_the_step_gives_is_never_reduced(delay: int, after: int, jitter: float) -> None:
    start = get_time(0)
    asked = start + timedelta(seconds=after)
    due = retries.get_due(RetryPolicy(3, (delay,), jitter), "k", 1, start, timezone="UTC", after=asked)
    assert due >= asked


def test_an_abandoned_thread_that_ends_lets_the_back_off_alone_count() -> None:
    run = flaky(node=(3, [10, 600]))
    run.claim()
    abandoned = run.step
    run.finish(Raised("timeout", after=run.now + timedelta(minutes=10)))
    failed_at = run.now
    run.pass_time(3)
    run.tell(Freed(abandoned.ulid))
    [wait] = run.waits
    assert wait.due_at == run.step.scheduled_for == failed_at + timedelta(seconds=10)


# by hand


def test_mr_1_a_retry_by_hand_is_the_next_attempt_and_ready_at_once() -> None:
    run = flaky(node=(1,))
    fail(run)
    key = run.list_steps("a")[0].idempotency_key
    run.tell(RetryAsked())
    instance = run.instance
    assert (instance.status, instance.ended_at, instance.closed_reason) == (InstanceStatus.RUNNING, None, None)
    assert (instance.failure_code, instance.failed_node_id, instance.failure_message) == (None, None, None)
    assert (run.step.attempt, run.step.idempotency_key, run.step.ready_at) == (2, key, run.now)
    run.claim()
    run.finish(Complete())
    assert run.instance.status is InstanceStatus.COMPLETED


def test_mr_2_a_failed_resume_is_resumed_by_hand_with_what_came() -> None:
    run = Run(line(("a", "test.ask", {"signal": "go"})))
    run.work()
    run.signal("go", {"n": 1})
    run.claim()
    run.finish(Raised("exception", is_retryable=False))
    run.tell(RetryAsked())
    run.work()
    assert run.instance.result == {"kind": "signal", "payload": {"n": 1}}


def test_mr_2_what_a_wait_node_was_given_is_not_awaited_again() -> None:
    limits = {**Policy().limits, "max_state_bytes": 60}
    built = graph("w").trigger("manual").node("w", "wait", {"signal": "go"}).save("got").node("done", "end")
    run = Run(built.edge("start", "w").edge("w", "done"), policy=Policy(limits=limits))
    run.claim()
    run.signal("go", "x" * 60)
    assert run.instance.failure_code == "budget_state_bytes"
    run.memory.policy = Policy()
    run.tell(RetryAsked())
    run.claim()
    assert run.instance.status is InstanceStatus.COMPLETED
    assert run.instance.state == {"got": {"key": "go", "payload": "x" * 60}}


def test_mr_3_5_by_hand_as_often_as_one_likes_and_each_fails_at_once() -> None:
    run = flaky(node=(1,))
    fail(run)
    for attempt in range(2, 14):
        run.tell(RetryAsked())
        assert run.step.attempt == attempt
        fail(run)
        assert run.instance.status is InstanceStatus.FAILED
    assert len(run.list_events(EventType.INSTANCE_RETRIED)) == 12


def test_mr_4_only_a_run_that_failed_on_a_step() -> None:
    run = Run(line(("a", "test.ok", {})))
    with pytest.raises(Conflict, match="running"):
        run.tell(RetryAsked())


def test_mr_6_a_run_that_a_limit_ended_between_steps_is_started_again_instead() -> None:
    run = Run(line(("a", "test.ok", {})), policy=Policy(limits={**Policy().limits, "max_steps": 0}))
    assert run.instance.failure_code == "step_limit_exceeded"
    with pytest.raises(Conflict, match="start it again"):
        run.tell(RetryAsked())
