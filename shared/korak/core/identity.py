"""Runs under an id of the caller's own: what a start comes to where the id has a run already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from korak.errors import Conflict
from korak.model import InstanceStatus, JsonObject, OnClosed, OnOpen


@dataclass(frozen=True, slots=True)
class Identity:
    """The caller's own id of a run, and what a start does where it is taken.

    `replaces` is the ULID of an open run that this start has had cancelled: `on_closed` doesn't ask about it.
    """

    id: str
    on_open: OnOpen = OnOpen.FAIL
    on_closed: OnClosed = OnClosed.ALLOW
    replaces: str | None = None


@dataclass(frozen=True, slots=True)
class Greeting:
    """A signal that goes with a start: it is in the run that the start comes to, whether it was made or found."""

    name: str
    payload: JsonObject
    source_id: str
    sender: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One run of an id. `number` counts the runs of that id."""

    id: int
    ulid: str
    version_id: int
    number: int
    status: InstanceStatus


@dataclass(frozen=True, slots=True)
class Standing:
    """What an id has: the newest of its runs and the open one, which may be another that was retried."""

    newest: Run | None = None
    open: Run | None = None


@dataclass(frozen=True, slots=True)
class Admit:
    """The start makes the run of that number."""

    number: int


@dataclass(frozen=True, slots=True)
class Use:
    """The start comes to the open run."""

    run: Run


@dataclass(frozen=True, slots=True)
class Replace:
    """The open run is cancelled first."""

    run: Run


Verdict: TypeAlias = Admit | Use | Replace | Conflict


def judge(identity: Identity, standing: Standing) -> Verdict:
    """What a start under an id comes to; a Conflict (`id_in_use`, `id_used`) where it is refused."""
    if standing.open is not None:
        return _judge_open(identity, standing.open)
    newest = standing.newest
    if newest is None:
        return Admit(1)
    if newest.ulid != identity.replaces and not _may_follow(identity.on_closed, newest.status):
        return Conflict("id_used", id=identity.id, instance=newest.ulid, status=str(newest.status))
    return Admit(newest.number + 1)


def _judge_open(identity: Identity, run: Run) -> Verdict:
    match identity.on_open:
        case OnOpen.FAIL:
            return Conflict("id_in_use", id=identity.id, instance=run.ulid)
        case OnOpen.USE_EXISTING:
            return Use(run)
        case OnOpen.CANCEL_EXISTING:
            return Replace(run)


def _may_follow(on_closed: OnClosed, status: InstanceStatus) -> bool:
    match on_closed:
        case OnClosed.ALLOW:
            return True
        case OnClosed.ALLOW_IF_FAILED:
            return status is not InstanceStatus.COMPLETED
        case OnClosed.REFUSE:
            return False
