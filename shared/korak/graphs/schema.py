"""The JSON Schema of a graph document, from one place: what publish checks, and what an editor is given."""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import cast

from korak.graphs.document import SCHEMA, TRIGGER
from korak.model import Json, JsonObject, Priority

END = r"$(?!\n)"
"""The end for Python's `re` too, whose `$` lets a line break pass."""

KEY = "^[A-Za-z0-9][A-Za-z0-9._-]{0,190}" + END
NODE_ID = "^[a-z][a-z0-9_]{0,63}" + END
TYPE = "^[A-Za-z_][A-Za-z0-9_.<>-]{0,190}" + END
NAME = "^[A-Za-z_][A-Za-z0-9_-]{0,63}" + END
OUTCOME = "^[A-Za-z_$][A-Za-z0-9_-]{0,63}" + END
QUEUE = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}" + END

MOST_LIMITS = 8
"""Limits by key that a node or a graph may have."""

MOST_LIMITED = 1_000_000
"""What such a limit may be at most."""

UNSERVED = "x-korak-unserved"
"""Marks on an object the members of `korak.graph/v1` that this version doesn't serve: refused by name, not ignored."""


def graph_schema() -> JsonObject:
    """The schema of a document (Draft 2020-12), as served at /v1/schema/graph. A copy of the caller's own."""
    return deepcopy(_build())


@cache
def _build() -> JsonObject:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:korak:graph:v1",
        "title": "Korak graph",
        "description": "A workflow: nodes that do work, and edges that say what follows which outcome.",
        **_object(
            {
                "$schema": _text("The address of this schema, for editors."),
                "schema": {"const": SCHEMA, "description": "The form of the document; stays readable for ever."},
                "key": _pattern(KEY, "What the workflow is called in addresses and commands."),
                "name": _text("What people call it."),
                "description": _text("What it is for.", 4000),
                "nodes": _nodes(),
                "edges": _edges(),
                "settings": {"$ref": "#/$defs/settings"},
            },
            required=["schema", "key", "nodes"],
        ),
        "$defs": {
            "node": _node(),
            "edge": _edge(),
            "body": _body(),
            "trigger": _trigger(),
            "retry": _retry(),
            "settings": _settings(),
            "duration": _duration(),
        },
    }


def _object(properties: JsonObject, *, required: list[str] | None = None, description: str | None = None) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = cast("Json", required)
    if description:
        schema["description"] = description
    return schema


def _text(description: str, length: int = 200) -> JsonObject:
    return {"type": "string", "minLength": 1, "maxLength": length, "description": description}


def _pattern(pattern: str, description: str) -> JsonObject:
    return {"type": "string", "pattern": pattern, "description": description}


def _list(items: Json, description: str, *, least: int = 1) -> JsonObject:
    return {"type": "array", "items": items, "minItems": least, "description": description}


def _nodes() -> JsonObject:
    return _list({"$ref": "#/$defs/node"}, "What the workflow consists of, one of them the trigger.")


def _edges() -> JsonObject:
    return _list({"$ref": "#/$defs/edge"}, "What follows what.", least=0)


def _node() -> JsonObject:
    schema = _object(
        {
            "id": _pattern(NODE_ID, "Unique in the whole document; read as steps.<id>."),
            "type": _pattern(TYPE, "The step type: a built-in one, or an own one with a dot in its key."),
            "type_version": {"type": "integer", "minimum": 1, "description": "The newest if left out."},
            "label": _text("What people see."),
            "config": {
                "type": "object",
                "description": "What the type asks for: literals and value forms.",
                "default": {},
            },
            "retry": {"$ref": "#/$defs/retry"},
            "timeout": {"$ref": "#/$defs/duration", "description": "The limit of one attempt of the handler."},
            "queue": _pattern(QUEUE, "The queue whose engines run it."),
            "priority": _priority(),
            "flow": _flow("each visit of it"),
            "save": _save(),
            "cost": {
                "type": "integer",
                "minimum": 0,
                "description": "The units that each completed visit counts for in limits.max_cost_units.",
            },
            "counts": {
                "type": "boolean",
                "description": "Whether completing it is a transition; if not, it belongs to the step before it.",
                "default": True,
            },
            "on_error": _on_error(),
            "jumps": _jumps(),
            "compensate": _hook("What undoes it, once it has completed and the run is cancelled."),
            "escalations": _list({"type": "object"}, "What happens while it waits too long, level by level."),
            "body": {"$ref": "#/$defs/body"},
            "branches": {
                "type": "object",
                "additionalProperties": {"$ref": "#/$defs/body"},
                "propertyNames": {"pattern": NAME},
                "minProperties": 1,
                "description": "The bodies of a parallel, by name; merged in the order in which they stand.",
            },
            "position": {"type": "object", "description": "Where an editor draws it; not part of the checksum."},
        },
        required=["id", "type"],
        description="One step of the work.",
    )
    is_trigger: JsonObject = {"properties": {"type": {"const": TRIGGER}}, "required": ["type"]}
    schema["if"] = is_trigger
    schema["then"] = {"properties": {"config": {"$ref": "#/$defs/trigger"}}}
    return schema


def _save() -> JsonObject:
    schema = _object(
        {
            "merge": {"const": True, "description": "Its members enter the state, but for those with a leading _."},
            "key": _pattern(NAME, "The output enters the state under this key."),
        },
        description="How the output enters the state: merged, or under one key.",
    )
    return {**schema, "minProperties": 1, "maxProperties": 1}


def _on_error() -> JsonObject:
    code: JsonObject = {"type": "string", "minLength": 1, "maxLength": 200}
    rule = _object(
        {
            "codes": _list(code, "Codes of failures; * stands for any text."),
            "outcome": _pattern(OUTCOME, "The outcome that such a failure leaves by."),
        },
        required=["codes", "outcome"],
    )
    return _list(rule, "Which failures leave by an outcome of their own; the first rule that fits counts.")


def _jumps() -> JsonObject:
    target: JsonObject = {"type": "string", "pattern": r"^([a-z][a-z0-9_]{0,63}|\$end)" + END}
    return {
        "description": 'The nodes that a returned _next_step may name, $end for the end; "any" for all beside it.'
        " With an empty list it is no jump.",
        "anyOf": [{"const": "any"}, {"type": "array", "items": target}],
    }


def _hook(description: str) -> JsonObject:
    return _object(
        {
            "type": _pattern(TYPE, "The step type whose handler runs; one that waits can't."),
            "type_version": {"type": "integer", "minimum": 1, "description": "The newest if left out."},
            "config": {"type": "object", "description": "What the type asks for.", "default": {}},
            "retry": {"$ref": "#/$defs/retry"},
            "timeout": {"$ref": "#/$defs/duration", "description": "The limit of one attempt of the handler."},
            "queue": _pattern(QUEUE, "The queue whose engines run it."),
        },
        required=["type"],
        description=description,
    )


def _edge() -> JsonObject:
    return _object(
        {
            "from": _text("The node it leaves.", 64),
            "outcome": _pattern(OUTCOME, "The outcome it follows: error for the error exit, next if left out."),
            "to": _text("The node it leads to.", 64),
        },
        required=["from", "to"],
        description="A way from one node to another.",
    )


def _body() -> JsonObject:
    return _object(
        {"start": _text("The node it begins with.", 64), "nodes": _nodes(), "edges": _edges()},
        required=["start", "nodes"],
        description="What a container runs: it ends where no edge leads on, or at an end.",
    )


def _trigger() -> JsonObject:
    kinds: list[Json] = [
        {"const": "manual"},
        _object({"event": _text("The event's name."), "if": {"type": "object"}}, required=["event"]),
        _object(
            {"cron": _text("A cron line."), "timezone": _text("Its time zone."), "name": _text("Its name.")},
            required=["cron"],
        ),
        _object({"webhook": {"const": True}}, required=["webhook"]),
    ]
    return _object(
        {
            "on": {
                "description": "What starts it: manual, {event}, {cron}, {webhook}, or a list of these.",
                "anyOf": [*kinds, {"type": "array", "minItems": 1, "items": {"anyOf": kinds}}],
            },
            "inputs": {
                "type": "object",
                "description": "A JSON Schema of type object, or name -> {type, required, default, ...}.",
            },
        }
    )


def _retry() -> JsonObject:
    return _object(
        {
            "max_attempts": {"type": "integer", "minimum": 1, "description": "Counts the first attempt."},
            "backoff": _list(
                {"$ref": "#/$defs/duration"}, "How long to wait after each attempt; the last one repeats."
            ),
            "jitter": {"type": "number", "minimum": 0, "maximum": 1, "description": "A fraction by which each varies."},
        },
        required=["max_attempts"],
        description="How often a failed attempt is repeated, and when.",
    )


def _settings() -> JsonObject:
    duration = "#/$defs/duration"
    schema = _object(
        {
            "actor": {
                "enum": ["system", "on_behalf_of"],
                "description": "In whose name steps act.",
                "default": "system",
            },
            "timezone": _text("An IANA time zone: that of days and of times without one.", 64) | {"default": "UTC"},
            "retry": {"$ref": "#/$defs/retry"},
            "queue": _pattern(QUEUE, "The queue of nodes that name none."),
            "priority": _priority(),
            "flow": _flow("each instance"),
            "label": {"description": "A value that names an instance, such as a template."},
            "execution_timeout": {
                "$ref": duration,
                "description": "How long an instance may take, its retries included.",
            },
            "run_timeout": {"$ref": duration, "description": "How long one run of it may take."},
            "compensate_on_failure": {
                "type": "boolean",
                "description": "Whether what has completed is undone when a run fails, too. It can't be retried then.",
                "default": False,
            },
            "on_cancel": _hook("What runs once when a run was cancelled, after its compensations."),
            "on_deadline": _hook("What runs when a run was out of time, after its compensations."),
            "prune_state_after": {
                "type": "integer",
                "minimum": 1,
                "description": "How many completed steps, the newest included, keep in the state what they saved.",
            },
            "limits": _limits(),
        },
        description="What holds for the whole workflow.",
    )
    schema[UNSERVED] = [
        "calendar",
        "events",
    ]
    return schema


def _limits() -> JsonObject:
    positive: JsonObject = {"type": "integer", "minimum": 1}
    return _object(
        {
            "max_steps": positive | {"description": "Visits of nodes."},
            "max_transitions": positive | {"description": "Moves from node to node, built-in ones too."},
            "max_for_each_items": positive | {"description": "Items of one for_each."},
            "max_state_bytes": positive | {"description": "The state, as JSON."},
            "max_started_workflows": positive | {"description": "Runs that one run starts."},
            "max_cost_units": positive | {"description": "Units that completed steps cost: 1 each, or what they say."},
            "max_starts_per_minute": positive | {"description": "Starts of this workflow."},
        },
        description="Lower bounds than the engine's own.",
    )


def _flow(what: str) -> JsonObject:
    positive: JsonObject = {"type": "integer", "minimum": 1, "maximum": MOST_LIMITED}
    rate = _object(
        {"limit": positive | {"description": "How many."}, "per": {"$ref": "#/$defs/duration"}},
        required=["limit", "per"],
        description="How many may begin in any span of that length.",
    )
    rule = _object(
        {
            "key": {"description": "A value: what has the same key shares the limit, in all of the owner's workflows."},
            "concurrency": positive | {"description": "How many of the key run at once, by their weights."},
            "rate": rate,
            "weight": positive | {"description": "What it counts against the concurrency.", "default": 1},
        },
        required=["key"],
        description="A key with a concurrency, a rate, or both.",
    )
    rule["anyOf"] = [{"required": ["concurrency"]}, {"required": ["rate"]}]
    return _list(rule, f"The limits for {what}.") | {"maxItems": MOST_LIMITS}


def _priority() -> JsonObject:
    names: list[Json] = [priority.name.lower() for priority in Priority]
    return {"enum": names, "default": "low", "description": "Which of the ready steps of a queue goes first."}


def _duration() -> JsonObject:
    return {
        "description": 'Seconds, ISO 8601 such as "PT1H30M", {"days": 1}, or business time.',
        "anyOf": [
            {"type": "number", "minimum": 0},
            {"type": "string", "minLength": 2, "maxLength": 64},
            {"type": "object", "minProperties": 1},
        ],
    }
