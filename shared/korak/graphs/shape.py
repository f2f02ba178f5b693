"""The first look at a document: its size, whether it is JSON, and its form; linear in what was sent, whatever it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from korak.errors import Invalid, Issue
from korak.graphs import hygiene, paths
from korak.graphs.document import Graph, GraphLimits, read_graph
from korak.graphs.schema import END, UNSERVED, graph_schema
from korak.model import Json, JsonObject

MAX_ISSUES = 100


def parse(document: Json, limits: GraphLimits | None = None) -> Graph:
    """The typed view of a document whose form is right; the rules of publish are `korak.graphs.validation`'s.

    Raises Invalid("invalid_document") with its issues.
    """
    graph, issues = read(document, limits or GraphLimits())
    if graph is None:
        raise Invalid("invalid_document", issues=issues, count=len(issues))
    return graph


def read(document: Json, limits: GraphLimits) -> tuple[Graph | None, list[Issue]]:
    """The typed view of a document, or what is wrong with its form; sizes come first, and alone."""
    issue = (
        _check_length(document, limits)
        or check_values(document, limits.max_bytes, limits.max_depth)
        or _check_json(document, limits)
    )
    if issue is not None:
        return None, [issue]
    if issues := _check_form(document):
        return None, issues
    graph = read_graph(document)
    if issue := _check_count(graph, limits):
        return None, [issue]
    return graph, []


def _check_length(document: Json, limits: GraphLimits) -> Issue | None:
    """The outermost lists, before anything looks into them."""
    for member, limit in (("nodes", limits.max_nodes), ("edges", limits.max_edges)):
        found = document.get(member) if isinstance(document, dict) else None
        if isinstance(found, list) and len(found) > limit:
            return _too_large(f"max_{member}", len(found), limit, f"/{member}")
    return None


def _check_count(graph: Graph, limits: GraphLimits) -> Issue | None:
    """Nodes and edges of all bodies together."""
    nodes, edges = sum(1 for _ in graph.list_nodes()), sum(1 for _ in graph.list_edges())
    if nodes > limits.max_nodes:
        return _too_large("max_nodes", nodes, limits.max_nodes, "/nodes")
    if edges > limits.max_edges:
        return _too_large("max_edges", edges, limits.max_edges, "/edges")
    return None


def _check_json(document: Json, limits: GraphLimits) -> Issue | None:
    issue = hygiene.check_json(document, max_depth=limits.max_depth)
    if issue is None and (size := hygiene.size(document)) > limits.max_bytes:
        return _too_large("max_bytes", size, limits.max_bytes)
    return issue


def _check_form(document: Json) -> list[Issue]:
    issues: list[Issue] = []
    for error in _get_validator().iter_errors(document):
        issues.extend(_name(document, issue) for issue in _describe(error))
        if len(issues) >= MAX_ISSUES:
            break
    return sorted(issues, key=lambda found: found.pointer)


def check_values(document: Json, max_bytes: int, max_depth: int = hygiene.MAX_DEPTH) -> Issue | None:
    """Bounds the walks that follow: a value that holds itself, or one thing a thousand times, is no small document."""
    left = max_bytes
    pending: list[tuple[object, int]] = [(document, 0)]
    while pending:
        value, depth = pending.pop()
        left -= _measure(value)
        if isinstance(value, (dict, list)):
            if depth >= max_depth:
                return Issue("invalid_json", "", {"why": f"it is nested more than {max_depth} deep"})
            left -= sum(map(_measure, value)) if isinstance(value, dict) and len(value) <= left else len(value)
            if left >= 0:
                pending.extend((member, depth + 1) for member in (value.values() if isinstance(value, dict) else value))
        if left < 0:
            return _too_large("max_bytes", max_bytes + 1, max_bytes)
    return None


def _measure(value: object) -> int:
    """The least bytes that a key, a string or anything else takes."""
    return 1 + len(value) if isinstance(value, str) else 1


def _too_large(name: str, actual: int, limit: int, pointer: str = "") -> Issue:
    return Issue("graph_too_large", pointer, {"name": f"graph.{name}", "actual": actual, "limit": limit})


@cache
def _get_validator() -> Draft202012Validator:
    return Draft202012Validator(graph_schema())


def _name(document: Json, issue: Issue) -> Issue:
    """The issue with the node or the edge of the outermost level in which it stands."""
    match issue.pointer.split("/")[1:]:
        case ["nodes", index, *_]:
            node = cast("list[Json]", cast("JsonObject", document)["nodes"])[int(index)]
            name = node.get("id") if isinstance(node, dict) else None
            return replace(issue, node=name if isinstance(name, str) else None)
        case ["edges", index, *_]:
            return replace(issue, edge=int(index))
        case _:
            return issue


def _describe(error: ValidationError) -> Iterator[Issue]:
    path = list(error.absolute_path)
    schema = cast("JsonObject", error.schema)
    keyword, expected = cast("str", error.validator), cast("Json", error.validator_value)
    match keyword:
        case "additionalProperties":
            yield from _describe_strangers(schema, cast("JsonObject", error.instance), path)
        case "required":
            missing = (name for name in cast("list[str]", expected) if error.message.startswith(repr(name)))
            name = next(missing, "")
            yield _issue(path, f"`{name}` is missing.", keyword, name)
        case _:
            yield _issue(path, _get_detail(error, keyword, schema), keyword, _shorten(expected))


def _describe_strangers(schema: JsonObject, given: JsonObject, path: list[str | int]) -> Iterator[Issue]:
    known, unserved = cast("JsonObject", schema["properties"]), cast("list[str]", schema.get(UNSERVED) or [])
    for name in given:
        if name in unserved:
            yield _issue([*path, name], f"`{name}` is not available in this version.", "additionalProperties", False)
        elif name not in known:
            yield _issue([*path, name], f"`{name[:64]}` is not known here.", "additionalProperties", False)


def _get_detail(error: ValidationError, keyword: str, schema: JsonObject) -> str:
    expected, given = cast("Any", error.validator_value), cast("Json", error.instance)
    match keyword:
        case "type":
            return f"This is of type {_get_type(given)}; {expected} is expected."
        case "const":
            return f"{json.dumps(expected)} is expected."
        case "enum":
            return f"One of {', '.join(json.dumps(value) for value in expected)} is expected."
        case "pattern":
            return f"It doesn't match {str(expected).removesuffix(END)}$."
        case "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties":
            return f"{keyword} is {expected}."
        case "minimum" | "maximum":
            return f"{keyword} is {expected}."
        case _:
            about = cast("str", schema.get("description") or "")
            return f"This has none of the forms that are allowed here. {about}".rstrip()


def _get_type(value: Json) -> str:
    names: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer"}
    return "null" if value is None else names.get(type(value), "number")


def _shorten(expected: Json) -> Json:
    """What a keyword asks for, where it is short enough to be told."""
    members = expected if isinstance(expected, list) else [expected]
    return None if any(isinstance(member, (dict, list)) for member in members) else expected


def _issue(path: list[str | int], detail: str, keyword: str, expected: Json) -> Issue:
    params: JsonObject = {"detail": detail, "keyword": keyword, "expected": expected}
    return Issue("invalid_config", paths.pointer(path), params)
