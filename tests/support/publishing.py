"""Documents of a few nodes, and what publish says of them."""

from __future__ import annotations

from typing import Any

from korak.graphs.document import GraphLimits
from korak.graphs.validation import Report, validate
from korak.model import Json, JsonObject
from tests.support.catalogue import CATALOGUE

Pairs = list[tuple[str, str]]
"""Codes, each with the pointer at which it is reported."""

START: JsonObject = {"id": "start", "type": "trigger", "config": {"on": "manual"}}
END: JsonObject = {"id": "done", "type": "end"}


def document(*nodes: JsonObject, edges: list[str], **members: Json) -> JsonObject:
    """A document of the trigger, the nodes and an end; an edge is "from to" or "from outcome to"."""
    ways: list[Json] = []
    for edge in edges:
        source, *outcome, target = edge.split()
        way: JsonObject = {"from": source, "to": target}
        ways.append(way | {"outcome": outcome[0]} if outcome else way)
    whole: list[Json] = [START, *nodes, END]
    return {"schema": "korak.graph/v1", "key": "order", "nodes": whole, "edges": ways, **members}


def one(node: JsonObject, **members: Json) -> JsonObject:
    """A document in which the node `a` stands between trigger and end."""
    return document({"id": "a", "type": "test.open", **node}, edges=["start a", "a done"], **members)


def configured(config: JsonObject, kind: str = "test.open", **members: Json) -> JsonObject:
    """A document in which the node between trigger and end has this config."""
    return one({"type": kind, "config": config}, **members)


def charge(config: JsonObject, **members: Json) -> JsonObject:
    """A document with test.charge, its two ways connected."""
    node: JsonObject = {"id": "a", "type": "test.charge", "config": {"amount": 5, **config}, **members}
    return document(node, edges=["start a", "a paid done", "a declined done"])


def check(raw: Json, **limits: Any) -> Report:
    """All that is said of a document."""
    return validate(raw, CATALOGUE, GraphLimits(**limits))


def found(raw: Json, **limits: Any) -> Pairs:
    """What is wrong with it."""
    return [(issue.code, issue.pointer) for issue in check(raw, **limits).issues]


def warned(raw: Json, **limits: Any) -> Pairs:
    """What is only odd about one with which nothing is wrong."""
    report = check(raw, **limits)
    assert not report.issues, report.issues
    return [(issue.code, issue.pointer) for issue in report.warnings]
