"""The JSON Schemas of what the API answers, by name, as OpenAPI tells them."""

from __future__ import annotations

from typing import Any, Final

from korak.core.exporting import END, HEAD, KINDS
from korak.model import (
    DefinitionStatus,
    HoldKind,
    OwnerRole,
    VersionStatus,
)
from korak_api.parts import ARTIFACT, CHUNK, EVENT, FAILURE, INSTANCE, STEP, WAIT, WAITING
from korak_api.terms import COUNT, FLAG, NAMES, OBJECT, TEXT, TIME, ULID, extend, one_of, or_null, page, ref, shape

_ISSUE = shape(code=TEXT, message=TEXT, pointer=TEXT, node=or_null(TEXT), edge=or_null(COUNT), params=OBJECT)

_PROBLEM = {
    **shape(
        type=TEXT,
        title=TEXT,
        status=COUNT,
        detail=TEXT,
        code=TEXT,
        params=OBJECT,
        errors={"type": "array", "items": ref("Issue")},
    ),
    "description": "RFC 9457. A refused start has `refused_instance` besides.",
}

_DEFINITION_HEAD = {
    "key": TEXT,
    "name": TEXT,
    "description": or_null(TEXT),
    "owner": or_null(TEXT),
    "status": one_of(*DefinitionStatus),
    "version": or_null(COUNT),
    "checksum": TEXT,
    "published_checksum": or_null(TEXT),
    "has_draft": FLAG,
    "created_at": TIME,
    "updated_at": TIME,
}

_VERSION_HEAD = {
    "definition": TEXT,
    "number": COUNT,
    "status": one_of(*VersionStatus),
    "label": or_null(TEXT),
    "checksum": TEXT,
    "published_at": TIME,
    "publisher": or_null(TEXT),
}

_TOKEN = shape(
    id=ULID,
    name=TEXT,
    owner=or_null(TEXT),
    roles={"type": "array", "items": one_of(*OwnerRole)},
    user=or_null(TEXT),
    created_at=TIME,
    expires_at=or_null(TIME),
    revoked_at=or_null(TIME),
)

_ISSUES = {"type": "array", "items": ref("Issue")}

_WARNINGS = {**_ISSUES, "description": "What is odd about the graph. Only what publishes one answers it."}

SHAPES: Final[dict[str, Any]] = {
    "Issue": _ISSUE,
    "Problem": _PROBLEM,
    "Definition": extend(shape(**_DEFINITION_HEAD, graph=OBJECT, input_schema=or_null(OBJECT)), warnings=_WARNINGS),
    "DefinitionHead": shape(**_DEFINITION_HEAD),
    "DefinitionPage": page("DefinitionHead"),
    "Validation": shape(valid=FLAG, errors=_ISSUES, warnings=_ISSUES),
    "Version": shape(**_VERSION_HEAD, graph=OBJECT),
    "VersionHead": extend(shape(**_VERSION_HEAD), warnings=_WARNINGS),
    "VersionPage": page("VersionHead"),
    "Export": shape(schema=TEXT, key=TEXT, graph=OBJECT, checksum=TEXT),
    "Start": {
        "type": "object",
        "properties": {"instance": ref("Instance"), "created": FLAG, "input_differs": {"const": True}},
        "required": ["instance", "created"],
    },
    "Instance": INSTANCE,
    "InstancePage": page("Instance"),
    "InstanceCounts": shape(
        items={
            "type": "array",
            "items": {
                "type": "object",
                "description": "The count of those that have the same in all that `by` names.",
                "properties": {"count": COUNT, "status": TEXT, "definition": TEXT, "parent": or_null(ULID)},
                "required": ["count"],
            },
        },
        is_capped={**FLAG, "description": "Whether there are more than are counted."},
    ),
    "Run": {
        "type": "object",
        "description": "One line. The first is `run`: the format, when it was exported, the version that runs and the "
        "instance. Then come its rows, of each kind together and in this order, and `end` with their number.",
        "properties": {
            HEAD: shape(
                format=TEXT,
                exported_at=TIME,
                definition=shape(
                    key=TEXT, number=COUNT, label=or_null(TEXT), checksum=TEXT, contracts=TEXT, graph=OBJECT
                ),
                instance=OBJECT,
            ),
            **{kind.name: OBJECT for kind in KINDS},
            END: shape(lines=COUNT),
        },
        "minProperties": 1,
        "maxProperties": 1,
    },
    "WaitingFor": WAITING,
    "Step": STEP,
    "StepPage": page("Step"),
    "Event": EVENT,
    "EventPage": page("Event"),
    "Wait": WAIT,
    "WaitPage": page("Wait"),
    "Chunk": CHUNK,
    "ChunkPage": page("Chunk"),
    "Artifact": ARTIFACT,
    "ArtifactPage": page("Artifact"),
    "Stream": {"type": "string", "description": "Server-sent events, whose data is JSON."},
    "Failure": FAILURE,
    "FailurePage": page("Failure"),
    "Debounced": shape(due_at=TIME),
    "Delivery": {
        "type": "object",
        "description": "Where the signal may start a run, the run that it is in, and whether it was made.",
        "properties": {"delivered": FLAG, "buffered": FLAG, "instance": ULID, "created": FLAG},
        "required": ["delivered", "buffered"],
    },
    "Emission": shape(matched=COUNT, started={"type": "array", "items": ULID}, kept=FLAG),
    "Hold": shape(
        kind=one_of(*HoldKind),
        name=TEXT,
        owner=or_null(TEXT),
        reason=or_null(TEXT),
        until=or_null(TIME),
        held_at=TIME,
        released_at=or_null(TIME),
        actor=or_null(OBJECT),
    ),
    "Queue": shape(
        name=TEXT,
        bound=COUNT,
        backlog=COUNT,
        sent=COUNT,
        held=COUNT,
        consumers=COUNT,
        hold=or_null(shape(owner=or_null(TEXT), reason=or_null(TEXT), until=or_null(TIME), held_at=TIME)),
    ),
    "QueuePage": page("Queue"),
    "Weight": shape(owner=or_null(TEXT), weight=COUNT),
    "Token": _TOKEN,
    "NewToken": shape(**_TOKEN["properties"], token={"type": "string", "description": "The secret, shown once."}),
    "TokenPage": page("Token"),
    "Me": shape(
        name=TEXT, user=or_null(TEXT), owner=or_null(TEXT), acts_for=or_null(TEXT), is_app_wide=FLAG, roles=NAMES
    ),
    "Schema": {"type": "object", "description": "A JSON Schema."},
    "Duration": {
        "description": 'Seconds, ISO 8601 (PT1H30M), or {"days": 1}.',
        "oneOf": [{"type": "number", "minimum": 0}, TEXT, OBJECT],
    },
}
