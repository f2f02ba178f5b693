"""What runs after a run was cancelled or was out of time: on_cancel and on_deadline, behind what is undone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from korak.core.deadlines import get_left
from korak.core.facts import DeadlinePassed, Delivered, PauseAsked, ResumeAsked, RetryAsked
from korak.errors import Conflict
from korak.graphs.builder import ref
from korak.model import (
    ClosedReason,
    DeliveryKind,
    InstanceStatus,
    JsonObject,
    StepRole,
    StepStatus,
)
from korak.steps.results import Complete
from tests.support.bodies import body, document, drain, for_each, node
from tests.support.runs import Run
from tests.support.undoing import CANCEL, STATE, get_inputs, go_on, list_undone, one_by_one, three, undone

# cancel


def test_t_cancel_1_a_paused_run_can_be_cancelled_and_its_hooks_run() -> None:
    run = three(on_cancel={"type": "test.ok"})
    drain(run)
    run.tell(PauseAsked())
    run.tell(CANCEL)
    assert one_by_one(run)[-1] == "on_cancel:$on_cancel"


def test_t_cancel_2_a_completed_run_and_a_cancelled_one_can_not_be_cancelled() -> None:
    run = Run(document(undone("a"), on_cancel={"type": "test.ok"}))
    drain(run)
    assert run.instance.status is InstanceStatus.COMPLETED
    with pytest.raises(Conflict, match="completed"):
        run.tell(CANCEL)
    run = three()
    run.tell(CANCEL)
    with pytest.raises(Conflict, match="cancelled"):
        run.tell(CANCEL)


def test_t_cancel_3_on_cancel_gets_the_public_state() -> None:
    run = three(on_cancel={"type": "test.ok", "config": {"value": ref("state")}})
    drain(run)
    run.tell(CANCEL)
    go_on(run)
    assert get_inputs(run)[-1] == {"value": STATE}


def test_t_cancel_4_on_cancel_that_raises_does_not_undo_the_cancel() -> None:
    hook: JsonObject = {"type": "test.flaky", "config": {"for_good": True}}
    run = three(on_cancel=hook)
    run.tell(CANCEL)
    go_on(run)
    assert list_undone(run) == [("on_cancel", "$on_cancel", "failed")]
    assert run.instance.status is InstanceStatus.CANCELLED
    assert [(row.source, row.code) for row in run.family.failures] == [("hook", "test.refused")]


def test_a_cancel_that_lies_there_cleans_up_too() -> None:
    run = three()
    drain(run)
    run.send(DeliveryKind.CANCEL)
    run.tell(Delivered())
    assert one_by_one(run) == ["cancel:c", "compensate:b", "compensate:a"]


def test_a_late_result_is_cleaned_up_beside_the_undo_and_starts_nothing_twice() -> None:
    run = three(on_cancel={"type": "test.ok"})
    run.claim()
    run.finish(Complete())
    run.claim()
    run.finish(Complete())
    run.claim()
    held = run.step
    run.tell(CANCEL)
    one_by_one(run)
    run.finish(Complete(output={"late": 1}), step=held)
    assert one_by_one(run) == ["cancel:c"]
    roles = [step.role for step in run.hooks]
    assert roles.count(StepRole.ON_CANCEL) == 1
    assert roles.count(StepRole.COMPENSATE) == 2


# deadlines


def limited(**settings: Any) -> Run:
    hook: JsonObject = {"type": "test.ok", "config": {"value": ref("state")}}
    return three(execution_timeout=100, on_deadline=hook, **settings)


def expire(run: Run) -> Run:
    run.pass_time(101)
    run.tell(DeadlinePassed())
    return run


def test_t_dl_1_before_its_time_a_run_is_untouched() -> None:
    run = limited()
    drain(run)
    run.pass_time(99)
    assert run.tell(DeadlinePassed()).dropped == "not_due"
    assert (run.hooks, run.instance.status) == ([], InstanceStatus.WAITING)


def test_t_dl_2_and_4_a_waiting_run_fails_first_then_on_deadline_gets_its_state() -> None:
    run = limited()
    drain(run)
    expire(run)
    assert (run.instance.status, run.instance.failure_code) == (InstanceStatus.FAILED, "deadline_exceeded")
    assert run.instance.failed_node_id == "c"
    assert one_by_one(run) == ["cancel:c", "on_deadline:$on_deadline"]
    assert get_inputs(run) == [{"value": STATE}]


def test_t_dl_3_a_run_that_completed_in_time_never_fails() -> None:
    run = limited()
    drain(run)
    run.signal("go")
    drain(run)
    assert run.instance.status is InstanceStatus.COMPLETED
    run.pass_time(200)
    assert run.tell(DeadlinePassed()).dropped == "not_due"
    assert run.hooks == []


def test_a_deadline_compensates_if_asked_to_before_on_deadline() -> None:
    run = limited(compensate_on_failure=True)
    drain(run)
    expire(run)
    assert one_by_one(run) == ["cancel:c", "compensate:b", "compensate:a", "on_deadline:$on_deadline"]
    with pytest.raises(Conflict, match="undone"):
        run.tell(RetryAsked())


def test_the_clock_of_a_paused_run_stands_still() -> None:
    run = limited()
    drain(run)
    run.tell(PauseAsked())
    assert expire(run).last.dropped == "not_due"
    run.tell(ResumeAsked())
    assert run.instance.deadline_at is not None
    assert run.instance.deadline_at > run.now


def test_a_retry_after_the_deadline_has_its_time_anew_and_goes_on_where_it_stood() -> None:
    run = expire(limited())
    assert run.family.steps[min(run.family.steps)].status is StepStatus.CANCELLED
    go_on(run)
    run.tell(RetryAsked())
    assert run.instance.deadline_at == run.now + timedelta(seconds=100)
    assert [(step.node_id, step.visit, step.attempt) for step in run.list_steps("a")] == [("a", 1, 1), ("a", 2, 1)]
    drain(run)
    expire(run)
    go_on(run)
    assert [(step.role, step.visit) for step in run.hooks if step.role is StepRole.ON_DEADLINE] == [
        (StepRole.ON_DEADLINE, 1),
        (StepRole.ON_DEADLINE, 2),
    ]
    run.tell(RetryAsked())
    drain(run)
    run.signal("go")
    drain(run)
    assert run.instance.status is InstanceStatus.COMPLETED


def test_a_pause_takes_nothing_from_the_time_that_a_retry_has() -> None:
    """What was left at a pause is what the resume has; the failure and a retry tell of the whole."""
    run = limited()
    run.pass_time(40)
    run.tell(PauseAsked())
    assert (run.instance.deadline_at, get_left(run.instance)) == (None, 60)
    run.pass_time(1_000)
    run.tell(ResumeAsked())
    assert run.instance.deadline_at == run.now + timedelta(seconds=60)
    run.pass_time(60)
    run.tell(DeadlinePassed())
    assert run.instance.failure_params == {"seconds": 100}
    go_on(run)
    run.tell(RetryAsked())
    assert run.instance.deadline_at == run.now + timedelta(seconds=100)
    run.tell(PauseAsked())
    assert get_left(run.instance) == 100


def test_a_deadline_of_which_the_whole_isn_t_known_goes_on_after_a_pause_too() -> None:
    """An import may say when it is without saying how long it was."""
    run = limited()
    run.instance.deadline_seconds = None
    run.pass_time(40)
    run.tell(PauseAsked())
    run.tell(ResumeAsked())
    assert run.instance.deadline_at == run.now + timedelta(seconds=60)


def test_a_deadline_inside_a_container_is_retried_where_each_body_stood() -> None:
    inner = body(undone("x"), node("y", "test.ask", signal="y"))
    each = for_each({"literal": [1, 2]}, inner)
    run = Run(document(each, execution_timeout=100))
    drain(run)
    expire(run)
    go_on(run)
    run.tell(RetryAsked())
    drain(run)
    assert [step.status for step in run.list_steps("x")] == [StepStatus.COMPLETED] * 2
    for _ in range(2):
        run.signal("y")
        drain(run)
    assert run.instance.status is InstanceStatus.COMPLETED


def test_a_cancel_while_on_deadline_runs_waits_for_it() -> None:
    run = expire(limited(on_cancel={"type": "test.ok"}))
    [hook] = run.hooks
    assert hook.role is StepRole.ON_DEADLINE
    run.claim(hook)
    run.tell(CANCEL)
    assert [step.role for step in run.live] == [StepRole.ON_DEADLINE]
    run.finish(Complete(), step=run.live[0])
    assert one_by_one(run) == ["on_cancel:$on_cancel"]


def test_a_refused_start_has_no_hooks_and_can_not_be_cancelled() -> None:
    run = three(on_cancel={"type": "test.ok"})
    run.instance.status, run.instance.closed_reason = InstanceStatus.FAILED, ClosedReason.REFUSED
    run.instance.ended_at, run.instance.failure_code = run.now, "max_starts_exceeded"
    run.family.steps.clear()
    with pytest.raises(Conflict):
        run.tell(CANCEL)
