"""`decide(snapshot, fact, now)`: what follows from what happened. Start reading here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from korak.core import (
    claiming,
    commanding,
    containers,
    delivering,
    failing,
    forking,
    limiting,
    recording,
    retries,
    rewinding,
    starting,
    telling,
    undoing,
    walking,
)
from korak.core.changes import Changes, Grant, echo
from korak.core.draft import Draft
from korak.core.facts import (
    Backward,
    Broken,
    CancelAsked,
    Claimed,
    DeadlinePassed,
    Delivered,
    Fact,
    Finished,
    ForkAsked,
    Forked,
    Freed,
    HandedBack,
    Lost,
    PauseAsked,
    Refused,
    ResumeAsked,
    RetryAsked,
    RewindAsked,
    Started,
)
from korak.core.snapshot import Snapshot


def decide(snapshot: Snapshot, fact: Fact, now: datetime) -> Changes:
    """The changes that follow from a fact. Commands that lie in the snapshot's deliveries are obeyed before it.

    Raises Conflict where a command asks what the state forbids; then nothing changes.
    """
    return decide_all(snapshot, [fact], now)[0]


def decide_all(snapshot: Snapshot, facts: Sequence[Fact], now: datetime) -> list[Changes]:
    """The changes that follow from several facts of one instance, one after the other: the first has them all.

    Those of the others are its echoes: they tell what became of their fact. What `decide` raises for one it raises for
    all of them.
    """
    draft = Draft(snapshot, now)
    if not isinstance(facts[0], Broken):
        delivering.obey(draft)
    answers = [_answer_next(draft, fact) for fact in facts]
    starting.drop_cancelled(draft, [granted for granted, _ in answers])
    if draft.instance.status is not None:
        commanding.settle_status(draft)
    if draft.instance.depth and draft.instance.is_ended and not snapshot.instance.is_ended:
        telling.tell_end(draft)
    if draft.plan.has_flow:
        limiting.settle(draft)
    changes = draft.finish()
    changes.claimed, changes.dropped = answers[0]
    if len(answers) == 1:
        return [changes]
    return [changes, *(echo(changes, claimed, dropped) for claimed, dropped in answers[1:])]


def _answer_next(draft: Draft, fact: Fact) -> tuple[list[Grant], str | None]:
    """Answer one fact; what runs by it, and why it was dropped."""
    draft.begin_fact()
    _answer(draft, fact)
    containers.proceed(draft)
    undoing.proceed(draft)
    if draft.instance.depth:
        telling.answer(draft, is_busy=undoing.is_busy(draft))
    return draft.claimed, draft.dropped


def _answer(draft: Draft, fact: Fact) -> None:
    match fact:
        case Finished(step, token, result, claimant, left):
            draft.claimant = claimant
            recording.record(draft, step, token, result, left)
        case Claimed(step, claimant):
            draft.claimant = claimant
            claiming.claim(draft, step, claimant)
        case Started():
            walking.set_out(draft)
        case Lost(step, token):
            recording.lose(draft, step, token)
        case HandedBack(step, token):
            recording.hand_back(draft, step, token)
        case Delivered():
            delivering.deliver(draft)
        case Freed(ulid):
            retries.hasten(draft, ulid)
        case _:
            _command(draft, fact)


def _command(
    draft: Draft,
    fact: Refused | DeadlinePassed | CancelAsked | PauseAsked | ResumeAsked | RetryAsked | Broken | Backward,
) -> None:
    match fact:
        case Refused(code, params):
            failing.refuse(draft, code, params)
        case Broken(code, detail):
            failing.give_up(draft, code, detail)
        case DeadlinePassed():
            commanding.expire(draft)
        case CancelAsked(reason, actor):
            commanding.cancel(draft, reason, actor)
        case PauseAsked(actor):
            commanding.pause(draft, actor)
        case ResumeAsked(actor):
            commanding.resume(draft, actor)
        case RetryAsked(actor):
            commanding.retry(draft, actor)
        case _:
            _go_back(draft, fact)


def _go_back(draft: Draft, fact: Backward) -> None:
    match fact:
        case RewindAsked(to, actor):
            rewinding.rewind(draft, to, actor)
        case ForkAsked(ulid, to, actor):
            made = forking.fork(draft, ulid, to, actor)
            draft.fork = decide(made, Forked(draft.instance.ulid, to, actor), draft.now)
        case Forked(source, to, actor):
            forking.begin(draft, source, to, actor)
        case _:
            assert_never(fact)
