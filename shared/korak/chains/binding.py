"""Parameters of a handler, bound when the chain is built: what is given, else the state's key of that name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Final, cast

from korak.chains.given import misuse, take
from korak.chains.handlers import Handler
from korak.chains.naming import get_path
from korak.graphs.paths import Malformed
from korak.graphs.schemas import compile_schema
from korak.graphs.values import compile_value
from korak.model import Json, JsonObject
from korak.steps.contract import SECRET_MARK

PUBLIC: Final[Mapping[str, JsonObject]] = {"state": {"ref": "state"}}
"""What every handler may take besides keys of the state."""

ITEM: Final[Mapping[str, JsonObject]] = {**PUBLIC, "item": {"ref": "item"}, "index": {"ref": "index"}}
"""The same in a for_each."""


def read_parameters(handler: Handler, given: Mapping[str, Any], what: str) -> JsonObject:
    """Copies of them. Raises Invalid where the handler doesn't take one, or it can't be written into a document."""
    known = _get_properties(handler)
    read: JsonObject = {}
    for name, value in given.items():
        if name not in known and not _is_open(handler):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Is {near[0]} meant?" if near else ""
            raise misuse(f"{what}: {handler.key} takes no {name}.{hint}")
        read[name] = take(value, f"{what}: {name}")
        try:
            compile_value(read[name], secrets=True)
        except Malformed as error:
            raise misuse(f"{what}: {name} can't be used: {error.message}") from error
    schema = {member: part for member, part in handler.schema.items() if member != "required"}
    for issue in compile_schema(schema).check_config(read):
        raise misuse(f"{what}: {handler.key} doesn't take this at {issue.pointer or '/'}: {issue.message}.")
    return read


def bind(
    handler: Handler, given: Mapping[str, Any], what: str, around: Mapping[str, JsonObject] = PUBLIC
) -> JsonObject:
    """The config of a node: what is given, `around`'s members, the state's keys, the declared defaults."""
    config: JsonObject = dict(given)
    required = cast("list[Json]", handler.schema.get("required") or [])
    for name, raw in _get_properties(handler).items():
        schema = raw if isinstance(raw, dict) else {}
        if name in config:
            continue
        if name in around:
            config[name] = dict(around[name])
        elif _is_written_out(schema) or name.startswith("_"):
            if name in required:
                raise misuse(f"{what}: {handler.key} needs {name}, which must be given where the chain is built.")
        elif "default" in schema:
            default = take(schema["default"], f"{what}: the default of {name}")
            config[name] = {"ref": get_path(name), "default": default}
        elif name in required:
            config[name] = {"ref": get_path(name)}
    return config


def _get_properties(handler: Handler) -> JsonObject:
    return cast("JsonObject", handler.schema.get("properties") or {})


def _is_open(handler: Handler) -> bool:
    return handler.schema.get("additionalProperties", True) is not False


def _is_written_out(schema: JsonObject) -> bool:
    """Whether what stands there is no value that is read while the chain runs: a condition, a node, a secret."""
    return "condition" in str(schema.get("$ref", "")) or schema.get("format") == "node-id" or SECRET_MARK in schema
