"""The vocabulary: every status, kind and role, by the one name that table, metric, route and console use."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""A value that JSON can carry. What may stand in it is checked by `korak.graphs.hygiene`."""

JsonObject: TypeAlias = dict[str, Json]

APP_WIDE = "*"
"""The owner scope of what belongs to the application and to no single owner."""


class InstanceStatus(StrEnum):
    """Where a run stands. `paused` is a flag over one of these and has no value of its own here."""

    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_ended(self) -> bool:
        """Whether nothing of the run is left to do, but for hooks."""
        return self in ENDED


ENDED = frozenset({InstanceStatus.COMPLETED, InstanceStatus.FAILED, InstanceStatus.CANCELLED})


class StepStatus(StrEnum):
    """Where one attempt of one visit of a node stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_live(self) -> bool:
        """Whether the attempt may still change."""
        return self in LIVE


LIVE = frozenset({StepStatus.QUEUED, StepStatus.RUNNING, StepStatus.WAITING})


class StepRole(StrEnum):
    """What a step run is for: the work of its node, or one of the hooks that clean up after it."""

    STEP = "step"
    CANCEL = "cancel"
    COMPENSATE = "compensate"
    ON_CANCEL = "on_cancel"
    ON_DEADLINE = "on_deadline"


class ParkedFor(StrEnum):
    """Why a queued step isn't ready although nothing of its own holds it back."""

    PAUSE = "pause"
    ENGINE = "engine"
    HOLD = "hold"
    LIMIT = "limit"


class FlowKind(StrEnum):
    """What is counted under a key: starts of a definition, steps that begin, or steps that run."""

    START_RATE = "start_rate"
    RATE = "rate"
    CONCURRENCY = "concurrency"


class HoldKind(StrEnum):
    """What a hold keeps from beginning."""

    DEFINITION = "definition"
    STEP_TYPE = "step_type"
    QUEUE = "queue"


class WaitKind(StrEnum):
    """What a parked step waits for."""

    TIMER = "timer"
    EVENT = "event"
    CONDITION = "condition"
    RETRY = "retry"
    TIMEOUT = "timeout"
    SIGNAL = "signal"
    CHILD = "child"
    WORKFLOWS = "workflows"
    TASK = "task"


class WaitStatus(StrEnum):
    """Where a wait stands."""

    PENDING = "pending"
    SUSPENDED = "suspended"
    FIRED = "fired"
    CANCELLED = "cancelled"


class EscalationStatus(StrEnum):
    """Where one level of one visit's escalation stands."""

    PENDING = "pending"
    SUSPENDED = "suspended"
    CLAIMED = "claimed"
    FIRED = "fired"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ArtifactKind(StrEnum):
    """How the content of an artifact is to be read."""

    JSON = "json"
    TEXT = "text"
    BYTES = "bytes"


class ScopeStatus(StrEnum):
    """Where one body of a container stands. `pending` has a row but no step run yet."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class CompensationStatus(StrEnum):
    """Where the undoing of one completed visit stands. `kept`: it would run if the run were cancelled."""

    KEPT = "kept"
    UNDOING = "undoing"
    COMPLETED = "completed"
    FAILED = "failed"


class DeliveryKind(StrEnum):
    """What a row addressed to an instance brings to it, taken under that instance's lock only."""

    SIGNAL = "signal"
    EVENT = "event"
    CHILD = "child"
    ENDED = "ended"
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY = "retry"
    DECISION = "decision"


class InboxKind(StrEnum):
    """What a row of the inbox asks for."""

    START = "start"
    EMIT = "emit"


class SignalKind(StrEnum):
    """What a resumed step is told about the thing that woke it."""

    EVENT = "event"
    SIGNAL = "signal"
    TIMER = "timer"
    TIMEOUT = "timeout"
    CONDITION = "condition"
    PROBE = "probe"
    CHILD = "child"
    ENDED = "ended"
    DECISION = "decision"


class Probe(StrEnum):
    """What a parked step is owed right after it parked: a look at what came before it waited, or a resume as well."""

    LOOK = "look"
    RESUME = "resume"


class DefinitionStatus(StrEnum):
    """Where a definition stands. An archived one takes no starts; its instances go on."""

    DRAFT = "draft"
    ACTIVE = "active"
    ARCHIVED = "archived"


class VersionStatus(StrEnum):
    """Where one version of a definition stands. Everything but the draft is frozen."""

    DRAFT = "draft"
    PUBLISHED = "published"
    SUPERSEDED = "superseded"


class TriggerKind(StrEnum):
    """How an instance came to be."""

    MANUAL = "manual"
    EVENT = "event"
    SCHEDULE = "schedule"
    WEBHOOK = "webhook"
    WORKFLOW = "workflow"
    ESCALATION = "escalation"


class OnOpen(StrEnum):
    """What a start does whose id has an open run."""

    FAIL = "fail"
    USE_EXISTING = "use_existing"
    CANCEL_EXISTING = "cancel_existing"


class OnClosed(StrEnum):
    """What a start does whose id has no open run, but has had one. A run that was cancelled counts as failed."""

    ALLOW = "allow"
    ALLOW_IF_FAILED = "allow_if_failed"
    REFUSE = "refuse"


class ActorMode(StrEnum):
    """In whose name steps act."""

    SYSTEM = "system"
    ON_BEHALF_OF = "on_behalf_of"


class Priority(IntEnum):
    """Which of the ready steps of a queue goes first; the highest does."""

    LOW = 0
    NORMAL = 1
    HIGH = 2
    URGENT = 3


class ClosedReason(StrEnum):
    """Why an instance ended, finer than its status."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REFUSED = "refused"
    DEADLINE = "deadline"
    TERMINATED = "terminated"


class FailureCategory(StrEnum):
    """Who has to act on a failure."""

    STEP = "step"
    TIMEOUT = "timeout"
    LIMIT = "limit"
    ENGINE = "engine"
    CONFIGURATION = "configuration"
    CHILD = "child"
    DEADLINE = "deadline"


class EventType(StrEnum):
    """The names of an instance's history, as stored, streamed and published."""

    INSTANCE_STARTED = "InstanceStarted"
    INSTANCE_COMPLETED = "InstanceCompleted"
    INSTANCE_FAILED = "InstanceFailed"
    INSTANCE_CANCELLED = "InstanceCancelled"
    INSTANCE_PAUSED = "InstancePaused"
    INSTANCE_RESUMED = "InstanceResumed"
    INSTANCE_RETRIED = "InstanceRetried"
    INSTANCE_REWOUND = "InstanceRewound"
    INSTANCE_FORKED = "InstanceForked"
    INSTANCE_IMPORTED = "InstanceImported"
    STEP_STARTED = "StepStarted"
    STEP_WAITING = "StepWaiting"
    STEP_RESUMED = "StepResumed"
    STEP_COMPLETED = "StepCompleted"
    STEP_FAILED = "StepFailed"
    STEP_CANCELLED = "StepCancelled"
    BODY_COMPLETED = "BodyCompleted"
    BODY_FAILED = "BodyFailed"
    SIGNAL_RECEIVED = "SignalReceived"
    HOOK_STARTED = "HookStarted"
    HOOK_COMPLETED = "HookCompleted"
    HOOK_FAILED = "HookFailed"
    HOOKS_RETRIED = "HooksRetried"
    RESULT_DROPPED = "ResultDropped"


class OwnerRole(StrEnum):
    """What a credential may do inside its owner."""

    VIEWER = "viewer"
    PARTICIPANT = "participant"
    STARTER = "starter"
    OPERATOR = "operator"
    AUTHOR = "author"
    WORKER = "worker"
    ADMIN = "admin"
