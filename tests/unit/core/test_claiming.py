"""The claim and what it refuses (CL-1 to CL-9, JB-9); the record by token (RC-1 to RC-6); lost and returned steps."""

from __future__ import annotations

from datetime import timedelta

from korak.core.facts import CancelAsked, Claimed, Finished, PauseAsked, ResumeAsked
from korak.core.snapshot import Policy
from korak.core.starting import grant_again
from korak.graphs.builder import ref
from korak.model import EventType, InstanceStatus, ParkedFor, StepStatus
from korak.steps.results import Complete
from tests.support.plans import line
from tests.support.runs import Run


def one(**config: int) -> Run:
    return Run(line(("a", "test.ok", dict(config))))


def test_cl_5_a_claim_makes_the_step_running_under_a_token_and_a_lease() -> None:
    run = one(value=1)
    changes = run.claim()
    step = run.step
    assert (step.status, step.claim_token, step.engine_id) == (StepStatus.RUNNING, "T1", 7)
    assert step.lease_until == run.now + timedelta(seconds=330)
    assert (step.ready_at, step.sent_at) == (None, None)
    assert changes.claimed[0].input == {"value": 1}
    assert run.history[-1] is EventType.STEP_STARTED


def test_cl_4_jb_9_a_second_nudge_changes_nothing() -> None:
    run = one()
    step = run.step
    run.claim(step)
    version = run.instance.lock_version
    changes = run.claim(step)
    assert (changes.dropped, changes.claimed, changes.is_empty) == ("not_ready", [], True)
    assert run.instance.lock_version == version


def test_cl_3_a_nudge_for_an_ended_run_changes_nothing() -> None:
    run = one()
    step = run.step
    run.tell(CancelAsked())
    assert run.claim(step).dropped == "not_ready"
    assert run.history[-1] is EventType.INSTANCE_CANCELLED


def test_a_step_that_is_not_ready_is_not_claimed() -> None:
    """A doubled message can't start a retry early."""
    run = Run(line(("a", "test.flaky", {})))
    run.work()
    assert (run.step.attempt, run.step.ready_at) == (2, None)
    assert run.claim().dropped == "not_ready"


def test_ex_4_the_input_is_resolved_and_recorded_with_the_claim() -> None:
    run = Run(line(("a", "test.ok", {"value": ref("input.x")})), given={"x": [1, 2]})
    run.claim()
    assert run.step.input == {"value": [1, 2]}


def test_lm_7_a_large_input_is_recorded_as_a_marker_and_still_runs() -> None:
    policy = Policy(limits={**Policy().limits, "max_input_bytes": 20})
    for text, stored in (("x" * 8, {"value": "x" * 8}), ("x" * 9, {"truncated": True, "bytes": 21})):
        run = Run(line(("a", "test.ok", {"value": ref("input.x")})), given={"x": text}, policy=policy)
        run.claim()
        assert (run.step.input, run.get_grant().input) == (stored, {"value": text})


def test_lm_7_a_step_adopted_after_a_lost_answer_gets_its_whole_input() -> None:
    policy = Policy(limits={**Policy().limits, "max_input_bytes": 20})
    run = Run(line(("a", "test.ok", {"value": ref("input.x")})), given={"x": "x" * 30}, policy=policy)
    token = run.claim().claimed[0].step.claim_token
    repeated = run.tell(Claimed(run.step.id, run.claimant()))
    assert repeated.dropped == "not_ready"
    [grant] = grant_again(repeated.after, token or "")
    assert (grant.step.id, grant.input) == (run.step.id, {"value": "x" * 30})
    assert grant_again(repeated.after, "another") == []


def test_an_input_that_does_not_fit_fails_in_the_claim() -> None:
    run = Run(line(("a", "test.price", {"order": ref("input.order")})), given={"order": 5})
    assert run.claim().claimed == []
    assert run.instance.failure_code == "invalid_input"
    assert (run.instance.failure_params or {})["pointer"] == "/order"


def test_an_engine_without_the_type_parks_the_step_and_uses_no_attempt() -> None:
    run = Run(line(("a", "test.ok", {})), runs=frozenset())
    run.claim()
    assert (run.step.status, run.step.attempt) == (StepStatus.QUEUED, 1)
    assert (run.step.parked_for, run.step.ready_at) == (ParkedFor.ENGINE, None)


def test_a_resume_that_no_engine_here_can_run_keeps_its_signal() -> None:
    run = Run(line(("a", "test.ask", {"signal": "go"})))
    run.work()
    run.runs = frozenset()
    run.signal("go", {"x": 1})
    run.claim()
    assert (run.step.status, run.step.parked_for) == (StepStatus.QUEUED, ParkedFor.ENGINE)
    run.runs = None
    run.memory.families[1].steps[run.step.id].parked_for = None
    run.memory.families[1].steps[run.step.id].ready_at = run.now
    run.work()
    assert run.instance.result == {"kind": "signal", "payload": {"x": 1}}


def test_rc_2_a_result_under_a_lost_token_is_dropped() -> None:
    run = one()
    run.claim()
    version = run.instance.lock_version
    changes = run.tell(Finished(run.step.id, "another", Complete()))
    assert (changes.dropped, changes.is_empty) == ("stale_token", True)
    assert (run.step.status, run.instance.lock_version) == (StepStatus.RUNNING, version)


def test_rc_2_a_late_holder_changes_nothing() -> None:
    run = one()
    run.claim()
    lost = run.step
    run.lose()
    run.pass_time(60)
    run.claim()
    assert run.finish(Complete(output={"late": True}), step=lost).dropped == "stale_token"
    assert (run.step.attempt, run.step.status) == (2, StepStatus.RUNNING)


def test_a_step_that_parks_or_is_handed_back_holds_no_claim() -> None:
    """What is heard again under that token, after an answer of a commit was lost, is stale."""
    run = Run(line(("a", "test.ask", {"signal": "go"})))
    run.claim()
    claimed = run.step
    run.hand_back()
    assert (run.step.claim_token, run.step.engine_id, run.step.status) == (None, None, StepStatus.QUEUED)
    run.work()
    assert (run.step.claim_token, run.step.lease_until, run.step.status) == (None, None, StepStatus.WAITING)
    assert run.finish(Complete(), step=claimed).dropped == "stale_token"


def test_a_step_handed_back_is_the_same_attempt_and_ready() -> None:
    run = one()
    run.claim()
    before = run.step
    run.hand_back()
    assert (run.step.id, run.step.attempt, run.step.ready_at) == (before.id, 1, run.now)
    assert run.instance.status is InstanceStatus.RUNNING


def test_jb_12_a_lost_step_is_tried_again_under_the_same_key() -> None:
    run = one()
    run.claim()
    lost = run.step
    run.lose()
    [first, second] = run.list_steps("a")
    assert (first.status, first.error_code, first.error_retryable) == (StepStatus.FAILED, "lease_expired", True)
    assert (second.attempt, second.idempotency_key, second.execution_id) == (2, lost.idempotency_key, lost.execution_id)
    assert second.retry_of == lost.ulid


def test_losing_twice_is_losing_once() -> None:
    run = one()
    run.claim()
    lost = run.step
    run.lose()
    assert run.lose(lost).dropped == "stale_token"
    assert len(run.list_steps("a")) == 2


def test_a_nudge_while_paused_keeps_what_the_step_is_owed() -> None:
    """A stamp written without the lock may make a paused run's step ready; the claim puts it back, probe and all."""
    run = Run(line(("a", "test.ask", {"signal": "go", "probe": True})))
    run.work()
    run.tell(PauseAsked())
    run.memory.families[1].steps[run.step.id].ready_at = run.now
    assert run.claim().dropped == "paused"
    assert (run.step.status, run.step.ready_at) == (StepStatus.WAITING, None)
    run.tell(ResumeAsked())
    run.claim()
    assert (run.get_grant().step.resume_signal or {})["kind"] == "probe"


def test_ready_is_what_this_decision_made_ready() -> None:
    run = one()
    step = run.step
    assert step.ready_at == run.now
    assert run.tell(Claimed(step.id + 1_000, run.claimant())).ready == []
    assert run.tell(PauseAsked()).ready == []
    assert [ready.id for ready in run.tell(ResumeAsked()).ready] == [step.id]
