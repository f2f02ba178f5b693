"""What a trigger declares that a start must bring: both written forms as one schema, and the defaults it fills in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from korak.errors import Issue
from korak.graphs import hygiene, paths
from korak.graphs.document import RUN_LIMITS, Graph
from korak.model import Json, JsonObject

INTO_STATE: Final[JsonObject] = {"field": "state", "value": {"ref": "input"}}
"""The config of a `set_field` that makes the input the state."""


def begins_with_input(graph: Graph, targets: Mapping[str, str]) -> bool:
    """Whether the node that follows the trigger, whose ways out these are, makes the input the state."""
    first = graph.nodes.get(next(iter(targets.values()), ""))
    return first is not None and first.type == "set_field" and first.config == INTO_STATE


def check_payload(payload: JsonObject, limits: Mapping[str, int], ceiling: int | None = None) -> list[Issue]:
    """What keeps an input from being the first state: keys that begin with `_`, and more bytes than it may have.

    `limits` are the definition's, `ceiling` the engine's own; where nobody knows that, what a definition may say.
    """
    reserved = [name for name in payload if name.startswith("_")]
    if reserved:
        return [Issue("field_not_writable", paths.pointer([name]), {"field": name}) for name in reserved]
    known = (limits.get("max_state_bytes"), ceiling or RUN_LIMITS["max_state_bytes"])
    limit = min((most for most in known if most is not None), default=None)
    actual = hygiene.size(payload)
    if limit is not None and actual > limit:
        return [Issue("budget_state_bytes", "", {"limit": limit, "actual": actual})]
    return []


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
