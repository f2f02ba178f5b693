"""What can stand at a path: who writes what into the state, and what schemas say of inputs and outputs."""

from __future__ import annotations

from enum import IntEnum
from typing import cast

from korak.graphs import paths
from korak.graphs.contracts import TypeContract
from korak.graphs.document import Node
from korak.graphs.examining import Examined
from korak.graphs.paths import Path
from korak.model import Json, JsonObject

SET_FIELD = "set_field"


class Standing(IntEnum):
    """Whether something can stand at a path: surely not, perhaps (an open schema), or yes."""

    NO = 0
    OPEN = 1
    YES = 2


def judge(schema: Json, path: Path) -> Standing:
    """Whether a value that fits the schema can have something at the path.

    None is a schema that nobody gave. A member that is declared to be anything may hold anything: only the outermost
    level, and an object that declares other members, leave it open.
    """
    for depth, part in enumerate(path):
        if not isinstance(schema, dict) or _is_combined(schema):
            return Standing.OPEN
        is_name = isinstance(part, str)
        if not _allows(schema, "object" if is_name else "array"):
            return Standing.NO
        if is_name and "properties" not in schema and _is_open(schema):
            return Standing.YES if depth else Standing.OPEN
        schema = _get_property(schema, cast("str", part)) if is_name else schema.get("items", {})
        if schema is False:
            return Standing.NO
    return Standing.OPEN if schema is True else Standing.YES


def _is_open(schema: JsonObject) -> bool:
    return schema.get("additionalProperties", True) is True


def _is_combined(schema: JsonObject) -> bool:
    return any(keyword in schema for keyword in ("$ref", "allOf", "anyOf", "oneOf"))


def _allows(schema: JsonObject, kind: str) -> bool:
    declared = schema.get("type")
    return declared is None or declared == kind or (isinstance(declared, list) and kind in declared)


def _get_property(schema: JsonObject, name: str) -> Json:
    properties = schema.get("properties")
    if isinstance(properties, dict) and name in properties:
        return properties[name]
    return schema.get("additionalProperties", True)


def get_schema(schema: Json, path: Path) -> Json:
    """The schema of what stands at a path inside what a schema describes; None where it doesn't say."""
    for part in path:
        if not isinstance(schema, dict) or _is_combined(schema):
            return None
        schema = _get_property(schema, part) if isinstance(part, str) else schema.get("items")
    return schema


class Writers:
    """Everything that a graph writes into its state."""

    def __init__(self, examined: Examined) -> None:
        self._saved: dict[str, list[Json]] = {}
        self._merged: list[Json] = []
        self._fields: set[str | int] = set()
        for node in examined.graph.list_nodes():
            self._add_save(node, examined.contracts.get(node.id))
            if node.type == SET_FIELD:
                self._add_field(node.config.get("field"))

    def judge(self, path: Path) -> Standing:
        """Whether anything writes `state.<path>`; what `set_field` writes may be anything."""
        if not path or path[0] in self._fields:
            return Standing.YES
        found = [judge(schema, path[1:]) for schema in self._saved.get(str(path[0]), ())]
        if not str(path[0]).startswith("_"):
            found.extend(judge(schema, path) for schema in self._merged)
        return max(found, default=Standing.NO)

    def get_schema(self, path: Path) -> Json:
        """The schema of `state.<path>` where one node alone writes it; else None."""
        saved = self._saved.get(str(path[0]), []) if path else []
        if len(saved) != 1 or self._merged or path[0] in self._fields:
            return None
        return get_schema(saved[0], path[1:])

    def _add_save(self, node: Node, contract: TypeContract | None) -> None:
        save = cast("JsonObject | None", node.raw.get("save"))
        if save is None:
            return
        schema = None if contract is None else contract.output_schema
        key = save.get("key")
        if isinstance(key, str):
            self._saved.setdefault(key, []).append(schema)
        else:
            self._merged.append(schema)

    def _add_field(self, field: Json) -> None:
        try:
            path = paths.parse(field)
        except paths.Malformed:
            return
        if path == ("state",):
            self._merged.append(None)
        elif path[0] == "state":
            self._fields.add(path[1])
