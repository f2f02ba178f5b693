"""What a trigger declares that a start must bring: both written forms as one schema, and the defaults it fills in."""

from __future__ import annotations

from typing import cast

from korak.errors import Issue
from korak.graphs import paths
from korak.graphs.hygiene import size
from korak.model import Json, JsonObject


def get_input_schema(config: JsonObject) -> JsonObject | None:
    """The schema of a start's input from a trigger's config; None where any object is taken.

    `{"type": "object", ...}` is a schema; the short form `{name: {"type", "required", "default", ...}}` is sugar for
    one that allows no other members.
    """
    declared = cast("JsonObject | None", config.get("inputs"))
    if declared is None:
        return None
    if declared.get("type") == "object":
        return declared
    properties: JsonObject = {}
    required: list[Json] = []
    for name, member in declared.items():
        schema = dict(cast("JsonObject", member))
        if schema.pop("required", False) and "default" not in schema:
            required.append(name)
        properties[name] = schema
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def is_short(config: JsonObject) -> bool:
    """Whether the inputs are written in the short form."""
    declared = config.get("inputs")
    return isinstance(declared, dict) and declared.get("type") != "object"


def fill_defaults(schema: JsonObject, value: JsonObject) -> JsonObject:
    """`value` with the declared defaults for members that it lacks; nothing of what was given is changed."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return value
    filled = dict(value)
    for name, member in properties.items():
        if not isinstance(member, dict):
            continue
        given = filled.get(name)
        if name not in filled and "default" in member:
            filled[name] = member["default"]
        elif isinstance(given, dict):
            filled[name] = fill_defaults(member, given)
    return filled


def becomes_state(kind: str, config: JsonObject) -> bool:
    """Whether a node takes the whole input into the state, as a chain's first does."""
    return kind == "set_field" and config == {"field": "state", "value": {"ref": "input"}}


def check_state(given: JsonObject, limit: int | None) -> list[Issue]:
    """What is wrong with an input that becomes the state: a reserved key, or more bytes than the definition allows."""
    issues: list[Issue] = []
    for name in given:
        if name.startswith("_"):
            at = paths.pointer([name])
            issues.append(Issue("invalid_input", at, {"pointer": at, "detail": "a key that begins with _ is Korak's"}))
    actual = size(given)
    if limit is not None and actual > limit:
        issues.append(Issue("max_state_bytes_exceeded", "", {"limit": limit, "actual": actual}))
    return issues
