"""Graph documents for the end-to-end tests."""

from __future__ import annotations

from itertools import pairwise

from korak.model import Json, JsonObject


def node(name: str, kind: str, config: JsonObject | None = None, **members: Json) -> JsonObject:
    """One node."""
    return {"id": name, "type": kind, "config": config or {}, **members}


def edge(source: str, target: str, outcome: str = "next") -> JsonObject:
    """One edge."""
    return {"from": source, "to": target, "outcome": outcome}


def document(key: str, nodes: list[JsonObject], edges: list[JsonObject]) -> JsonObject:
    """A document with a manual trigger, `start`, that takes any object."""
    start = node("start", "trigger", {"on": "manual"})
    every: list[Json] = [start, *nodes]
    return {"schema": "korak.graph/v1", "key": key, "name": key, "nodes": every, "edges": [*edges]}


def chain(key: str, *nodes: JsonObject) -> JsonObject:
    """Nodes that follow one another, and the end, whose result is the state."""
    done = node("done", "end", {"result": {"ref": "state"}})
    ids = ["start", *(str(each["id"]) for each in nodes), "done"]
    return document(key, [*nodes, done], [edge(before, after) for before, after in pairwise(ids)])
