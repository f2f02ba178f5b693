"""A state machine that drives the core with whatever can happen, beside a naive model of the same run."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from korak.core.changes import Grant
from korak.core.facts import CancelAsked, Delivered, Finished, PauseAsked, Raised, ResumeAsked, RetryAsked
from korak.core.snapshot import DEFAULT_LIMITS, Policy
from korak.errors import Conflict
from korak.model import Json, StepRole, StepStatus, WaitKind
from korak.steps.results import Complete
from tests.simulation.graphs import EVENTS, SIGNALS, Author
from tests.simulation.invariants import check_family
from tests.support import handlers, stamps
from tests.support.plans import plan_of
from tests.support.runs import Run
from tests.unit.core.naive import MAX_STEPS, Naive

POLICY = Policy(limits={**DEFAULT_LIMITS, "max_steps": MAX_STEPS}, walk=1_000)


class CoreMachine(RuleBasedStateMachine):
    """Each rule does one thing to the run and tells the model of it; then the two are compared."""

    @initialize(random=st.randoms(use_true_random=False), order=st.integers(0, 2))
    def begin(self, random: Random, order: int) -> None:
        document = Author(random, depth=3).write()
        document.pop("settings", None)
        self.run = Run(plan_of(document), given={"order": order}, policy=POLICY)
        self.model = Naive(document, order, self.run.now)

    def tick(self, seconds: float = 1.0) -> None:
        """No two things happen at one time."""
        self.run.now += timedelta(seconds=seconds)
        self.model.now = self.run.now

    def is_open(self) -> bool:
        return not self.model.is_ended

    def is_running(self) -> bool:
        return self.is_open() and self.model.phase == "running"

    @precondition(is_open)
    @rule()
    def claim(self) -> None:
        self.tick()
        self.run.claim()
        self.model.claim()

    @precondition(is_running)
    @rule(inline=st.booleans())
    def finish(self, inline: bool) -> None:
        """As the type's own handler would; with `inline` the next step begins where this one is recorded."""
        self.tick()
        step = self.run.step
        grants = [grant for grant in (self.run.last.claimed or []) if grant.step.id == step.id]
        result = handlers.run(grants[0] if grants else Grant(step, step.input))
        self.run.finish(result, inline=inline)
        self.model.finish(result, is_inline=inline)

    @precondition(is_running)
    @rule(is_retryable=st.booleans())
    def fail(self, is_retryable: bool) -> None:
        self.tick()
        result = Raised("exception", is_retryable=is_retryable)
        self.run.finish(result)
        self.model.finish(result, is_inline=False)

    @precondition(is_running)
    @rule()
    def lose(self) -> None:
        self.tick()
        self.run.lose()
        self.model.fail("lease_expired", True, is_crash=True)

    @precondition(is_running)
    @rule()
    def hand_back(self) -> None:
        self.tick()
        self.run.hand_back()
        self.model.hand_back()

    @precondition(is_open)
    @rule(seconds=st.sampled_from([1, 10, 50, 1_000]))
    def pass_time(self, seconds: float) -> None:
        """The clock goes on, and a waker stamps what is due."""
        self.tick(seconds)
        stamps.stamp_due(self.run.family, self.run.now)
        self.model.stamp()
        if self.model.retry is not None:
            self.model.is_ready = self.run.step.ready_at is not None

    @precondition(is_open)
    @rule(name=st.sampled_from(SIGNALS), number=st.integers(0, 9))
    def signal(self, name: str, number: int) -> None:
        self.tick()
        payload: Json = {"number": number}
        self.run.signal(name, payload)
        self.model.signal(name, payload)

    @precondition(is_open)
    @rule(name=st.sampled_from(EVENTS), order=st.integers(0, 2), is_told=st.booleans())
    def emit(self, name: str, order: int, is_told: bool) -> None:
        self.tick()
        payload: Any = {"order": order}
        self.run.emit(name, payload, f"e{len(self.model.sent)}")
        self.model.emit(name, payload)
        sent = self.model.sent[-1]
        if is_told and sent.visit != "nobody":
            self.run.tell(Delivered())
            self.model.deliver()

    @precondition(is_open)
    @rule()
    def cancel(self) -> None:
        self.tick()
        step = self.run.step
        self.run.tell(CancelAsked())
        was_running = self.model.phase == "running"
        self.model.cancel()
        if was_running:
            self.run.lose(step)
            self.model.hooks *= 2

    @precondition(is_open)
    @rule()
    def pause(self) -> None:
        self.tick()
        if self.model.is_paused:
            with pytest.raises(Conflict):
                self.run.tell(PauseAsked())
        else:
            self.run.tell(PauseAsked())
            self.model.pause()

    @precondition(lambda self: self.is_open() and self.model.is_paused)
    @rule()
    def resume(self) -> None:
        self.tick()
        self.run.tell(ResumeAsked())
        self.model.resume()

    @precondition(lambda self: self.model.status == "failed" and self.model.code != "step_limit_exceeded")
    @rule()
    def retry(self) -> None:
        self.tick()
        self.run.tell(RetryAsked())
        self.model.retry_by_hand()

    @rule(place=st.integers(0, 30))
    def come_late(self, place: int) -> None:
        """Whoever holds no token, or one that is lost, changes nothing."""
        steps = list(self.run.family.steps.values())
        step = steps[place % len(steps)]
        token = "nobody's" if step.status in (StepStatus.RUNNING, StepStatus.CANCELLED) else step.claim_token
        changes = self.run.tell(Finished(step.id, token or "", Complete()), (step.id,))
        assert (changes.dropped, changes.is_empty) == ("stale_token", True)

    @invariant()
    def both_stand_alike(self) -> None:
        instance, model = self.run.instance, self.model
        check_family(self.run.memory, None, self.run.last, is_whole=True)
        assert instance.steps_count == model.steps
        assert (instance.ended_at is not None) == model.is_ended
        assert instance.failure_code == (model.code or None)
        assert sum(hook.role is StepRole.CANCEL for hook in self.run.hooks) == model.hooks
        assert {key: value for key, value in instance.state.items() if not is_dated(key, value)} == {
            key: value for key, value in model.state.items() if not is_dated(key, value)
        }
        if model.is_ended:
            assert instance.status == model.status
        else:
            self.both_are_at_the_same_step()

    def both_are_at_the_same_step(self) -> None:
        step, model = self.run.step, self.model
        assert (step.node_id, step.status, step.attempt) == (model.node, StepStatus(model.phase), model.attempt)
        assert step.visit == model.visits[model.node]
        assert (step.ready_at is not None) == model.is_ready
        assert (self.run.instance.paused_at is not None) == model.is_paused
        is_retried = any(wait.kind is WaitKind.RETRY for wait in self.run.waits)
        assert is_retried == (model.retry is not None)
        waits = [(wait.kind, wait.event_key, wait.due_at) for wait in self.run.waits if wait.kind is not WaitKind.RETRY]
        assert sorted(waits, key=str) == sorted(((wait.kind, wait.name, wait.due) for wait in model.waits), key=str)


def is_dated(key: str, value: Any) -> bool:
    """The model doesn't render dates."""
    return key == "due_at" or value is ... or (isinstance(value, dict) and "due_at" in value)


TestCore = CoreMachine.TestCase
TestCore.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
