"""Limits of a document, each at its number and one over, and what the message names (LM-4, LM-5, LM-8)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from korak.graphs import hygiene
from korak.graphs.document import GraphLimits
from korak.graphs.validation import validate
from korak.model import Json, JsonObject
from tests.support.catalogue import CATALOGUE

START: JsonObject = {"id": "start", "type": "trigger", "config": {"on": "manual"}}
END: JsonObject = {"id": "done", "type": "end"}


def chain_of(nodes: int) -> JsonObject:
    """So many nodes, trigger and end included, and an edge less."""
    ids = ["start", *(f"n{number}" for number in range(nodes - 2)), "done"]
    inner: list[Json] = [{"id": name, "type": "test.open"} for name in ids[1:-1]]
    listed: list[Json] = [START, *inner, END]
    edges: list[Json] = [{"from": source, "to": target} for source, target in pairwise(ids)]
    return {"schema": "korak.graph/v1", "key": "order", "nodes": listed, "edges": edges}


def loop_of(rounds: int) -> JsonObject:
    loop: JsonObject = {"id": "l", "type": "loop", "config": {"over": [1], "max_iterations": rounds}}
    ways: list[Json] = [
        {"from": "start", "to": "l"},
        {"from": "l", "outcome": "body", "to": "l"},
        {"from": "l", "outcome": "done", "to": "done"},
    ]
    return chain_of(3) | {"nodes": [START, loop, END], "edges": ways}


SIZE = hygiene.size(chain_of(6))


@pytest.mark.parametrize(
    ("name", "limit", "make"),
    [("max_nodes", 6, chain_of), ("max_edges", 5, lambda count: chain_of(count + 1))],
)
def test_lm_5_a_graph_of_as_many_as_the_limit_passes_and_one_more_does_not(
    name: str, limit: int, make: Callable[[int], JsonObject]
) -> None:
    given: Any = {name: limit}
    limits = GraphLimits(**given)
    assert validate(make(limit), CATALOGUE, limits).issues == ()
    [issue] = validate(make(limit + 1), CATALOGUE, limits).issues
    assert issue.code == "graph_too_large"
    assert issue.message == f"The graph is over its limit: graph.{name} is {limit + 1}, {limit} at most."


def test_lm_5_a_graph_of_as_many_bytes_as_the_limit_passes_and_one_more_does_not() -> None:
    assert validate(chain_of(6), CATALOGUE, GraphLimits(max_bytes=SIZE)).issues == ()
    [issue] = validate(chain_of(6), CATALOGUE, GraphLimits(max_bytes=SIZE - 1)).issues
    assert issue.code == "graph_too_large"
    assert issue.message == f"The graph is over its limit: graph.max_bytes is {SIZE}, {SIZE - 1} at most."


def test_lm_4_a_loop_of_as_many_rounds_as_the_limit_passes_and_one_more_does_not() -> None:
    assert validate(loop_of(1000), CATALOGUE, GraphLimits()).issues == ()
    [issue] = validate(loop_of(1001), CATALOGUE, GraphLimits()).issues
    assert (issue.code, issue.pointer) == ("invalid_config", "/nodes/1/config/max_iterations")
    assert "1000" in issue.message
