"""What a decision changes: rows to insert and update, history, and what to nudge after the commit. Plain data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from korak.core.rooms import Demand, Denial
from korak.core.rows import Artifact, Compensation, Delivery, Event, Failure, Instance, Scope, StepRun, Wait, copy
from korak.core.snapshot import Snapshot
from korak.model import DeliveryKind, Json, JsonObject


@dataclass(frozen=True, slots=True)
class Grant:
    """A step that is running under the fact's token, and the input that its handler gets."""

    step: StepRun
    input: Json


@dataclass(frozen=True, slots=True)
class Command:
    """What a run bids another one that it knows by its ULID: a row among that one's deliveries."""

    ulid: str
    kind: DeliveryKind
    source_id: str
    created_at: datetime
    sender: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Cascade:
    """A command for all open children of a run, which goes to them page by page. `seq` is that of its event."""

    instance_id: int
    seq: int
    kind: DeliveryKind
    sender: JsonObject | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Dependency:
    """One run that a wait of this one is for. `is_needed`: without it the wait can't be satisfied."""

    wait: Wait
    place: int
    ulid: str
    is_needed: bool


@dataclass(eq=False)
class Outward:
    """What a decision is to other runs. `end` is told to whoever waits for this run as its parent.

    `children` are new instances, each with its own changes; they are written with the parent's or not at all.
    """

    children: list[Changes] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    cascades: list[Cascade] = field(default_factory=list)
    dependencies: list[Dependency] = field(default_factory=list)
    end: JsonObject | None = None


@dataclass(eq=False)
class Carried:
    """An artifact that a fork takes along from the run of that ULID: as left by an attempt of its own, or by nobody."""

    source: str
    key: str
    instance_id: int
    step_run_id: int | None


@dataclass(eq=False)
class Leavings:
    """What steps leave beside their records. `closed_chunks`: visits, by execution id, that need theirs no longer."""

    artifacts: list[Artifact] = field(default_factory=list)
    carried: list[Carried] = field(default_factory=list)
    closed_chunks: list[str] = field(default_factory=list)


@dataclass(eq=False)
class Changes:
    """One instance's changes, decided from the snapshot `before`; they hold only while its lock_version does.

    New rows carry negative ids of their own until `korak.store` seals them. `claimed` are steps that are running under
    the fact's token, `ready` steps that wait for an engine. `after` is the snapshot that holds once this is committed.
    """

    instance: Instance
    before: Snapshot
    after: Snapshot
    is_new: bool = False
    is_ended: bool = False
    steps: list[StepRun] = field(default_factory=list)
    new_steps: list[StepRun] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    new_waits: list[Wait] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    new_scopes: list[Scope] = field(default_factory=list)
    closed_scopes: list[int] = field(default_factory=list)
    """Attempts of containers whose open scopes are cancelled, be they in the snapshot or not."""
    adopted_scopes: list[tuple[int, int, bool]] = field(default_factory=list)
    """Attempts of failed containers, each with the one that its scopes belong to from now on, and whether it was
    decided: then only its reducer is to be started once more, else all that hasn't succeeded."""
    compensations: list[Compensation] = field(default_factory=list)
    new_compensations: list[Compensation] = field(default_factory=list)
    retries_undoing: bool = False
    """Whether all compensations that have failed are kept once more, those out of view too; changes come after that."""
    deliveries: list[Delivery] = field(default_factory=list)
    new_deliveries: list[Delivery] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    leavings: Leavings | None = None
    claimed: list[Grant] = field(default_factory=list)
    ready: list[StepRun] = field(default_factory=list)
    transitions: list[str] = field(default_factory=list)
    undone: list[int] | None = None
    """Attempts that a rewind has taken back, None where none was asked for; the kept result is written then too."""
    fork: Changes | None = None
    """The new instance that this one was forked into."""
    outward: Outward | None = None
    demands: list[Demand] = field(default_factory=list)
    """The room that what is claimed here needs; the changes hold only if the store finds it."""
    parkings: list[tuple[StepRun, Denial]] = field(default_factory=list)
    """The steps that wait for room, and for which."""
    freed: list[int] = field(default_factory=list)
    """Steps with limits that run no longer: they give back what they held."""
    leaves: bool = False
    """Whether the run has ended and gives back what it held itself."""
    holds: int | None = None
    """The version of the holds that were asked, be it that a step began or that it didn't; None where none were. The
    changes hold only while it stands.
    """
    roused: list[StepRun] = field(default_factory=list)
    """Steps of other runs that got ready because of these changes; filled in by the store."""
    dropped: str | None = None
    """Why the fact changed nothing that it was meant to change, e.g. `stale_token`."""
    is_echo: bool = False
    """Whether the changes before these, decided in the same go, write and tell all but what was claimed and dropped."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return self.is_echo or not (
            self.is_new or self.events or self.steps or self.new_steps or self.waits or self.deliveries
        )


def spread(batch: Iterable[Changes]) -> Iterator[Changes]:
    """Every instance's changes, those of new children and of a fork behind the run's own."""
    for changes in batch:
        yield changes
        if changes.fork is not None:
            yield changes.fork
        if changes.outward is not None:
            yield from changes.outward.children


def echo(changes: Changes, claimed: list[Grant], dropped: str | None) -> Changes:
    """What one more fact of the same decision came to; `changes` write it."""
    twin = copy(changes)
    twin.claimed, twin.dropped, twin.outward = claimed, dropped, None
    twin.ready, twin.transitions, twin.roused, twin.is_ended, twin.is_echo = [], [], [], False, True
    twin.outward = twin.fork = twin.leavings = None
    return twin
