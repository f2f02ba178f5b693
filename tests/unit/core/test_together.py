"""Facts of one instance decided in one go come to what they come to one after the other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.core.changes import Changes
from korak.core.counters import PAGES, Counters
from korak.core.decide import decide_all
from korak.core.facts import CancelAsked, Claimed, Fact, Finished, Raised, ResumeAsked
from korak.core.rows import StepRun
from korak.core.snapshot import Policy
from korak.errors import Conflict
from korak.model import InstanceStatus, Probe, StepStatus
from korak.steps.results import Complete
from korak.store.transacting import Ask, Deferred, decide_each
from tests.support.bodies import body, document, find, for_each, list_ready, list_scopes, node, parallel
from tests.support.plans import line
from tests.support.runs import Run

ITEM = body(node("x", value={"ref": "item"}))
REFUSED = Raised("test.refused", "no", is_retryable=False)
MODES: list[dict[str, Any]] = [{}, {"mode": "first_success"}, {"mode": "quorum", "quorum": 3}]


def list_held(run: Run, status: StepStatus) -> list[StepRun]:
    return [step for step in run.live if step.status is status and step.counters is None]


def answer_next(run: Run, share: int, fails: set[int], *, together: bool) -> None:
    """Claim what is ready and record what runs, at most `share` of each, in one go or one by one."""
    for status in (StepStatus.QUEUED, StepStatus.RUNNING):
        steps = list_held(run, status)[:share]
        facts = [make_fact(run, step, fails) for step in steps]
        if together and facts:
            closed = tuple(step.id for step in steps)
            run.write(decide_all(run.memory.load(run.instance.id, closed), facts, run.now)[0])
        elif facts:
            for step, fact in zip(steps, facts, strict=True):
                run.tell(fact, (step.id,))


def make_fact(run: Run, step: StepRun, fails: set[int]) -> Fact:
    if step.status is StepStatus.QUEUED:
        return Claimed(step.id, run.claimant())
    scope = run.family.scopes[step.scope_id or 0]
    result = REFUSED if scope.item_index in fails else Complete("next", {"value": scope.item_index})
    return Finished(step.id, step.claim_token or "", result, run.claimant())


def look(run: Run) -> list[Any]:
    """What a run has come to, without the ids of its rows."""
    scopes = [
        [scope.item_index, scope.status, scope.output, scope.finish_order, scope.error] for scope in list_scopes(run)
    ]
    steps = sorted((step.node_id, step.visit, step.attempt, str(step.status)) for step in run.family.steps.values())
    instance = run.instance
    return [instance.status, instance.state, instance.result, instance.failure_code, scopes, steps, list(run.history)]


@given(
    items=st.integers(1, 12),
    share=st.integers(1, 5),
    fails=st.sets(st.integers(0, 11), max_size=3),
    concurrency=st.integers(1, 6),
    how=st.sampled_from(MODES),
)
def test_together_is_one_after_the_other(
    items: int, share: int, fails: set[int], concurrency: int, how: dict[str, Any]
) -> None:
    graph = document(for_each({"literal": list(range(items))}, ITEM, save={"key": "r"}, concurrency=concurrency, **how))
    runs = [Run(graph), Run(graph)]
    for run, together in zip(runs, (True, False), strict=True):
        for _ in range(60):
            answer_next(run, share, fails, together=together)
    assert look(runs[0]) == look(runs[1])
    assert runs[0].instance.is_ended


def test_each_fact_is_told_what_came_of_it() -> None:
    run = Run(document(parallel(a=body(node("one")), b=body(node("two")))))
    first, second = list_held(run, StepStatus.QUEUED)
    facts = [Claimed(first.id, run.claimant()), Claimed(first.id, run.claimant()), Claimed(second.id, run.claimant())]
    answers = decide_all(run.memory.load(run.instance.id), facts, run.now)
    assert [[grant.step.node_id for grant in answer.claimed] for answer in answers] == [["one"], [], ["two"]]
    assert [answer.dropped for answer in answers] == [None, "not_ready", None]
    assert [answer.is_empty for answer in answers] == [False, True, True]
    run.write(answers[0])
    assert [step.status for step in list_held(run, StepStatus.RUNNING)] == [StepStatus.RUNNING] * 2


def test_a_step_that_is_nudged_twice_and_parks_still_looks_at_what_came_before() -> None:
    """Its waits have no row yet: the second claim, answered in the same go, would look for them in vain."""
    run = Run(
        line(("s", "set_field", {"field": "state.x", "value": 1}), ("w", "wait", {"signal": "go"})),
        policy=Policy(walk=1),
    )
    run.signal("go", {"n": 1})
    assert run.step.status is StepStatus.QUEUED
    facts = [Claimed(run.step.id, run.claimant()), Claimed(run.step.id, run.claimant())]
    answers = decide_all(run.memory.load(run.instance.id), facts, run.now)
    assert [answer.dropped for answer in answers] == [None, "not_ready"]
    run.write(answers[0])
    assert (run.step.probe, run.step.ready_at is not None) == (Probe.LOOK, True)
    run.claim()
    assert run.instance.status is InstanceStatus.COMPLETED


def test_one_fact_that_can_t_be_answered_takes_no_other_with_it() -> None:
    run = Run(document(parallel(a=body(node("one")), b=body(node("two")))))
    [step, _] = list_held(run, StepStatus.QUEUED)
    snapshot = run.memory.load(run.instance.id)
    asks = [Ask(run.instance.id, Claimed(step.id, run.claimant())), Ask(run.instance.id, ResumeAsked())]
    first, second = decide_each({run.instance.id: snapshot}, asks, run.now)
    assert isinstance(first, Changes)
    assert (len(first.claimed), isinstance(second, Deferred)) == (1, True)
    with pytest.raises(Conflict):
        decide_all(snapshot, [ask.fact for ask in asks], run.now)


def test_what_comes_after_the_end_is_dropped() -> None:
    run = Run(document(for_each([1, 2], ITEM)), policy=Policy())
    step = list_held(run, StepStatus.QUEUED)[0]
    facts: list[Fact] = [CancelAsked(), Claimed(step.id, run.claimant())]
    answers = decide_all(run.memory.load(run.instance.id), facts, run.now)
    assert [answer.dropped for answer in answers] == [None, "not_ready"]
    assert answers[0].is_ended
    assert not answers[1].is_ended


def test_bodies_that_were_out_of_view_when_a_page_was_made_are_started_too() -> None:
    """An engine goes on from what it saw last: of what it doesn't see it may not begin the rest."""
    run = Run(document(for_each(list(range(1_200)), ITEM)))
    run.claim(find(run, "each"))
    seen = run.last.after
    is_narrow = False
    while not run.instance.is_ended:
        [container] = [step for step in run.live if step.counters is not None]
        counters = Counters.from_json(container.counters or {})
        if not is_narrow and counters.created == 2 * PAGES.size:
            seen, is_narrow = run.memory.load(run.instance.id), True
        elif container.ready_at is not None:
            run.claim(container)
            seen = run.last.after
            continue
        facts: list[Fact] = []
        facts += [
            Finished(step.id, step.claim_token or "", Complete("next", {}), run.claimant())
            for step in seen.steps.values()
            if step.status is StepStatus.RUNNING
        ][:30]
        if not facts:
            facts += [Claimed(step.id, run.claimant()) for step in list_ready(run) if step.counters is None]
        assert facts, "nothing moves by itself"
        run.write(decide_all(seen, facts, run.now)[0])
        seen = run.last.after
    assert is_narrow
    assert run.instance.status is InstanceStatus.COMPLETED
