"""A run of a chain that is paused, resumed, retried and cancelled, and what its history tells."""

from __future__ import annotations

from typing import Any

import pytest

from korak import chain
from korak.chains import Chain
from korak.core.facts import (
    CancelAsked,
    DeadlinePassed,
    Delivered,
    Fact,
    Finished,
    Lost,
    PauseAsked,
    ResumeAsked,
    RetryAsked,
)
from korak.core.snapshot import Policy
from korak.errors import Conflict
from korak.model import EventType, InstanceStatus, ParkedFor, StepStatus, WaitKind
from korak.steps.contract import Complete
from tests.support import handlers, links
from tests.support.bodies import list_ready
from tests.support.chained import count_visits, get_state, go_on, run
from tests.support.plans import plan_of, registry
from tests.support.runs import Run, get_time

COMPLETED, FAILED, WAITING = InstanceStatus.COMPLETED, InstanceStatus.FAILED, InstanceStatus.WAITING
CANCELLED, RUNNING = InstanceStatus.CANCELLED, InstanceStatus.RUNNING


def begin(built: Chain, payload: Any = None) -> Run:
    """A run that stands before its first step."""
    for made in built.step_types:
        if registry().get(made.key) is None:
            registry().add(made)
    return Run(plan_of(built.document()), given=payload or {})


def two() -> Run:
    """A run whose first step of two is running."""
    begun = begin(chain("x").then(links.count, "first").then(links.secretive, "second"))
    begun.claim()
    return begun


def tell_trail(begun: Run) -> list[tuple[str, str | None]]:
    """History without what a chain has besides its steps: each event with its node."""
    told = [(str(event.type), event.node_id) for event in begun.family.events]
    return [(kind, node) for kind, node in told if node not in ("begin", "end")]


def test_a_step_that_runs_while_the_run_is_paused_is_recorded_and_nothing_follows() -> None:
    """T-PAUSE-1."""
    begun = two()
    grant = begun.get_grant()
    begun.tell(PauseAsked())
    begun.finish(handlers.run(grant))
    assert (get_state(begun), begun.instance.paused_at) == ({"rounds": 1}, begun.now)
    assert list_ready(begun) == []
    [second] = begun.live
    assert (second.node_id, second.status, second.parked_for) == ("second", StepStatus.QUEUED, ParkedFor.PAUSE)
    assert begun.claim(second).claimed == []


def test_a_step_that_is_queued_when_the_run_is_paused_is_not_claimed() -> None:
    """T-PAUSE-1: a message for it that is under way changes nothing, and the resume makes it ready again."""
    begun = begin(chain("x").then(links.count))
    begun.tell(PauseAsked())
    [step] = begun.live
    assert (step.parked_for, list_ready(begun), begun.claim(step).claimed) == (ParkedFor.PAUSE, [], [])
    begun.tell(ResumeAsked())
    go_on(begun)
    assert [step.attempt for step in begun.list_steps("s0")] == [1]


def test_a_resume_lets_the_next_step_run_once() -> None:
    """T-PAUSE-2."""
    begun = two()
    grant = begun.get_grant()
    begun.tell(PauseAsked())
    begun.finish(handlers.run(grant))
    begun.tell(ResumeAsked())
    assert [step.node_id for step in list_ready(begun)] == ["second"]
    go_on(begun)
    assert (begun.instance.status, get_state(begun)) == (COMPLETED, {"rounds": 1, "ok": 2})
    assert len(begun.list_steps("second")) == 1


def test_a_paused_run_is_completed_by_its_last_step() -> None:
    """Spec 4 and 6: it was in flight when the run was paused, and nothing comes after it."""
    begun = begin(chain("x").then(links.count, "only"))
    begun.claim()
    grant = begun.get_grant()
    begun.tell(PauseAsked())
    begun.finish(handlers.run(grant))
    assert (begun.instance.status, begun.instance.result) == (COMPLETED, {"rounds": 1})
    with pytest.raises(Conflict, match="not paused"):
        begun.tell(ResumeAsked())


def test_branches_that_end_while_the_run_is_paused_are_merged_and_nothing_follows() -> None:
    begun = begin(chain("x").parallel([links.count, links.fetch], "both").then(links.secretive), {"order": "o"})
    first, second = list_ready(begun)
    for step in (first, second):
        begun.claim(step)
        grant = begun.get_grant()
        if step is second:
            begun.tell(PauseAsked())
        begun.finish(handlers.run(grant), step=begun.family.steps[step.id])
    assert list_ready(begun) == []
    begun.tell(ResumeAsked())
    go_on(begun)
    assert get_state(begun) == {"order": "o", "rounds": 1, "fetched": "o", "ok": 2}


def test_a_pause_and_a_resume_around_a_running_step_leave_it_alone() -> None:
    """T-PAUSE-4."""
    begun = two()
    grant = begun.get_grant()
    begun.tell(PauseAsked())
    begun.tell(ResumeAsked())
    assert list_ready(begun) == []
    begun.finish(handlers.run(grant))
    go_on(begun)
    assert begun.instance.status is COMPLETED
    assert [step.attempt for step in begun.list_steps("first")] == [1]
    assert count_visits(begun, "second") == 1


def test_a_pause_lies_over_a_wait_and_the_signal_is_given_at_the_resume() -> None:
    """T-PAUSE-2 at a wait: the run stays paused, whatever comes."""
    begun = run(chain("x").wait_for_signal("a").then(links.count))
    begun.tell(PauseAsked())
    begun.signal("a", {"p": 1})
    assert (begun.instance.paused_at is not None, list_ready(begun)) == (True, [])
    begun.tell(ResumeAsked())
    go_on(begun)
    assert (begun.instance.status, get_state(begun)) == (COMPLETED, {"p": 1, "rounds": 1})


def test_a_run_that_comes_to_a_wait_while_it_is_paused_stays_paused() -> None:
    begun = begin(chain("x").then(links.count).wait_for_signal("a"))
    begun.claim()
    grant = begun.get_grant()
    begun.tell(PauseAsked())
    begun.finish(handlers.run(grant))
    begun.signal("a", {"p": 1})
    assert (begun.instance.paused_at is not None, list_ready(begun)) == (True, [])
    begun.tell(ResumeAsked())
    begun.tell(Delivered())
    go_on(begun)
    assert (begun.instance.status, get_state(begun)["p"]) == (COMPLETED, 1)


REFUSED: dict[str, tuple[Fact, str]] = {
    "resume": (ResumeAsked(), "instance_not_paused"),
    "retry": (RetryAsked(), "instance_not_retryable"),
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_running_run_is_neither_resumed_nor_retried(command: str) -> None:
    """T-PAUSE-3, T-RETRY-2."""
    begun = two()
    fact, code = REFUSED[command]
    with pytest.raises(Conflict) as refused:
        begun.tell(fact)
    assert refused.value.code == code
    assert begun.instance.status is RUNNING


def test_two_retries_at_once_make_one_attempt() -> None:
    """T-RETRY-2, defect 22: the second finds a run that isn't failed."""
    begun = run(chain("x").max_attempts(1).then(links.flaky, "b", times=1))
    snapshot = begun.memory.load(begun.instance.id)
    first, second = begun.decide(snapshot, RetryAsked()), begun.decide(snapshot, RetryAsked())
    begun.write(first)
    assert not begun.memory.apply(second)
    with pytest.raises(Conflict):
        begun.tell(RetryAsked())
    assert [step.attempt for step in begun.list_steps("b")] == [1, 2]


def test_a_paused_run_is_cancelled() -> None:
    """T-CANCEL-1."""
    begun = two()
    begun.tell(PauseAsked())
    begun.tell(CancelAsked())
    assert begun.instance.status is CANCELLED
    assert begun.live == []


@pytest.mark.parametrize("ended", ["completed", "cancelled"])
def test_what_has_ended_is_not_cancelled(ended: str) -> None:
    """T-CANCEL-2."""
    begun = run(chain("x").then(links.count)) if ended == "completed" else two()
    if ended == "cancelled":
        begun.tell(CancelAsked())
    with pytest.raises(Conflict) as refused:
        begun.tell(CancelAsked())
    assert (refused.value.code, str(begun.instance.status)) == ("instance_not_cancellable", ended)


def test_nothing_of_a_run_lives_while_it_waits_for_a_signal() -> None:
    """T-LIFE-2: the step that waits aside, which holds no claim, no slot and no message."""
    begun = run(chain("x").then(links.count).wait_for_signal("a"))
    [step] = begun.live
    assert (step.status, step.ready_at, step.claim_token, step.engine_id) == (StepStatus.WAITING, None, None, None)
    assert begun.instance.status is WAITING


def test_nothing_of_a_run_lives_during_a_delay() -> None:
    """T-LIFE-3: there is a timer, and its time."""
    begun = run(chain("x").then(links.count).delay(hours=1))
    [step] = begun.live
    [wait] = begun.waits
    assert (begun.instance.status, step.status) == (WAITING, StepStatus.WAITING)
    assert (wait.kind, wait.due_at) == (WaitKind.TIMER, get_time(3_600))


def test_a_delay_stands_first_last_and_often() -> None:
    """T-DELAY-3."""
    begun = run(chain("x").delay(1).then(links.count).delay(2).delay(3))
    for seconds in (1, 2, 3):
        assert begun.instance.status is WAITING
        assert begun.pass_time(seconds) == 1
        go_on(begun)
    assert (begun.instance.status, begun.now) == (COMPLETED, get_time(6))


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_wait_stands_first_and_last(place: str) -> None:
    """T-SIG-8."""
    built = chain("x").wait_for_signal("a", "k")
    built = chain("x").then(links.count).wait_for_signal("a", "k") if place == "last" else built.then(links.count)
    begun = run(built)
    assert get_state(begun) == ({"rounds": 1} if place == "last" else {})
    begun.signal("a", {"p": 1})
    go_on(begun)
    assert (begun.instance.status, get_state(begun)) == (COMPLETED, {"k": {"p": 1}, "rounds": 1})


def test_a_signal_of_another_name_is_kept_and_told() -> None:
    """T-SIG-3: it lies there, addressed to nobody yet."""
    begun = run(chain("x").wait_for_signal("a").wait_for_signal("b"))
    begun.signal("b", {"p": 1})
    [step] = begun.live
    assert step.node_id == "wait_for_a"
    assert [row.name for row in begun.family.signals.values() if row.taken_at is None] == ["b"]


def test_a_rejection_then_an_input() -> None:
    """T-AG-3."""
    built = (
        chain("x")
        .then(links.count, "draft")
        .wait_for_decision(result_key="review")
        .wait_for_input(result_key="notes")
        .then(links.publish, "apply")
    )
    begun = run(built)
    begun.signal("input", {"text": "shorter"})
    assert begun.step.node_id == "wait_for_decision"
    begun.signal("rejected", {"reason": "long"})
    begun.tell(Delivered())
    go_on(begun)
    state = get_state(begun)
    assert (state["review"]["outcome"], state["review"]["data"]) == ("rejected", {"reason": "long"})
    assert (state["notes"], begun.instance.status) == ({"text": "shorter"}, COMPLETED)
    assert count_visits(begun, "apply") == 1


def test_rounds_are_counted_across_a_lost_engine() -> None:
    """T-REP-4: the engine of the second round dies; its attempt is made again, and there are three rounds."""
    begun = begin(chain("x").then(links.count, "body").repeat_until("body", "rounds", 3))
    begun.work()
    begun.claim()
    lost = begun.step
    begun.tell(Lost(lost.id, lost.claim_token or ""), (lost.id,))
    go_on(begun)
    assert (begun.instance.status, get_state(begun)) == (COMPLETED, {"rounds": 3})
    assert [(step.visit, step.attempt) for step in begun.list_steps("body")] == [(1, 1), (2, 1), (2, 2), (3, 1)]


def test_a_limit_of_rounds_is_counted_across_a_lost_engine_too() -> None:
    """T-REP-4."""
    begun = begin(chain("x").then(links.count, "body").repeat_until("body", "never", max_iterations=2))
    begun.work()
    begun.claim()
    begun.lose()
    go_on(begun)
    assert (begun.instance.status, count_visits(begun, "body")) == (FAILED, 3)


def test_a_late_result_of_a_step_that_the_run_has_passed_changes_nothing() -> None:
    """T-TX-3."""
    begun = two()
    late = begun.step
    begun.lose()
    go_on(begun)
    before = get_state(begun), begun.history[:-1], begun.instance.status
    fact = Finished(late.id, "T1", Complete(output={"rounds": 77}))
    assert begun.tell(fact, (late.id,)).dropped == "stale_token"
    assert (get_state(begun), begun.instance.status) == (before[0], before[2])


STARTED, DONE, LOST = EventType.STEP_STARTED, EventType.STEP_COMPLETED, EventType.STEP_FAILED


def test_the_trail_of_three_steps() -> None:
    """T-LOG-1."""
    begun = run(chain("x").then(links.fetch, "a").then(links.price, "b").then(links.count, "c"), {"order": "o"})
    trail: list[tuple[str, str | None]] = [("InstanceStarted", None)]
    for node in "abc":
        trail += [(STARTED, node), (DONE, node)]
    assert tell_trail(begun) == [*trail, ("InstanceCompleted", None)]
    for step in begun.family.steps.values():
        assert step.started_at is not None
        assert step.finished_at is not None


def test_the_trail_of_a_step_that_fails_twice_and_passes() -> None:
    """T-LOG-1."""
    begun = run(chain("x").max_attempts(3).then(links.flaky, "a", times=2))
    trail: list[tuple[str, str | None]] = [("InstanceStarted", None)]
    trail += [(STARTED, "a"), (LOST, "a")] * 2 + [(STARTED, "a"), (DONE, "a"), ("InstanceCompleted", None)]
    assert tell_trail(begun) == trail
    told = [(event.data or {})["will_retry"] for event in begun.list_events(LOST)]
    assert told == [True, True]
    assert [failure.code for failure in begun.family.failures] == ["links.flaky"] * 2


def test_the_trail_of_a_delay_tells_its_end_once() -> None:
    """T-LOG-1: it waits once, and is done once."""
    begun = run(chain("x").delay(5))
    begun.pass_time(5)
    go_on(begun)
    node = "delay_0"
    kinds = [kind for kind, name in tell_trail(begun) if name == node]
    assert [kinds.count(EventType.STEP_WAITING), kinds.count(DONE)] == [1, 1]


def test_a_step_adds_to_the_state_what_it_returned_and_nothing_else() -> None:
    """T-LOG-2, step by step."""
    built = chain("x").then(links.fetch).then(links.price).then(links.secretive).wait_for_signal("a").then(links.count)
    begun = begin(built, {"order": "o"})
    seen = 0
    while begun.live:
        before = dict(begun.instance.state)
        if begun.step.status is StepStatus.WAITING:
            begun.signal("a", {"p": 1, "_q": 2})
        else:
            begun.work()
        done = [step for step in begun.last.steps if step.status is StepStatus.COMPLETED]
        for step in done:
            output = {key: value for key, value in (step.output or {}).items() if not key.startswith("_")}
            assert begun.instance.state == before | output
            seen += 1
    assert (seen, begun.instance.status) == (5, COMPLETED)


def test_commands_are_told() -> None:
    """What somebody did to a run is in its history, with who it was."""
    begun = run(chain("x").max_attempts(1).then(links.flaky, "a", times=1).wait_for_signal("go"))
    begun.tell(RetryAsked({"token": "ops"}))
    go_on(begun)
    begun.tell(PauseAsked({"token": "ops"}))
    begun.tell(ResumeAsked({"token": "ops"}))
    begun.tell(CancelAsked(actor={"token": "ops"}))
    kinds = (
        EventType.INSTANCE_RETRIED,
        EventType.INSTANCE_PAUSED,
        EventType.INSTANCE_RESUMED,
        EventType.INSTANCE_CANCELLED,
    )
    for kind in kinds:
        [event] = begun.list_events(kind)
        assert (event.data or {})["actor"] == {"token": "ops"}, kind


LIMITED: dict[str, Chain] = {
    "max_transitions": chain("x").max_transitions(1).then(links.count, "a").then(links.count, "b"),
    "max_cost_units": chain("x").max_cost_units(1).then(links.count, "a").then(links.count, "b"),
    "max_for_each_items": chain("x").max_for_each_items(1).for_each("items", links.count),
}


@pytest.mark.parametrize("limit", LIMITED)
def test_a_run_that_has_used_up_its_limit_is_not_retried(limit: str) -> None:
    """Spec 6: what was counted stays counted, so that the step would run only to fail again."""
    begun = run(LIMITED[limit], {"items": [1, 2]})
    assert begun.instance.status is FAILED
    with pytest.raises(
        Conflict, match=f"limits.{limit} of its version is used up; start it under one that allows more"
    ):
        begun.tell(RetryAsked())
    assert {step.attempt for step in begun.family.steps.values()} == {1}


def test_a_limit_of_the_engine_that_was_raised_lets_a_run_be_retried() -> None:
    low = Policy(limits={**Policy().limits, "max_transitions": 1})
    begun = run(chain("x").then(links.count, "a").then(links.count, "b"), policy=low)
    with pytest.raises(Conflict):
        begun.tell(RetryAsked())
    begun.memory.policy = Policy()
    begun.tell(RetryAsked())
    go_on(begun)
    assert (begun.instance.status, get_state(begun)) == (COMPLETED, {"rounds": 2})


def test_a_loop_that_has_gone_round_too_often_may_be_retried() -> None:
    """Its condition is looked at first, and may read what has changed since."""
    begun = run(chain("x").then(links.count, "body").repeat_until("body", "done", max_iterations=2))
    begun.tell(RetryAsked())
    assert begun.instance.status is RUNNING


def test_a_state_that_was_too_large_may_be_retried() -> None:
    """What the next attempt returns may be less."""
    begun = run(chain("x").max_state_bytes(30).then(links.fetch, order="a" * 40))
    begun.tell(RetryAsked())
    assert begun.instance.status is RUNNING


@pytest.mark.parametrize("seconds", [3_599, 3_600])
def test_a_deadline_is_not_early(seconds: int) -> None:
    """T-DL-1: before its time nobody is told of it."""
    begun = run(chain("x").must_complete_within(hours=1).wait_for_signal("a"))
    assert begun.instance.deadline_at == get_time(3_600)
    begun.now = get_time(seconds)
    begun.tell(DeadlinePassed())
    assert (begun.instance.status is FAILED) == (seconds == 3_600)


def test_a_run_that_ended_in_time_is_not_failed() -> None:
    """T-DL-3."""
    begun = run(chain("x").must_complete_within(hours=1).then(links.count))
    begun.now = get_time(7_200)
    begun.tell(DeadlinePassed())
    assert begun.instance.status is COMPLETED
    assert begun.history[-1] is EventType.INSTANCE_COMPLETED


def test_a_retry_has_the_whole_time_again() -> None:
    """T-DL-1, defect 13 of the reference: a run that is retried after its time doesn't fail at once."""
    begun = run(
        chain("x").must_complete_within(hours=1).max_attempts(1).then(links.flaky, times=1).wait_for_signal("a")
    )
    begun.now = get_time(4_000)
    begun.tell(RetryAsked())
    assert begun.instance.deadline_at == get_time(7_600)
    begun.tell(DeadlinePassed())
    go_on(begun)
    assert begun.instance.status is WAITING
