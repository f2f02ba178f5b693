"""What can happen to an instance: the closed set that `decide` answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, TypeAlias

from korak.core.holds import Holds
from korak.core.opening import Opening
from korak.core.snapshot import Claimant
from korak.model import FailureCategory, JsonObject
from korak.steps.artifacts import Made
from korak.steps.contract import Complete, Fail, Wait
from korak.steps.waits import Due


@dataclass(frozen=True, slots=True)
class Started:
    """The instance was accepted: walk from its trigger."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The instance was not accepted: a limit on starts holds. It is kept, failed, as what was refused (LM-3)."""

    code: str
    params: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Claimed:
    """An engine asks for a queued step, or for a waiting one that something woke."""

    step: int
    claimant: Claimant


@dataclass(frozen=True, slots=True)
class Raised:
    """A handler raised, ran over its time, or returned what can't be stored."""

    code: str
    message: str | None = None
    params: JsonObject = field(default_factory=dict)
    is_retryable: bool = True
    after: datetime | None = None
    category: FailureCategory = FailureCategory.STEP
    type: str | None = None
    trace: str | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """What an attempt leaves beside its result: artifacts, and whether it stored chunks."""

    artifacts: tuple[Made, ...] = ()
    has_streamed: bool = False


@dataclass(frozen=True, slots=True)
class Spawn:
    """Runs to start below this one.

    Before them `offset` were started in this visit, and `rest` more will follow in its next pages: at once, or where a
    limit on starts holds after `pause` seconds.

    With `awaits` the step waits for the one run that it starts, no longer than `timeout` says.
    """

    openings: tuple[Opening, ...]
    output: JsonObject
    offset: int = 0
    rest: int = 0
    pause: float | None = None
    awaits: bool = False
    timeout: Due = None


DependMode: TypeAlias = Literal["all", "any", "quorum"]


@dataclass(frozen=True, slots=True)
class Depend:
    """Other runs to wait for, by their ULIDs: all of them, any, or `quorum`; each is there and the owner's."""

    ulids: tuple[str, ...]
    mode: DependMode = "all"
    quorum: int = 1
    timeout: Due = None


HandlerResult: TypeAlias = Complete | Wait | Fail | Raised | Spawn | Depend


@dataclass(frozen=True, slots=True)
class Finished:
    """A handler ended. With a `claimant` the next step may begin where this one is recorded."""

    step: int
    token: str
    result: HandlerResult
    claimant: Claimant | None = None
    left: Left | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """The engine or the attempt outlived its lease."""

    step: int
    token: str


@dataclass(frozen=True, slots=True)
class HandedBack:
    """The token's holder gives the step back before its handler began."""

    step: int
    token: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """Rows addressed to the instance lie there: obey, hand out, keep or discard each."""


@dataclass(frozen=True, slots=True)
class DeadlinePassed:
    """The instance's deadline is over."""


@dataclass(frozen=True, slots=True)
class CancelAsked:
    """Somebody cancels the run."""

    reason: str | None = None
    actor: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class PauseAsked:
    """Somebody pauses the run."""

    actor: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ResumeAsked:
    """Somebody resumes the paused run."""

    actor: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class RetryAsked:
    """Somebody retries the failed run from the step that failed."""

    actor: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class RewindAsked:
    """Somebody sends the run back to the place behind a completed step: an attempt's or visit's id, or a node."""

    to: str
    actor: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ForkAsked:
    """Somebody wants a run of its own, under this ULID, that begins where this one stood; None: behind its newest."""

    ulid: str
    to: str | None = None
    actor: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Forked:
    """A new run begins where the run of that ULID stood, whose past its snapshot has."""

    source: str
    to: str | None = None
    actor: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Freed:
    """The thread of an abandoned attempt has ended at last: the attempt after it needn't wait for it any longer."""

    step_ulid: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The rows of the instance can't be made sense of: somebody edited them by hand, or the core has a defect."""

    code: str
    detail: str


def look_again(fact: Fact, holds: Holds) -> Fact:
    """The fact with what its claimant knows now not to begin; its token stays."""
    if isinstance(fact, Claimed | Finished) and fact.claimant is not None and fact.claimant.holds is not holds:
        return replace(fact, claimant=replace(fact.claimant, holds=holds))
    return fact


Fact: TypeAlias = (
    Started
    | Refused
    | Freed
    | Broken
    | Claimed
    | Finished
    | Lost
    | HandedBack
    | Delivered
    | DeadlinePassed
    | CancelAsked
    | PauseAsked
    | ResumeAsked
    | RetryAsked
    | RewindAsked
    | ForkAsked
    | Forked
)

Backward: TypeAlias = RewindAsked | ForkAsked | Forked

BACKWARD = (RewindAsked, ForkAsked)
"""Facts that are answered from the instance's past, which is loaded for them alone."""
