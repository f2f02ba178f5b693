"""Waits: what fires them, what they cancel, what came before and what comes too late (WT-1 to WT-17)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from korak.core.facts import Delivered, PauseAsked, Raised, ResumeAsked
from korak.graphs.builder import ref
from korak.model import DeliveryKind, EventType, InstanceStatus, JsonObject, Probe, StepStatus, WaitKind, WaitStatus
from korak.steps.results import Complete, Wait
from korak.steps.waits import WaitSpec
from tests.support.plans import line
from tests.support.runs import Run

MISSING: JsonObject = {"ref": "state.ready", "op": "eq", "value": True}


def parked(spec: WaitSpec, **output: Any) -> Run:
    run = Run(line(("a", "test.ask", {"signal": "never"})))
    run.claim()
    run.finish(Wait(spec, output))
    return run


def get_signal(run: Run) -> JsonObject:
    return run.get_grant().step.resume_signal or {}


def test_rc_4_a_parked_step_has_its_waits_and_the_run_waits() -> None:
    run = parked(WaitSpec.event("paid", {"order": 1}).timeout(60, "late"), asked=1)
    assert (run.step.status, run.step.output, run.instance.status) == (
        StepStatus.WAITING,
        {"asked": 1},
        InstanceStatus.WAITING,
    )
    assert [(wait.kind, wait.status, wait.outcome) for wait in run.waits] == [
        (WaitKind.EVENT, WaitStatus.PENDING, None),
        (WaitKind.TIMEOUT, WaitStatus.PENDING, "late"),
    ]


def test_wt_1_a_timer_fires_on_the_exact_second() -> None:
    run = parked(WaitSpec.timer(60))
    assert run.pass_time(59.999) == 0
    assert run.claim().dropped == "not_ready"
    assert run.pass_time(0.001) == 1
    run.claim()
    assert get_signal(run)["kind"] == "timer"


def test_wt_2_an_event_wait_takes_what_fits_its_match() -> None:
    run = parked(WaitSpec.event("paid", {"order": 1}))
    run.emit("paid", {"order": 2}, "e1")
    run.emit("settled", {"order": 1}, "e2")
    assert run.claim().dropped == "nothing_due"
    run.emit("paid", {"order": 1, "sum": 5}, "e3")
    run.tell(Delivered())
    run.claim()
    assert get_signal(run)["payload"] == {"order": 1, "sum": 5}


def test_wt_2_a_signal_fires_an_event_wait_of_its_name() -> None:
    run = parked(WaitSpec.event("paid", {"order": 1}))
    run.signal("paid", {"order": 1})
    run.claim()
    assert get_signal(run)["kind"] == "event"


def test_wt_3_a_false_condition_is_looked_at_again() -> None:
    run = parked(WaitSpec.condition({"ref": "state.ready", "op": "not_null"}, 90))
    run.pass_time(90)
    assert run.claim().dropped == "nothing_due"
    [wait] = run.waits
    assert (wait.due_at, wait.sent_at) == (run.now + timedelta(seconds=90), None)


def test_wt_3_a_condition_that_can_not_be_looked_at_fails_the_step() -> None:
    run = parked(WaitSpec.condition(MISSING))
    run.pass_time(900)
    run.claim()
    assert (run.instance.status, run.instance.failure_code) == (InstanceStatus.FAILED, "missing_value")


def test_wt_5_12_a_time_limit_resumes_with_its_outcome() -> None:
    run = parked(WaitSpec.signal("go").timeout(60, "late"))
    run.pass_time(61)
    run.claim()
    assert (get_signal(run)["kind"], get_signal(run)["outcome"]) == ("timeout", "late")


@pytest.mark.parametrize("is_event", [True, False])
def test_wt_6_the_first_to_fire_cancels_the_others(is_event: bool) -> None:
    run = parked(WaitSpec.signal("go").timeout(60))
    if is_event:
        run.signal("go")
    else:
        run.pass_time(60)
    run.claim()
    fired = [wait.kind for wait in run.family.waits.values() if wait.status is WaitStatus.FIRED]
    assert fired == [WaitKind.SIGNAL if is_event else WaitKind.TIMEOUT]
    assert run.waits == []


def test_wt_11_a_timer_beside_another_wait_resumes_once() -> None:
    run = parked(WaitSpec.timer(60).also_at(60))
    assert run.pass_time(60) == 2
    run.claim()
    assert len(run.list_events(EventType.STEP_RESUMED)) == 1
    assert run.waits == []


def test_the_earlier_of_two_arrivals_wins() -> None:
    run = parked(WaitSpec.signal("go").timeout(60, "late"))
    run.pass_time(30)
    run.send(DeliveryKind.SIGNAL, "go")
    run.pass_time(31)
    run.claim()
    assert get_signal(run)["kind"] == "signal"


def test_wt_7_a_wait_whose_step_moved_on_is_cancelled() -> None:
    run = parked(WaitSpec.signal("go").timeout(60).probe())
    run.claim()
    run.finish(Complete())
    assert [wait.status for wait in run.family.waits.values()] == [WaitStatus.CANCELLED] * 2


def test_wt_8_a_signal_that_comes_while_the_step_runs_is_given_when_it_parks() -> None:
    run = Run(line(("a", "test.ask", {"signal": "go"})))
    run.claim()
    run.signal("go", 1)
    assert [row.buffered_at for row in run.family.signals.values()] == [run.now]
    run.finish(Wait(WaitSpec.signal("go")))
    assert run.step.probe is Probe.LOOK
    run.claim()
    assert get_signal(run)["payload"] == 1
    assert [row.taken_at for row in run.family.signals.values()] == [run.now]


def test_wt_8_a_late_event_of_a_step_that_moved_on_is_discarded() -> None:
    run = parked(WaitSpec.event("paid", {"order": 1}).probe())
    run.claim()
    run.emit("paid", {"order": 1})
    run.finish(Complete("timed_out"))
    run.tell(Delivered())
    assert [row.taken_at for row in run.family.signals.values()] == [run.now]
    assert run.list_events(EventType.SIGNAL_RECEIVED) == []


def test_wt_9_an_event_during_a_probe_is_given_after_the_step_parks_again() -> None:
    run = parked(WaitSpec.event("paid", {"order": 1}).probe())
    run.claim()
    run.emit("paid", {"order": 1}, is_kept=False)
    run.tell(Delivered())
    run.finish(Wait(WaitSpec.event("paid", {"order": 1})))
    run.claim()
    assert get_signal(run)["kind"] == "event"


def test_wt_9_a_probe_that_fails_is_tried_again_as_a_probe_and_loses_no_event() -> None:
    run = parked(WaitSpec.event("paid", {"order": 1}).probe())
    run.claim()
    run.emit("paid", {"order": 1}, is_kept=False)
    run.finish(Raised("exception"))
    run.tell(Delivered())
    run.pass_time(1_000)
    run.claim()
    assert (get_signal(run)["kind"], run.step.attempt) == ("probe", 2)
    run.finish(Wait(WaitSpec.event("paid", {"order": 1})))
    run.claim()
    assert get_signal(run)["kind"] == "event"


def test_wt_10_a_probe_resumes_once_after_parking() -> None:
    run = parked(WaitSpec.signal("go").probe())
    assert (run.step.probe, run.step.ready_at) == (Probe.RESUME, run.now)
    run.claim()
    assert get_signal(run)["kind"] == "probe"
    run.finish(Wait(WaitSpec.signal("go")))
    assert run.claim().dropped == "nothing_due"
    assert run.step.probe is None


@pytest.mark.parametrize("since", [None, "now"])
def test_wt_14_a_kept_event_is_taken_by_who_waits_later_unless_it_says_now(since: Any) -> None:
    run = Run(line(("a", "test.ask", {"signal": "never"})))
    run.emit("paid", {"order": 1, "sum": 7})
    run.claim()
    run.finish(Wait(WaitSpec.event("paid", {"order": 1}, since=since)))
    changes = run.claim()
    assert (get_signal(run)["payload"] if changes.claimed else None) == (None if since else {"order": 1, "sum": 7})


def test_a_kept_event_is_consumed_once_by_a_run() -> None:
    spec = WaitSpec.event("paid", {"order": 1})
    run = Run(line(("a", "test.ask", {"signal": "never"})))
    run.emit("paid", {"order": 1})
    run.claim()
    run.finish(Wait(spec))
    run.claim()
    run.finish(Wait(spec))
    assert run.claim().dropped == "nothing_due"


def test_a_wait_with_no_match_never_looks_back() -> None:
    run = Run(line(("a", "test.ask", {"signal": "never"})))
    run.emit("paid", {})
    run.claim()
    run.finish(Wait(WaitSpec.event("paid")))
    assert run.claim().dropped == "nothing_due"


def test_all_of_several_signals_wake_the_step_together() -> None:
    run = Run(line(("w", "wait", {"signals": ["one", "two"]})))
    run.signal("two", 2)
    run.signal("two", 22)
    run.claim()
    assert run.instance.status is InstanceStatus.WAITING
    run.signal("one", 1)
    assert run.instance.result == {"signals": {"one": 1, "two": 2}}
    assert [row.taken_at is None for row in run.family.signals.values()] == [False, True, False]


def test_a_second_signal_for_one_of_several_is_kept_and_not_sent_for_ever() -> None:
    run = Run(line(("w", "wait", {"signals": ["one", "two"]})))
    run.claim()
    run.signal("two", 2)
    run.signal("two", 22)
    assert [row.buffered_at for row in run.family.signals.values()] == [None, run.now]


def test_two_waits_of_one_name_take_two_signals() -> None:
    run = parked(WaitSpec.signals(["go", "go"]))
    run.signal("go", 1)
    assert not run.claim().claimed
    run.signal("go", 2)
    run.claim()
    assert [wait.payload for wait in run.family.waits.values()] == [1, 2]


def test_signals_for_two_waits_in_a_row_are_both_given() -> None:
    run = Run(line(("w", "wait", {"signal": "one"}), ("v", "wait", {"signal": "two"})))
    run.send(DeliveryKind.SIGNAL, "one")
    run.send(DeliveryKind.SIGNAL, "two", 2)
    run.tell(Delivered())
    assert (run.step.node_id, run.step.probe) == ("v", Probe.LOOK)
    run.claim()
    assert run.instance.result == {"key": "two", "payload": 2}
    woken = [*run.list_steps("w"), *run.list_steps("v")]
    assert [(step.resume_signal or {})["wait"] for step in woken] == list(run.family.waits)


def test_a_spec_that_can_not_be_waited_for_fails_the_step_alone() -> None:
    for spec in (WaitSpec.timer("tomorrow"), WaitSpec.timer(1e300), WaitSpec.event("e", {"a": float("nan")})):
        run = parked(spec)
        assert run.instance.failed_node_id == "a"
        assert run.instance.failure_code != "invalid_graph"


def test_a_correlation_takes_the_value_from_the_state() -> None:
    built = line(
        ("s", "set_field", {"field": "state.order", "value": ref("input.order")}),
        ("w", "wait", {"signal": "go", "correlation": "order"}),
    )
    run = Run(built, given={"order": 5})
    run.signal("go", {"order": 4})
    assert run.live
    run.signal("go", {"order": 5})
    assert run.instance.status is InstanceStatus.COMPLETED


def test_a_delivery_is_left_until_the_run_goes_on_while_it_is_paused() -> None:
    run = parked(WaitSpec.event("paid", {"order": 1}))
    run.tell(PauseAsked())
    run.emit("paid", {"order": 1}, is_kept=False)
    run.tell(Delivered())
    assert not [row for row in run.family.signals.values() if row.taken_at]
    run.tell(ResumeAsked())
    run.claim()
    assert get_signal(run)["kind"] == "event"
