"""What waits to be written: a result of an attempt, or a nudge for a step that something says is ready."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TypeAlias

from korak.core.changes import Changes
from korak.core.facts import Claimed, Finished, HandedBack
from korak.core.snapshot import Snapshot
from korak.core.starting import grant_again
from korak.model import StepStatus
from korak.store.transacting import Ask
from korak_engine.work import Work


@dataclass(eq=False, slots=True)
class Result:
    """What became of an attempt, on its way into the database. A Finished holds the token of the step after it.

    `is_settled`: the engine was told what came of it, which happens once.
    """

    work: Work
    fact: Finished | HandedBack
    skips: int = 0
    is_settled: bool = False

    @property
    def instance_id(self) -> int:
        """Whose it is."""
        return self.work.step.instance_id

    @property
    def snapshot(self) -> Snapshot | None:
        """What was seen as the attempt began."""
        return self.work.snapshot

    @property
    def ask(self) -> Ask:
        """The same for the way under the lock."""
        return Ask(self.instance_id, self.fact, self.work.step.id)

    def settle(self) -> None:
        """The engine is told now."""
        self.is_settled = True

    def can_be_told_from(self, _: Snapshot) -> bool:
        """Whether a snapshot that stands is all that its decision needs."""
        return True


@dataclass(eq=False, slots=True)
class Nudge:
    """A step that something says is ready, on its way to a claim. The claim's token is made once.

    `is_settled`: it was answered, so that its slot is no longer kept for it. `answered` is there where it was handed on
    to those who write what runs here, and done when they have answered it.
    """

    step_id: int
    fact: Claimed | None = None
    instance_id: int = 0
    skips: int = 0
    is_settled: bool = False
    answered: asyncio.Future[None] | None = None

    @property
    def snapshot(self) -> Snapshot | None:
        """What it comes with: nothing."""
        return None

    @property
    def ask(self) -> Ask:
        """The same for the way under the lock."""
        assert self.fact is not None, "find its instance first"
        return Ask(self.instance_id, self.fact)

    def settle(self) -> None:
        """It was answered."""
        self.is_settled = True
        if self.answered is not None and not self.answered.done():
            self.answered.set_result(None)

    def can_be_told_from(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot that stands is all that its decision needs."""
        return is_told_by(snapshot, self.step_id)


Entry: TypeAlias = Result | Nudge

MOST_SKIPS = 3
"""How often a nudge is passed over; then it is for whoever holds the instance, or for the next one who is told."""


def is_told_by(snapshot: Snapshot, step_id: int) -> bool:
    """Whether a claim can be decided from a snapshot that stands: what waits may have been sent something."""
    step = snapshot.steps.get(step_id)
    return step is not None and step.status is StepStatus.QUEUED and step.ready_at is not None


def adopt(changes: Changes, fact: Claimed | Finished | HandedBack | None) -> Changes:
    """What was committed although its answer was lost: the step that runs under the token which the fact brought."""
    claimant = fact.claimant if isinstance(fact, (Claimed, Finished)) else None
    if claimant is not None and changes.dropped is not None and not changes.claimed:
        changes.claimed = grant_again(changes.after, claimant.token)
    return changes
