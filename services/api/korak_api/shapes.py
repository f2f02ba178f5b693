"""The JSON Schemas of what the API answers, by name, as OpenAPI tells them."""

from __future__ import annotations

from typing import Any, Final

from korak.model import (
    ArtifactKind,
    ClosedReason,
    DefinitionStatus,
    EventType,
    FailureCategory,
    HoldKind,
    InstanceStatus,
    OwnerRole,
    ParkedFor,
    Priority,
    StepRole,
    StepStatus,
    TriggerKind,
    VersionStatus,
    WaitKind,
    WaitStatus,
)
from korak.steps.builtin.wait import HUMANS

ANY: Final[dict[str, Any]] = {}
TEXT: Final = {"type": "string"}
OBJECT: Final = {"type": "object"}
OBJECTS: Final = {"type": "array", "items": OBJECT}
COUNT: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}
SECONDS: Final = {"type": "number"}
TIME: Final = {"type": "string", "format": "date-time"}
ULID: Final = {"type": "string", "pattern": "^[0-9A-HJKMNP-TV-Z]{26}$"}
NAMES: Final = {"type": "array", "items": TEXT}
ACTION: Final = {"description": "true, or the code of why not.", "oneOf": [{"const": True}, TEXT]}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"oneOf": [schema, {"type": "null"}]}


def _one_of(*names: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(names)}


def _shape(**members: Any) -> dict[str, Any]:
    """An object that always has these members."""
    return {"type": "object", "properties": members, "required": list(members)}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _page(name: str) -> dict[str, Any]:
    cursor = {**_or_null(TEXT), "description": "The `cursor` of the page after this one."}
    return _shape(items={"type": "array", "items": _ref(name)}, next=cursor)


_ISSUE = _shape(code=TEXT, message=TEXT, pointer=TEXT, node=_or_null(TEXT), edge=_or_null(COUNT), params=OBJECT)

_PROBLEM = {
    **_shape(
        type=TEXT,
        title=TEXT,
        status=COUNT,
        detail=TEXT,
        code=TEXT,
        params=OBJECT,
        errors={"type": "array", "items": _ref("Issue")},
    ),
    "description": "RFC 9457. A refused start has `refused_instance` besides.",
}

_DEFINITION_HEAD = {
    "key": TEXT,
    "name": TEXT,
    "description": _or_null(TEXT),
    "owner": _or_null(TEXT),
    "status": _one_of(*DefinitionStatus),
    "version": _or_null(COUNT),
    "checksum": TEXT,
    "published_checksum": _or_null(TEXT),
    "has_draft": FLAG,
    "created_at": TIME,
    "updated_at": TIME,
}

_VERSION_HEAD = {
    "definition": TEXT,
    "number": COUNT,
    "status": _one_of(*VersionStatus),
    "label": _or_null(TEXT),
    "checksum": TEXT,
    "published_at": TIME,
    "publisher": _or_null(TEXT),
}

_WAITING = _shape(
    kind=_one_of(*(kind for kind in WaitKind if kind is not WaitKind.TIMEOUT), *ParkedFor),
    node=TEXT,
    branch=_or_null(TEXT),
    human={**_or_null(_one_of(*HUMANS)), "description": "Asked of a person; a decision's names are yes and no."},
    mode=_or_null(_one_of("all", "any", "quorum")),
    names=NAMES,
    matched=NAMES,
    remaining=NAMES,
    result_key=_or_null(TEXT),
    correlation=_or_null(_shape(key=TEXT, value=ANY)),
    since=TIME,
    due_at=_or_null(TIME),
    task=_or_null(TEXT),
    child=_or_null(ULID),
)

_FAILURE_OF_INSTANCE = _shape(
    code=TEXT,
    message=TEXT,
    params=OBJECT,
    node=_or_null(TEXT),
    category=_or_null(_one_of(*FailureCategory)),
    non_retryable=FLAG,
)

_COMPENSATION = {
    **_shape(kept=COUNT, pending=COUNT, completed=COUNT, failed=COUNT),
    "description": "`kept` would run on a cancel, `pending` are to run now.",
}

_INSTANCE = _shape(
    id=ULID,
    business_id=_or_null(TEXT),
    definition=TEXT,
    version=COUNT,
    version_label=_or_null(TEXT),
    style=_one_of("graph", "chain", "code"),
    status=_one_of(*InstanceStatus, "paused"),
    closed_reason=_or_null(_one_of(*ClosedReason)),
    cancel_reason=_or_null(TEXT),
    waiting_for={"type": "array", "items": _ref("WaitingFor")},
    nodes=NAMES,
    progress=_or_null(_shape(name=TEXT, index=COUNT, total=COUNT)),
    input=OBJECT,
    state=OBJECT,
    result=ANY,
    failure=_or_null(_FAILURE_OF_INSTANCE),
    compensation=_or_null(_COMPENSATION),
    trigger=_shape(on=_one_of(*TriggerKind), key=_or_null(TEXT), payload=_or_null(OBJECT)),
    actor=_shape(mode=TEXT, user=_or_null(TEXT)),
    owner=_or_null(TEXT),
    subject=_or_null(OBJECT),
    labels=NAMES,
    priority=_one_of(*(priority.name.lower() for priority in Priority)),
    parent=_or_null(ULID),
    root=ULID,
    depth=COUNT,
    steps_count=COUNT,
    budget=_shape(
        limits={"type": "object", "additionalProperties": _or_null(COUNT), "description": "Those in force."},
        steps=COUNT,
        transitions=COUNT,
        state_bytes=COUNT,
        cost_units={**_or_null(COUNT), "description": "Counted where they have a limit."},
    ),
    run=COUNT,
    definition_hash=TEXT,
    artifacts=_shape(count=COUNT, keys={**NAMES, "description": "The first hundred."}),
    created_at=TIME,
    updated_at=TIME,
    started_at=_or_null(TIME),
    ended_at=_or_null(TIME),
    deadline_at=_or_null(TIME),
    actions=_shape(cancel=ACTION, pause=ACTION, resume=ACTION, retry=ACTION, signal=ACTION),
)

_STEP = _shape(
    id={**ULID, "description": "The attempt's."},
    execution={**ULID, "description": "The visit's: the same for all its attempts."},
    node=TEXT,
    type=TEXT,
    type_version=COUNT,
    branch=_or_null(TEXT),
    role=_one_of(*StepRole),
    order={
        **_or_null(COUNT),
        "description": "Of a compensation: the `seq` of the event that it undoes. The highest runs first.",
    },
    visit=COUNT,
    attempt=COUNT,
    retry=_or_null(_shape(of=ULID, after_attempt_id=ULID, after_attempt=COUNT, backoff_seconds=_or_null(SECONDS))),
    status=_one_of(*StepStatus),
    parked_for=_or_null(_one_of(*ParkedFor)),
    outcome=_or_null(TEXT),
    input=ANY,
    output=ANY,
    error=_or_null(
        _shape(
            code=TEXT,
            message=TEXT,
            params=OBJECT,
            retryable=_or_null(FLAG),
            category=_or_null(_one_of(*FailureCategory)),
        )
    ),
    progress=ANY,
    heartbeat_at=_or_null(TIME),
    idempotency_key=TEXT,
    queue=TEXT,
    created_at=TIME,
    started_at=_or_null(TIME),
    finished_at=_or_null(TIME),
    scheduled_for=_or_null(TIME),
    undone_at={**_or_null(TIME), "description": "When a rewind took it back."},
)

_EVENT = _shape(seq=COUNT, type=_one_of(*EventType), node=_or_null(TEXT), step=_or_null(ULID), data=OBJECT, at=TIME)

_WAIT = _shape(
    node=TEXT,
    step=ULID,
    kind=_one_of(*WaitKind),
    status=_one_of(*WaitStatus),
    name=_or_null(TEXT),
    match=_or_null(OBJECT),
    mode=_or_null(_one_of("all", "any")),
    condition=ANY,
    outcome=_or_null(TEXT),
    payload=ANY,
    remaining_seconds=_or_null(SECONDS),
    since=TIME,
    due_at=_or_null(TIME),
    fired_at=_or_null(TIME),
)

_CHUNK = _shape(execution=ULID, node=TEXT, visit=COUNT, attempt=COUNT, index=COUNT, content=TEXT, at=TIME)

_ARTIFACT = _shape(
    key=TEXT,
    kind=_one_of(*ArtifactKind),
    size=COUNT,
    metadata=_or_null(OBJECT),
    node=_or_null(TEXT),
    visit=_or_null(COUNT),
    execution=_or_null(ULID),
    created_at=TIME,
    updated_at=TIME,
    content={"description": "As JSON; a string for text, base64 for bytes; null where it wasn't asked for."},
)

_FAILURE = _shape(
    node=_or_null(TEXT),
    step=_or_null(ULID),
    source=TEXT,
    category=_one_of(*FailureCategory),
    propagation=TEXT,
    non_retryable=FLAG,
    handled=FLAG,
    code=TEXT,
    type=_or_null(TEXT),
    message=TEXT,
    params=OBJECT,
    trace=_or_null(TEXT),
    at=TIME,
)

_TOKEN = _shape(
    id=ULID,
    name=TEXT,
    owner=_or_null(TEXT),
    roles={"type": "array", "items": _one_of(*OwnerRole)},
    user=_or_null(TEXT),
    created_at=TIME,
    expires_at=_or_null(TIME),
    revoked_at=_or_null(TIME),
)

SHAPES: Final[dict[str, Any]] = {
    "Issue": _ISSUE,
    "Problem": _PROBLEM,
    "Definition": _shape(**_DEFINITION_HEAD, graph=OBJECT, input_schema=_or_null(OBJECT)),
    "DefinitionHead": _shape(**_DEFINITION_HEAD),
    "DefinitionPage": _page("DefinitionHead"),
    "Validation": _shape(
        valid=FLAG, errors={"type": "array", "items": _ref("Issue")}, warnings={"type": "array", "items": _ref("Issue")}
    ),
    "Version": _shape(**_VERSION_HEAD, graph=OBJECT),
    "VersionHead": _shape(**_VERSION_HEAD),
    "VersionPage": _page("VersionHead"),
    "Export": _shape(schema=TEXT, key=TEXT, graph=OBJECT, checksum=TEXT),
    "Start": {
        "type": "object",
        "properties": {"instance": _ref("Instance"), "created": FLAG, "input_differs": {"const": True}},
        "required": ["instance", "created"],
    },
    "Instance": _INSTANCE,
    "InstancePage": _page("Instance"),
    "Run": _shape(
        format=TEXT,
        exported_at=TIME,
        definition=_shape(key=TEXT, number=COUNT, label=_or_null(TEXT), checksum=TEXT, contracts=TEXT, graph=OBJECT),
        instance=OBJECT,
        steps=OBJECTS,
        scopes=OBJECTS,
        waits=OBJECTS,
        signals=OBJECTS,
        events=OBJECTS,
        failures=OBJECTS,
        artifacts=OBJECTS,
    ),
    "WaitingFor": _WAITING,
    "Step": _STEP,
    "StepPage": _page("Step"),
    "Event": _EVENT,
    "EventPage": _page("Event"),
    "Wait": _WAIT,
    "WaitPage": _page("Wait"),
    "Chunk": _CHUNK,
    "ChunkPage": _page("Chunk"),
    "Artifact": _ARTIFACT,
    "ArtifactPage": _page("Artifact"),
    "Stream": {"type": "string", "description": "Server-sent events, whose data is JSON."},
    "Failure": _FAILURE,
    "FailurePage": _page("Failure"),
    "Debounced": _shape(due_at=TIME),
    "Delivery": {
        "type": "object",
        "description": "Where the signal may start a run, the run that it is in, and whether it was made.",
        "properties": {"delivered": FLAG, "buffered": FLAG, "instance": ULID, "created": FLAG},
        "required": ["delivered", "buffered"],
    },
    "Emission": _shape(matched=COUNT, started={"type": "array", "items": ULID}, kept=FLAG),
    "Hold": _shape(
        kind=_one_of(*HoldKind),
        name=TEXT,
        owner=_or_null(TEXT),
        reason=_or_null(TEXT),
        until=_or_null(TIME),
        held_at=TIME,
        released_at=_or_null(TIME),
        actor=_or_null(OBJECT),
    ),
    "Queue": _shape(
        name=TEXT,
        bound=COUNT,
        backlog=COUNT,
        sent=COUNT,
        held=COUNT,
        consumers=COUNT,
        hold=_or_null(_shape(owner=_or_null(TEXT), reason=_or_null(TEXT), until=_or_null(TIME), held_at=TIME)),
    ),
    "QueuePage": _page("Queue"),
    "Token": _TOKEN,
    "NewToken": _shape(**_TOKEN["properties"], token={"type": "string", "description": "The secret, shown once."}),
    "TokenPage": _page("Token"),
    "Me": _shape(
        name=TEXT, user=_or_null(TEXT), owner=_or_null(TEXT), acts_for=_or_null(TEXT), is_app_wide=FLAG, roles=NAMES
    ),
    "Schema": {"type": "object", "description": "A JSON Schema."},
    "Duration": {
        "description": 'Seconds, ISO 8601 (PT1H30M), or {"days": 1}.',
        "oneOf": [{"type": "number", "minimum": 0}, TEXT, OBJECT],
    },
}
