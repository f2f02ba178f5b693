"""The shapes of an instance, and of what stands below it."""

from __future__ import annotations

from korak.model import (
    ArtifactKind,
    ClosedReason,
    EventType,
    FailureCategory,
    InstanceStatus,
    ParkedFor,
    Priority,
    StepRole,
    StepStatus,
    TriggerKind,
    WaitKind,
    WaitStatus,
)
from korak.steps.builtin.wait import HUMANS
from korak_api.terms import (
    ACTION,
    ANY,
    COUNT,
    FLAG,
    NAMES,
    OBJECT,
    SECONDS,
    TEXT,
    TIME,
    ULID,
    one_of,
    or_null,
    ref,
    shape,
)

WAITING = shape(
    kind=one_of(*(kind for kind in WaitKind if kind is not WaitKind.TIMEOUT), *ParkedFor),
    node=TEXT,
    execution={**ULID, "description": "The visit's; a signal that names it is for this one alone."},
    branch=or_null(TEXT),
    human={**or_null(one_of(*HUMANS)), "description": "Asked of a person; a decision's names are yes and no."},
    mode=or_null(one_of("all", "any", "quorum")),
    quorum=or_null(COUNT),
    names=NAMES,
    matched=NAMES,
    remaining=NAMES,
    failed={**NAMES, "description": "Runs that have failed or were cancelled."},
    runs={
        **or_null(shape(total=COUNT, completed=COUNT, failed=COUNT)),
        "description": "Of a wait for runs: how many there are. Of many only the first are named.",
    },
    result_key=or_null(TEXT),
    correlation=or_null(shape(key=TEXT, value=ANY)),
    since=TIME,
    due_at=or_null(TIME),
    remaining_seconds={**or_null(SECONDS), "description": "What a pause has left until it is due."},
    reason={**or_null(TEXT), "description": "Of a hold, as it was given."},
    task=or_null(TEXT),
    child=or_null(ULID),
)

FAILURE_OF_INSTANCE = shape(
    code=TEXT,
    message=TEXT,
    params=OBJECT,
    node=or_null(TEXT),
    category=or_null(one_of(*FailureCategory)),
    non_retryable=FLAG,
)

COMPENSATION = {
    **shape(kept=COUNT, pending=COUNT, completed=COUNT, failed=COUNT),
    "description": "`kept` would run on a cancel, `pending` are to run now.",
}

INSTANCE = shape(
    id=ULID,
    business_id=or_null(TEXT),
    definition=TEXT,
    version=COUNT,
    version_label=or_null(TEXT),
    style=one_of("graph", "chain", "code"),
    status=one_of(*InstanceStatus, "paused"),
    closed_reason=or_null(one_of(*ClosedReason)),
    cancel_reason=or_null(TEXT),
    waiting_for={"type": "array", "items": ref("WaitingFor")},
    nodes=NAMES,
    progress={
        **or_null(shape(name=or_null(TEXT), index=COUNT, total=COUNT)),
        "description": "The step where it stands, and how many of all lie before it, where they are a line.",
    },
    input=OBJECT,
    state=OBJECT,
    result=ANY,
    failure=or_null(FAILURE_OF_INSTANCE),
    compensation=or_null(COMPENSATION),
    trigger=shape(on=one_of(*TriggerKind), key=or_null(TEXT), payload=or_null(OBJECT)),
    actor=shape(mode=TEXT, user=or_null(TEXT)),
    owner=or_null(TEXT),
    subject=or_null(OBJECT),
    labels=NAMES,
    priority=one_of(*(priority.name.lower() for priority in Priority)),
    parent=or_null(ULID),
    root=ULID,
    depth=COUNT,
    steps_count=COUNT,
    budget=shape(
        limits={"type": "object", "additionalProperties": or_null(COUNT), "description": "Those in force."},
        steps=COUNT,
        transitions=COUNT,
        started_workflows=COUNT,
        state_bytes=COUNT,
        cost_units={**or_null(COUNT), "description": "Counted where they have a limit."},
    ),
    run=COUNT,
    definition_hash=TEXT,
    artifacts=shape(count=COUNT, keys={**NAMES, "description": "The first hundred."}),
    created_at=TIME,
    updated_at=TIME,
    started_at=or_null(TIME),
    ended_at=or_null(TIME),
    deadline_at=or_null(TIME),
    deadline_remaining_seconds={**or_null(SECONDS), "description": "What a pause has left until its deadline."},
    actions=shape(cancel=ACTION, pause=ACTION, resume=ACTION, retry=ACTION, signal=ACTION),
)

STEP = shape(
    id={**ULID, "description": "The attempt's."},
    execution={**ULID, "description": "The visit's: the same for all its attempts."},
    node=TEXT,
    type=TEXT,
    type_version=COUNT,
    branch=or_null(TEXT),
    role=one_of(*StepRole),
    order={
        **or_null(COUNT),
        "description": "Of a compensation: the `seq` of the event that it undoes. The highest runs first.",
    },
    visit=COUNT,
    attempt=COUNT,
    retry=or_null(shape(of=ULID, after_attempt_id=ULID, after_attempt=COUNT, backoff_seconds=or_null(SECONDS))),
    status=one_of(*StepStatus),
    parked_for=or_null(one_of(*ParkedFor)),
    outcome=or_null(TEXT),
    input=ANY,
    output=ANY,
    error=or_null(
        shape(
            code=TEXT,
            message=TEXT,
            params=OBJECT,
            retryable=or_null(FLAG),
            category=or_null(one_of(*FailureCategory)),
        )
    ),
    progress=ANY,
    heartbeat_at=or_null(TIME),
    idempotency_key=TEXT,
    queue=TEXT,
    created_at=TIME,
    started_at=or_null(TIME),
    finished_at=or_null(TIME),
    scheduled_for=or_null(TIME),
    undone_at={**or_null(TIME), "description": "When a rewind took it back."},
    bodies={
        **or_null({"type": "object", "additionalProperties": COUNT}),
        "description": "Of a container: how many bodies it has, by status.",
    },
)

EVENT = shape(seq=COUNT, type=one_of(*EventType), node=or_null(TEXT), step=or_null(ULID), data=OBJECT, at=TIME)

WAIT = shape(
    node=TEXT,
    step=ULID,
    kind=one_of(*WaitKind),
    status=one_of(*WaitStatus),
    name=or_null(TEXT),
    match=or_null(OBJECT),
    mode=or_null(one_of("all", "any")),
    condition=ANY,
    outcome=or_null(TEXT),
    payload=ANY,
    remaining_seconds=or_null(SECONDS),
    since=TIME,
    due_at=or_null(TIME),
    fired_at=or_null(TIME),
)

CHUNK = shape(execution=ULID, node=TEXT, visit=COUNT, attempt=COUNT, index=COUNT, content=TEXT, at=TIME)

ARTIFACT = shape(
    key=TEXT,
    kind=one_of(*ArtifactKind),
    size=COUNT,
    metadata=or_null(OBJECT),
    node=or_null(TEXT),
    visit=or_null(COUNT),
    execution=or_null(ULID),
    created_at=TIME,
    updated_at=TIME,
    content={"description": "As JSON; a string for text, base64 for bytes; null where it wasn't asked for."},
)

FAILURE = shape(
    node=or_null(TEXT),
    step=or_null(ULID),
    source=TEXT,
    category=one_of(*FailureCategory),
    propagation=TEXT,
    non_retryable=FLAG,
    handled=FLAG,
    code=TEXT,
    type=or_null(TEXT),
    message=TEXT,
    params=OBJECT,
    trace=or_null(TEXT),
    at=TIME,
)
