"""What a node's config reads and where: its values, its conditions, and the ids of other nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from korak.graphs import paths
from korak.graphs.paths import Reference
from korak.graphs.values import get_form
from korak.model import Json, JsonObject

CONDITION = "#/$defs/condition"
NODE_ID = "node-id"
PLAIN = ("string", "integer", "number", "boolean", "array")
SHARED = frozenset({"value", "party", "parties", "duration", "condition", "field"})
_DEPTH = 32


@dataclass(frozen=True, slots=True)
class Place:
    """A spot in a config whose schema marks it: `path` leads there, `value` stands there."""

    path: tuple[str | int, ...]
    value: Json

    @property
    def pointer(self) -> str:
        """Its JSON pointer into the config."""
        return paths.pointer(self.path)


def find_conditions(schema: JsonObject, config: JsonObject) -> list[Place]:
    """Where the schema says that a condition stands: these are no values and are resolved by their type."""
    return [place for place, member in _walk(schema, config) if member.get("$ref") == CONDITION]


def find_nodes(schema: JsonObject, config: JsonObject) -> list[Place]:
    """Where the schema says that a node of its own stands (`x-korak-node`): it is read as one, not as a value."""
    return [place for place, member in _walk(schema, config) if member.get("x-korak-node") is True]


def find_node_ids(schema: JsonObject, config: JsonObject) -> list[Place]:
    """Where the schema says that the id of a node stands (format node-id) and one is written."""
    places = (place for place, member in _walk(schema, config) if member.get("format") == NODE_ID)
    return [place for place in places if isinstance(place.value, str)]


def find_forms_unread(schema: JsonObject, config: JsonObject) -> list[Place]:
    """Where a value form stands though a text, a number, a flag or a list is asked for.

    A pure type reads those as they are written.
    """
    return [
        place
        for place, member in _walk(schema, config)
        if get_form(place.value) is not None and ("enum" in member or member.get("type") in PLAIN)
    ]


def set_aside_conditions(schema: JsonObject, config: JsonObject) -> JsonObject:
    """The config with every condition, and every node in it, as a literal: resolving it leaves them as written."""
    result = config
    for place in (*find_conditions(schema, config), *find_nodes(schema, config)):
        result = cast("JsonObject", _replace(result, place.path, {"literal": place.value}))
    return result


def _replace(container: Json, path: tuple[str | int, ...], value: Json) -> Json:
    if not path:
        return value
    head, rest = path[0], path[1:]
    if isinstance(container, dict):
        return container | {cast("str", head): _replace(container[cast("str", head)], rest, value)}
    items = list(cast("list[Json]", container))
    items[cast("int", head)] = _replace(items[cast("int", head)], rest, value)
    return items


def _walk(root: JsonObject, config: Json) -> Iterator[tuple[Place, JsonObject]]:
    """Every place of the config with each schema that describes it; deeper than a schema may be is left out."""
    pending: list[tuple[JsonObject, tuple[str | int, ...], Json, int]] = [(root, (), config, 0)]
    seen: set[tuple[int, tuple[str | int, ...]]] = set()
    while pending:
        schema, path, value, depth = pending.pop()
        if depth > _DEPTH or (id(schema), path) in seen:
            continue
        seen.add((id(schema), path))
        yield Place(path, value), schema
        pending.extend((member, path, value, depth) for member in _list_alternatives(root, schema))
        pending.extend(
            (member, (*path, part), inner, depth + 1) for part, member, inner in _list_members(schema, value)
        )


def _list_alternatives(root: JsonObject, schema: JsonObject) -> Iterator[JsonObject]:
    """The other schemas that describe the same place: a local `$ref` and the branches of a combination."""
    target = schema.get("$ref")
    definitions = root.get("$defs")
    if isinstance(target, str) and target.startswith("#/$defs/") and isinstance(definitions, dict):
        name = target.removeprefix("#/$defs/")
        named = definitions.get(name)
        if isinstance(named, dict) and name not in SHARED:
            yield named
    for keyword in ("allOf", "anyOf", "oneOf"):
        branches = schema.get(keyword)
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, dict):
                yield branch


def _list_members(schema: JsonObject, value: Json) -> Iterator[tuple[str | int, JsonObject, Json]]:
    if isinstance(value, dict):
        declared = schema.get("properties")
        properties: Mapping[str, Json] = declared if isinstance(declared, dict) else {}
        for name, inner in value.items():
            member = properties.get(name, schema.get("additionalProperties"))
            if isinstance(member, dict):
                yield name, member, inner
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        for index, inner in enumerate(value):
            yield index, items, inner


def list_node_references(references: Iterable[Reference]) -> Iterator[str | None]:
    """The node ids read through `steps.<id>`; None where the id is only known at run time."""
    for reference in references:
        if reference.path and reference.path[0] == "steps":
            following = reference.path[1] if len(reference.path) > 1 else None
            yield following if isinstance(following, str) else None
