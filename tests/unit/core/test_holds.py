"""Holds in the decisions that make a step running: whoever asked them says by which version (DESIGN section 9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from korak.core.changes import Changes
from korak.core.decide import decide_all
from korak.core.facts import Claimed, Delivered, Finished, Started, look_again
from korak.core.holds import NO_HOLDS, Holds
from korak.core.snapshot import Claimant
from korak.model import HoldKind, ParkedFor, StepStatus
from korak.steps.results import Complete, Wait
from korak.steps.waits import WaitSpec
from tests.support.bodies import body, document, node, parallel
from tests.support.plans import line
from tests.support.runs import Run

HELD = Holds(frozenset({("*", HoldKind.STEP_TYPE, "test.ok")}), 3)
FREE = Holds(version=4)


def two() -> Run:
    return Run(line(("a", "test.ok", {}), ("b", "test.ok", {})))


def claimant(run: Run, holds: Holds, *queues: str) -> Claimant:
    return replace(run.claimant(*queues), holds=holds)


def begin(run: Run) -> Changes:
    """Claim what is ready, with nothing held."""
    return run.tell(Claimed(run.step.id, claimant(run, FREE)))


@pytest.fixture
def run() -> Run:
    """Two steps in a row, the first ready; the store holds what the engine knows."""
    run = two()
    run.memory.holds = FREE
    return run


def test_a_claim_says_by_which_holds_it_began(run: Run) -> None:
    changes = begin(run)
    assert changes.claimed
    assert changes.holds == 4


def test_so_does_one_that_parks(run: Run) -> None:
    run.memory.holds = HELD
    changes = run.tell(Claimed(run.step.id, claimant(run, HELD)))
    assert (changes.dropped, changes.holds, run.step.parked_for) == ("held", 3, ParkedFor.HOLD)


@pytest.mark.parametrize("holds", [FREE, HELD])
def test_so_does_a_record_whether_the_next_step_runs_in_it_or_not(run: Run, holds: Holds) -> None:
    begin(run)
    run.memory.holds = holds
    first = run.step
    changes = run.tell(Finished(first.id, first.claim_token or "", Complete(), claimant(run, holds)), (first.id,))
    assert changes.holds == holds.version
    assert run.step.status is (StepStatus.RUNNING if holds is FREE else StepStatus.QUEUED)


def test_a_resume_says_so_too(run: Run) -> None:
    begin(run)
    run.finish(Wait(WaitSpec.timer("PT1M")))
    run.pass_time(60)
    run.memory.holds = HELD
    changes = run.tell(Claimed(run.step.id, claimant(run, HELD)))
    assert (changes.holds, run.step.parked_for) == (3, ParkedFor.HOLD)


def test_what_asks_no_holds_names_none(run: Run) -> None:
    assert run.last.holds is None
    begin(run)
    assert run.hand_back().holds is None
    begin(run)
    elsewhere = claimant(run, HELD, "other")
    first = run.step
    changes = run.tell(Finished(first.id, first.claim_token or "", Complete(), elsewhere), (first.id,))
    assert (changes.holds, run.step.status) == (None, StepStatus.QUEUED)


def test_all_facts_of_one_decision_go_by_the_same_holds() -> None:
    """Two branches are claimed together by nudges of which one was made before the engine looked again."""
    run = Run(document(parallel(a=body(node("one")), b=body(node("two")))))
    steps = [step for step in run.live if step.status is StepStatus.QUEUED]
    facts = [Claimed(step.id, claimant(run, holds)) for step, holds in zip(steps, (HELD, FREE), strict=True)]
    first, second = decide_all(run.memory.load(run.instance.id), facts, run.now)
    assert (first.dropped, second.dropped, first.holds) == ("held", "held", 3)


def test_what_was_decided_by_other_holds_changes_nothing(run: Run) -> None:
    snapshot = run.memory.load(run.instance.id)
    changes = run.decide(snapshot, Claimed(run.step.id, claimant(run, HELD)))
    assert not run.memory.apply(changes)
    assert run.step.parked_for is None


def test_a_fact_is_asked_again_under_its_own_token() -> None:
    run = two()
    fact = Claimed(run.step.id, claimant(run, HELD))
    again = look_again(fact, FREE)
    assert isinstance(again, Claimed)
    assert (again.claimant.holds, again.claimant.token) == (FREE, fact.claimant.token)
    assert look_again(again, FREE) is again
    for other in (Started(), Delivered(), Finished(1, "t", Complete())):
        assert look_again(other, FREE) is other


def test_without_a_hold_nothing_is_covered() -> None:
    assert not NO_HOLDS.cover(two().step, "order")
    assert NO_HOLDS.version == 0
