"""Items that are written out: no more of them than the limit in force allows, or every run would fail."""

from __future__ import annotations

from typing import Any

import pytest

from korak.graphs.document import GraphLimits
from korak.graphs.validation import validate
from korak.model import Json, JsonObject
from korak.steps.registry import Registry

REGISTRY = Registry()
NAMES = {"for_each": "max_for_each_items", "start_workflows": "max_started_workflows"}


def check(kind: str, items: Json, own: int | None = None, engine: int | None = None) -> list[tuple[str, str, str]]:
    """What is wrong with a graph of one such node, with a limit of its own and one of the engine's."""
    body: JsonObject = {"start": "x", "nodes": [{"id": "x", "type": "delay", "config": {"for": 1}}], "edges": []}
    each: JsonObject = {"config": {"items": items}, "body": body}
    started: JsonObject = {"config": {"definition": "child", "items": items}}
    document: JsonObject = {
        "schema": "korak.graph/v1",
        "key": "order",
        "nodes": [
            {"id": "start", "type": "trigger", "config": {"on": "manual"}},
            {"id": "many", "type": kind, **(each if kind == "for_each" else started)},
            {"id": "done", "type": "end"},
        ],
        "edges": [{"from": "start", "to": "many"}, {"from": "many", "to": "done"}],
        "settings": {"limits": {} if own is None else {NAMES[kind]: own}},
    }
    run = GraphLimits().run
    limits = GraphLimits(run=run if engine is None else {**run, NAMES[kind]: engine})
    return [(issue.code, issue.pointer, issue.message) for issue in validate(document, REGISTRY, limits).issues]


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize(("own", "engine", "limit"), [(None, None, 10_000), (3, None, 3), (None, 4, 4), (3, 4, 3)])
@pytest.mark.parametrize("is_literal", [False, True])
def test_as_many_items_as_the_limit_in_force_are_published_and_one_more_are_not(
    kind: str, own: int | None, engine: int | None, limit: int, *, is_literal: bool
) -> None:
    def write(count: int) -> Any:
        return {"literal": [0] * count} if is_literal else [0] * count

    assert check(kind, write(limit), own, engine) == []
    told = f"limits.{NAMES[kind]} is {limit}: {limit + 1} items are too many."
    assert check(kind, write(limit + 1), own, engine) == [("invalid_config", "/nodes/1/config/items", told)]


@pytest.mark.parametrize("kind", NAMES)
def test_how_many_a_value_comes_to_is_told_as_it_runs(kind: str) -> None:
    assert check(kind, {"cel": "[1, 2, 3]"}, own=1) == []
