"""The rows that a decision reads and writes, by the names of their columns."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

from korak.model import (
    ActorMode,
    ArtifactKind,
    ClosedReason,
    CompensationStatus,
    DeliveryKind,
    EventType,
    FailureCategory,
    InstanceStatus,
    Json,
    JsonObject,
    ParkedFor,
    Probe,
    ScopeStatus,
    StepRole,
    StepStatus,
    TriggerKind,
    WaitKind,
    WaitStatus,
)

Row = TypeVar("Row")


def copy(row: Row) -> Row:
    """A shallow copy: a decision edits copies only, so that the snapshot it came from can be used again."""
    twin = object.__new__(type(row))
    twin.__dict__.update(row.__dict__)
    return twin


def get_columns(row: type[Any]) -> tuple[str, ...]:
    """The names of a row class's columns, in order."""
    return tuple(column.name for column in fields(row))


@dataclass(eq=False)
class Instance:
    """One run. `id` is 0 until the store has given it one. `next_seq` is the number of its next history event.

    `business_id` and `run_number` are written by the start and never again: a decision doesn't load them.
    """

    id: int
    ulid: str
    definition_id: int
    version_id: int
    owner_type: str | None
    owner_id: str | None
    owner_scope: str
    trigger_type: TriggerKind
    input: JsonObject
    definition_hash: str
    created_at: datetime
    updated_at: datetime
    actor_mode: ActorMode = ActorMode.SYSTEM
    trigger_payload: JsonObject | None = None
    trigger_key: str | None = None
    starter_type: str | None = None
    starter_id: str | None = None
    idempotency_digest: str | None = None
    business_id: str | None = None
    run_number: int = 1
    status: InstanceStatus | None = None
    state: JsonObject = field(default_factory=dict)
    result: Json = None
    walk: JsonObject | None = None
    closed_reason: ClosedReason | None = None
    cancel_reason: str | None = None
    failure_code: str | None = None
    failure_message: str | None = None
    failure_params: JsonObject | None = None
    failure_category: FailureCategory | None = None
    failed_node_id: str | None = None
    steps_count: int = 0
    transitions_count: int = 0
    depth: int = 0
    labels: list[str] = field(default_factory=list)
    priority: int = 0
    queue: str | None = None
    next_seq: int = 1
    lock_version: int = 0
    paused_at: datetime | None = None
    deadline_at: datetime | None = None
    deadline_seconds: float | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @property
    def is_ended(self) -> bool:
        """Whether the run has ended."""
        return self.ended_at is not None


@dataclass(eq=False)
class Child(Instance):
    """A run that another one starts, as it is inserted: nothing that is decided later reads whose it is."""

    parent_instance_id: int = 0
    parent_step_run_id: int = 0


@dataclass(eq=False)
class StepRun:
    """One attempt of one visit of a node. A negative `id` is the draft's own, until the store has given it one."""

    id: int
    instance_id: int
    owner_scope: str
    node_id: str
    node_type: str
    type_version: int
    visit: int
    attempt: int
    idempotency_key: str
    queue: str
    created_at: datetime
    status: StepStatus | None = None
    scope_id: int | None = None
    parent_step_run_id: int | None = None
    role: StepRole = StepRole.STEP
    call: int = 1
    hook_order: int | None = None
    outcome: str | None = None
    input: Json = None
    output: JsonObject | None = None
    resume_signal: JsonObject | None = None
    error_code: str | None = None
    error_message: str | None = None
    error_params: JsonObject | None = None
    error_retryable: bool | None = None
    error_category: FailureCategory | None = None
    ulid: str = ""
    execution_id: str = ""
    retry_of: str | None = None
    backoff_seconds: float | None = None
    priority: int = 0
    ready_at: datetime | None = None
    sent_at: datetime | None = None
    parked_for: ParkedFor | None = None
    engine_id: int | None = None
    claim_token: str | None = None
    claimed_at: datetime | None = None
    lease_until: datetime | None = None
    scheduled_for: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    probe: Probe | None = None
    counters: JsonObject | None = None
    undone_at: datetime | None = None
    flow: list[str] | None = None
    """The keys that its visit counts under, resolved once: its node's, then its run's. None where nothing limits it."""

    def release_claim(self) -> None:
        """Who doesn't run holds no claim: a token that is heard of again is a stale one."""
        self.engine_id = self.claim_token = self.claimed_at = self.lease_until = None


@dataclass(eq=False)
class Wait:
    """One thing that a parked step waits for. `is_date`: the author gave the time itself, so a pause leaves it be."""

    id: int
    instance_id: int
    step_run_id: int
    owner_scope: str
    kind: WaitKind
    created_at: datetime
    status: WaitStatus | None = None
    event_key: str | None = None
    match: JsonObject | None = None
    match_digest: str | None = None
    correlation: Json = None
    mode: str | None = None
    condition: Json = None
    poll_seconds: float | None = None
    payload: Json = None
    outcome: str | None = None
    looks_back: bool = False
    due_at: datetime | None = None
    is_date: bool = False
    remaining: float | None = None
    sent_at: datetime | None = None
    fired_at: datetime | None = None


@dataclass(eq=False)
class Scope:
    """One body of a container: a branch or an item, with a token of its own. `state` is what was written in it.

    A branch has its name, and the number of its declaration as its index; an item has no name. One that is to be
    started once more goes on at the attempt `halted_step_run_id`, where it stood as its run failed.
    """

    id: int
    instance_id: int
    step_run_id: int
    created_at: datetime
    parent_scope_id: int | None = None
    name: str | None = None
    item_index: int | None = None
    item: Json = None
    status: ScopeStatus | None = None
    state: JsonObject | None = None
    walk: JsonObject | None = None
    outcome: str | None = None
    output: Json = None
    error: JsonObject | None = None
    finish_order: int | None = None
    ended_at: datetime | None = None
    halted_step_run_id: int | None = None


@dataclass(eq=False)
class Compensation:
    """What undoes one completed visit: pushed with its record, at the number of the event that tells of it.

    `state` is what the visit left, `input` the config that was resolved from it; `error` why it couldn't be. All are
    read for the one that runs alone. `call` counts how often undoing it was begun: a manual retry begins anew.
    """

    instance_id: int
    seq: int
    step_run_id: int
    node_id: str
    visit: int
    created_at: datetime
    scope_id: int | None = None
    status: CompensationStatus | None = None
    input: Json = None
    state: JsonObject | None = None
    error: JsonObject | None = None
    call: int = 1


@dataclass(eq=False)
class Artifact:
    """What a run keeps under a name; the visit that left it, or nobody's where it came from outside."""

    instance_id: int
    key: str
    kind: ArtifactKind
    content: bytes
    created_at: datetime
    metadata: JsonObject | None = None
    node_id: str | None = None
    visit: int | None = None
    execution_id: str | None = None
    updated_at: datetime | None = None

    @property
    def size(self) -> int:
        """The content's bytes."""
        return len(self.content)


@dataclass(eq=False)
class Chunk:
    """A part of what a visit has streamed that isn't recorded yet."""

    instance_id: int
    execution_id: str
    index: int
    node_id: str
    visit: int
    attempt: int
    content: str
    created_at: datetime


@dataclass(eq=False)
class Effect:
    """What a visit has done once, by the digest of the visit and the effect's name; in a carried run the `fingerprint`
    is that digest, and the `key` is made of it and the run's id.
    """

    instance_id: int
    key: str
    created_at: datetime
    fingerprint: str | None = None
    result: Json = None


@dataclass(eq=False)
class Delivery:
    """A row addressed to an instance: a signal, an event or a command, taken under its lock only.

    `execution_id` is read with it: the visit that its step run is an attempt of. A signal that names a visit is for
    that one alone, and discarded once it waits for it no more.
    """

    id: int
    instance_id: int
    owner_scope: str
    kind: DeliveryKind
    source_id: str
    created_at: datetime
    step_run_id: int | None = None
    wait_id: int | None = None
    name: str | None = None
    payload: Json = None
    sender: JsonObject | None = None
    buffered_at: datetime | None = None
    taken_at: datetime | None = None
    discarded_at: datetime | None = None
    execution_id: str | None = None


@dataclass(eq=False)
class Event:
    """One line of an instance's history."""

    instance_id: int
    seq: int
    type: EventType
    created_at: datetime
    node_id: str | None = None
    step_run_id: int | None = None
    data: JsonObject | None = None


@dataclass(eq=False)
class Failure:
    """One failure, with what became of it: `propagation` is retry, exit, instance or none."""

    instance_id: int
    step_run_id: int | None
    node_id: str | None
    source: str
    category: FailureCategory
    propagation: str
    non_retryable: bool
    handled: bool
    code: str
    created_at: datetime
    type: str | None = None
    message: str | None = None
    params: JsonObject | None = None
    trace: str | None = None
