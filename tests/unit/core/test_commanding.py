"""Commands on a run: cancel with its hooks (CN-1 to CN-11), pause and resume, the deadline, commands that lie there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.core.facts import Broken, CancelAsked, DeadlinePassed, Delivered, PauseAsked, Raised, ResumeAsked, RetryAsked
from korak.core.snapshot import Policy
from korak.errors import Conflict
from korak.model import (
    ClosedReason,
    DeliveryKind,
    EventType,
    InstanceStatus,
    JsonObject,
    ParkedFor,
    StepRole,
    StepStatus,
    WaitKind,
    WaitStatus,
)
from korak.steps.results import Complete, Wait
from korak.steps.waits import WaitSpec
from tests.support.plans import line
from tests.support.runs import Run

ASK: tuple[str, str, JsonObject] = ("a", "test.ask", {"signal": "go", "timeout": 100})
CANCEL = CancelAsked("enough", {"user": "u1"})


def asking(*, is_parked: bool = True) -> Run:
    run = Run(line(ASK))
    run.claim()
    if is_parked:
        run.finish(Wait(WaitSpec.signal("go").timeout(100), {"asked": 1}))
    return run


def test_cn_1_a_cancel_ends_the_run_with_its_reason() -> None:
    run = asking()
    run.tell(CANCEL)
    instance = run.instance
    assert (instance.status, instance.closed_reason) == (InstanceStatus.CANCELLED, ClosedReason.CANCELLED)
    assert (instance.cancel_reason, instance.ended_at, instance.failure_code) == ("enough", run.now, None)
    assert run.list_events(EventType.INSTANCE_CANCELLED)[0].data == {"reason": "enough", "actor": {"user": "u1"}}


def test_cn_2_waits_and_steps_are_cancelled() -> None:
    run = asking()
    run.tell(CANCEL)
    assert [wait.status for wait in run.family.waits.values()] == [WaitStatus.CANCELLED] * 2
    assert [step.status for step in run.list_steps("a")] == [StepStatus.CANCELLED]
    assert run.history[-2:] == [EventType.STEP_CANCELLED, EventType.INSTANCE_CANCELLED]


def test_cn_3_the_hook_runs_for_what_had_begun() -> None:
    """0 queued first attempt, 1 waiting, 1 queued retry, 2 running; 1 for a resume that waits for an engine."""
    queued = Run(line(ASK))
    queued.tell(CANCEL)
    waiting = asking()
    waiting.tell(CANCEL)
    retried = asking(is_parked=False)
    retried.finish(Raised("exception"))
    retried.tell(CANCEL)
    running = asking(is_parked=False)
    step = running.step
    running.tell(CANCEL)
    running.finish(Complete(), step=step)
    resumed = asking()
    resumed.runs = frozenset()
    resumed.signal("go")
    resumed.claim()
    assert resumed.step.parked_for is ParkedFor.ENGINE
    resumed.tell(CANCEL)
    counts = [len(run.hooks) for run in (queued, waiting, retried, running, resumed)]
    assert counts == [0, 1, 1, 2, 1]


def test_cn_4_5_a_late_result_is_dropped_and_cleaned_up_with_its_output() -> None:
    run = asking(is_parked=False)
    step = run.step
    run.tell(CANCEL)
    assert run.finish(Complete(output={"sent": 5}), step=step).dropped == "stale_token"
    assert [(hook.role, hook.call, hook.output) for hook in run.hooks] == [
        (StepRole.CANCEL, 1, None),
        (StepRole.CANCEL, 2, {"sent": 5}),
    ]
    assert run.history[-1] is EventType.RESULT_DROPPED


def test_cn_4_a_result_is_heard_once_however_often_it_comes() -> None:
    run = asking(is_parked=False)
    step = run.step
    run.tell(CANCEL)
    for _ in range(2):
        run.finish(Complete(), step=step)
        run.lose(step)
    assert len(run.hooks) == 2
    assert len(run.list_events(EventType.RESULT_DROPPED)) == 1


def test_cn_4_a_cancel_that_lies_there_is_obeyed_before_the_result_and_cleaned_up_twice() -> None:
    run = asking(is_parked=False)
    run.send(DeliveryKind.CANCEL, payload={"reason": "enough"})
    run.finish(Complete(output={"sent": 5}))
    assert (run.instance.status, run.instance.cancel_reason) == (InstanceStatus.CANCELLED, "enough")
    assert [(hook.call, hook.output) for hook in run.hooks] == [(1, None), (2, {"sent": 5})]


def test_cn_6_wk_11_a_dead_engine_leaves_a_second_call_without_output() -> None:
    run = asking(is_parked=False)
    step = run.step
    run.tell(CANCEL)
    run.lose(step)
    assert [(hook.call, hook.output) for hook in run.hooks] == [(1, None), (2, None)]


def test_a_parked_step_that_is_cancelled_is_cleaned_up_once_whoever_comes_late() -> None:
    run = asking(is_parked=False)
    step = run.step
    run.finish(Wait(WaitSpec.signal("go")))
    run.tell(CANCEL)
    run.finish(Wait(WaitSpec.signal("go")), step=step)
    assert len(run.hooks) == 1


def test_cn_8_an_ended_run_can_not_be_cancelled() -> None:
    run = asking()
    run.tell(CANCEL)
    with pytest.raises(Conflict, match="cancelled"):
        run.tell(CANCEL)


def test_a_hook_is_claimed_on_an_ended_run_and_completes() -> None:
    run = asking()
    run.tell(CANCEL)
    [hook] = run.hooks
    run.claim(hook)
    assert run.get_grant().input == run.list_steps("a")[0].input
    [hook] = run.hooks
    run.finish(Complete(), step=hook)
    assert [hook.status for hook in run.hooks] == [StepStatus.COMPLETED]
    assert run.history[-1] is EventType.HOOK_COMPLETED
    assert run.instance.status is InstanceStatus.CANCELLED


def test_a_hook_gets_the_whole_input_although_a_marker_was_stored() -> None:
    run = Run(line(ASK), policy=Policy(limits={**Policy().limits, "max_input_bytes": 10}))
    run.claim()
    run.tell(CANCEL)
    [hook] = run.hooks
    assert hook.input == {"truncated": True, "bytes": 29}
    run.claim(hook)
    assert run.get_grant().input == {"signal": "go", "timeout": 100}


def test_cn_11_a_hook_that_raises_is_tried_again_and_the_cancel_stands() -> None:
    run = asking()
    run.tell(CANCEL)
    while live := [hook for hook in run.hooks if hook.status is StepStatus.QUEUED]:
        run.pass_time(10_000)
        run.claim(live[0])
        run.finish(Raised("exception"), step=run.live[0])
    assert [hook.attempt for hook in run.hooks] == list(range(1, 11))
    assert (run.live, run.waits, run.instance.status) == ([], [], InstanceStatus.CANCELLED)


def test_a_lost_hook_is_tried_again() -> None:
    run = asking()
    run.tell(CANCEL)
    run.claim(run.hooks[0])
    run.lose(run.hooks[0])
    assert [hook.status for hook in run.hooks] == [StepStatus.FAILED, StepStatus.QUEUED]


# pause and resume


def test_a_pause_stops_clocks_and_starts() -> None:
    run = asking()
    run.pass_time(40)
    run.tell(PauseAsked())
    assert [(wait.status, wait.due_at) for wait in run.waits] == [(WaitStatus.SUSPENDED, None)] * 2
    assert [wait.remaining for wait in run.waits] == [None, 60]
    assert run.pass_time(1_000) == 0
    run.tell(ResumeAsked())
    assert run.waits[1].due_at == run.now + timedelta(seconds=60)


def test_a_paused_run_starts_nothing_and_records_what_runs() -> None:
    run = Run(line(("a", "test.ok", {}), ("b", "test.ok", {})))
    run.claim()
    run.tell(PauseAsked())
    assert run.finish(Complete(), inline=True).claimed == []
    assert (run.step.node_id, run.step.parked_for, run.step.ready_at) == ("b", ParkedFor.PAUSE, None)
    assert run.claim().dropped == "not_ready"
    run.tell(ResumeAsked())
    assert (run.step.parked_for, run.step.ready_at) == (None, run.now)


def test_a_pause_keeps_signals_and_the_resume_gives_them() -> None:
    run = asking()
    run.tell(PauseAsked())
    run.signal("go", 1)
    run.tell(ResumeAsked())
    run.claim()
    assert (run.get_grant().step.resume_signal or {})["payload"] == 1


def test_a_date_that_the_author_gave_stays_and_fires_at_the_resume() -> None:
    run = asking(is_parked=False)
    run.finish(Wait(WaitSpec.timer(run.now + timedelta(seconds=50))))
    run.tell(PauseAsked())
    assert [wait.status for wait in run.waits] == [WaitStatus.PENDING]
    run.pass_time(60)
    assert run.claim().dropped in ("not_ready", "paused")
    run.tell(ResumeAsked())
    run.claim()
    assert (run.get_grant().step.resume_signal or {})["kind"] == "timer"


def test_what_parks_or_fails_while_paused_stands_still_as_well() -> None:
    for result in (Wait(WaitSpec.timer(30)), Raised("exception")):
        run = Run(line(("a", "test.flaky", {})))
        run.claim()
        run.tell(PauseAsked())
        run.finish(result)
        [wait] = run.waits
        assert (wait.status, run.step.ready_at) == (WaitStatus.SUSPENDED, None)
        run.pass_time(10_000)
        run.tell(ResumeAsked())
        [wait] = run.waits
        assert (wait.due_at is not None and wait.due_at > run.now, run.step.ready_at is None) == (
            True,
            wait.kind is WaitKind.RETRY,
        )
        assert wait.kind is WaitKind.TIMER or run.step.scheduled_for == wait.due_at


def test_a_paused_run_is_not_paused_again_and_only_a_paused_run_resumes() -> None:
    run = asking()
    with pytest.raises(Conflict, match="not paused"):
        run.tell(ResumeAsked())
    run.tell(PauseAsked())
    with pytest.raises(Conflict, match="that is paused can't be paused"):
        run.tell(PauseAsked())
    run.tell(CANCEL)
    for fact in (PauseAsked(), ResumeAsked()):
        with pytest.raises(Conflict):
            run.tell(fact)


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0, 500)), max_size=5))
def test_pauses_at_any_instant_keep_what_remains(spans: list[tuple[float, float]]) -> None:
    """The wait, the retry and the deadline are over after as much time as they had, pauses not counted."""
    run = Run(line(ASK), execution_timeout=300)
    run.work()
    lived = 0.0
    for running, paused in spans:
        run.pass_time(running)
        lived += running
        if lived >= 100:
            return
        run.tell(PauseAsked())
        run.pass_time(paused)
        run.tell(ResumeAsked())
    [limit] = [wait for wait in run.waits if wait.kind is WaitKind.TIMEOUT]
    assert limit.due_at is not None
    assert run.instance.deadline_at is not None
    assert (limit.due_at - run.now).total_seconds() == pytest.approx(100 - lived, abs=1e-3)
    assert (run.instance.deadline_at - run.now).total_seconds() == pytest.approx(300 - lived, abs=1e-3)


# what lies there, and the end


def test_commands_that_lie_there_are_obeyed_in_order_before_anything_else() -> None:
    run = Run(line(("a", "test.ok", {}), ("b", "test.ok", {})))
    run.claim()
    for kind in (DeliveryKind.PAUSE, DeliveryKind.RESUME, DeliveryKind.PAUSE):
        run.send(kind)
    changes = run.finish(Complete(), inline=True)
    assert (changes.dropped, changes.claimed, run.step.parked_for) == (None, [], ParkedFor.PAUSE)
    assert run.history[2:5] == [EventType.INSTANCE_PAUSED, EventType.INSTANCE_RESUMED, EventType.INSTANCE_PAUSED]
    assert all(row.taken_at for row in run.family.signals.values())


def test_a_command_that_comes_too_late_changes_nothing_and_drops_nothing() -> None:
    run = Run(line(("a", "test.ok", {}), ("b", "test.ok", {})))
    run.claim()
    run.send(DeliveryKind.RESUME)
    assert run.finish(Complete()).dropped is None
    run.tell(CANCEL)
    for kind in (DeliveryKind.CANCEL, DeliveryKind.PAUSE, DeliveryKind.RESUME):
        run.send(kind)
    run.tell(Delivered())
    assert run.instance.status is InstanceStatus.CANCELLED
    assert all(row.taken_at for row in run.family.signals.values())


def test_a_signal_that_comes_after_the_end_is_kept_for_a_retry_by_hand() -> None:
    run = asking()
    run.signal("go")
    run.claim()
    run.finish(Raised("exception", is_retryable=False))
    run.signal("go", 2)
    assert [row.taken_at is None for row in run.family.signals.values()] == [False, True]
    run.tell(RetryAsked())
    run.claim()
    run.finish(Wait(WaitSpec.signal("go")))
    run.claim()
    assert (run.get_grant().step.resume_signal or {})["payload"] == 2


def test_a_run_past_its_deadline_fails_with_what_lives_in_it() -> None:
    run = Run(line(ASK), execution_timeout=50)
    run.work()
    run.pass_time(49)
    assert run.tell(DeadlinePassed()).dropped == "not_due"
    run.pass_time(1)
    run.tell(DeadlinePassed())
    instance = run.instance
    assert (instance.status, instance.closed_reason) == (InstanceStatus.FAILED, ClosedReason.DEADLINE)
    assert (instance.failure_code, instance.failure_params) == ("deadline_exceeded", {"seconds": 50.0})
    assert (len(run.hooks), run.waits) == (1, [])


def test_a_run_that_was_paused_and_tried_again_tells_the_time_that_it_had() -> None:
    """Not how long ago it began: its deadline has moved."""
    run = Run(line(ASK), execution_timeout=50)
    run.work()
    run.tell(PauseAsked())
    run.pass_time(1_000)
    run.tell(ResumeAsked())
    for _ in range(2):
        run.pass_time(50)
        run.tell(DeadlinePassed())
        assert (run.instance.status, run.instance.failure_params) == (InstanceStatus.FAILED, {"seconds": 50.0})
        run.tell(RetryAsked())


def test_rows_that_make_no_sense_fail_their_run_alone() -> None:
    run = asking()
    run.tell(Broken("invalid_graph", "a hand was here"))
    assert (run.instance.status, run.instance.failure_code) == (InstanceStatus.FAILED, "invalid_graph")
    assert run.tell(Broken("invalid_graph", "again")).is_empty
