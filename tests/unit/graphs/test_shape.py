"""What publish refuses before it looks at a graph: another form than a graph has, and what is too large (DESIGN 6)."""

from __future__ import annotations

from typing import Any

import pytest

from korak.graphs.validation import Report
from korak.model import Json, JsonObject
from tests.support.publishing import START, check, found, one


def test_a_sound_document_has_no_issues() -> None:
    assert check(one({})) == Report()
    assert check(one({})).is_publishable


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"nodes": {}}, "/nodes"),
        ({"nodes": []}, "/nodes"),
        ({"nodes": [1]}, "/nodes/0"),
        ({"schema": "korak.graph/v2"}, "/schema"),
        ({"key": "a b"}, "/key"),
        ({"key": "a~b"}, "/key"),
        ({"key": "order\n"}, "/key"),
        ({"edges": [{"from": "start"}]}, "/edges/0"),
        ({"edges": [{"from": "start", "to": "a", "when": 1}]}, "/edges/0/when"),
        ({"wat": 1}, "/wat"),
        ({"settings": {"limits": {"max_steps": 0}}}, "/settings/limits/max_steps"),
        ({"settings": {"priority": 2}}, "/settings/priority"),
        ({"settings": {"actor": "me"}}, "/settings/actor"),
        ({"settings": {"queue": "a b"}}, "/settings/queue"),
        ({"settings": {"timezone": 1}}, "/settings/timezone"),
    ],
)
def test_form_of_the_document(change: JsonObject, pointer: str) -> None:
    assert found({**one({}), **change}) == [("invalid_config", pointer)]


@pytest.mark.parametrize(
    ("node", "pointer"),
    [
        ({"id": "A"}, "/nodes/1/id"),
        ({"id": "1a"}, "/nodes/1/id"),
        ({"id": "a\n"}, "/nodes/1/id"),
        ({"id": "a" * 65}, "/nodes/1/id"),
        ({"id": "a-b"}, "/nodes/1/id"),
        ({"config": []}, "/nodes/1/config"),
        ({"save": {}}, "/nodes/1/save"),
        ({"save": {"merge": True, "key": "x"}}, "/nodes/1/save"),
        ({"save": {"merge": False}}, "/nodes/1/save/merge"),
        ({"retry": {"backoff": [1]}}, "/nodes/1/retry"),
        ({"retry": {"max_attempts": 0}}, "/nodes/1/retry/max_attempts"),
        ({"retry": {"max_attempts": 2, "jitter": 2}}, "/nodes/1/retry/jitter"),
        ({"timeout": -1}, "/nodes/1/timeout"),
        ({"priority": "asap"}, "/nodes/1/priority"),
        ({"on_error": [{"codes": [], "outcome": "x"}]}, "/nodes/1/on_error/0/codes"),
        ({"jumps": "all"}, "/nodes/1/jumps"),
        ({"type_version": 0}, "/nodes/1/type_version"),
        ({"cost": -1}, "/nodes/1/cost"),
        ({"color": "red"}, "/nodes/1/color"),
    ],
)
def test_form_of_a_node(node: JsonObject, pointer: str) -> None:
    issues = check(one(node)).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", pointer)]
    assert issues[0].node == node.get("id", "a")
    assert issues[0].params["keyword"]


def test_an_issue_of_an_edge_names_it() -> None:
    assert check(one({}) | {"edges": [{"from": "start", "to": "a"}, {"to": "a"}]}).issues[0].edge == 1


def test_a_million_nodes() -> None:
    """LM-5: refused by their number, before anything looks at them."""
    raw = one({}) | {"nodes": [START] * 1_000_000}
    issues = check(raw).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("graph_too_large", "/nodes")]
    assert issues[0].params == {"name": "graph.max_nodes", "actual": 1_000_000, "limit": 500}
    assert issues[0].message == "The graph is over its limit: graph.max_nodes is 1000000, 500 at most."


def test_too_many_edges() -> None:
    assert found(one({}) | {"edges": [{"from": "start", "to": "a"}] * 1001}) == [("graph_too_large", "/edges")]


def test_too_many_nodes_in_bodies() -> None:
    inner: JsonObject = {"start": "b", "nodes": [{"id": f"b{n}", "type": "test.open"} for n in range(4)]}
    assert found(one({"type": "scope", "body": inner}), max_nodes=6) == [("graph_too_large", "/nodes")]


def test_too_many_bytes() -> None:
    assert found(one({"config": {"text": "x" * 300_000}})) == [("graph_too_large", "")]
    assert found(one({"config": {"text": "š" * 140_000}})) == [("graph_too_large", "")]


def test_a_document_that_holds_itself() -> None:
    raw = one({})
    raw["nodes"] = [raw]
    assert found(raw) == [("invalid_json", "")]


def test_one_thing_a_billion_times() -> None:
    thing: Json = ["lol"]
    for _ in range(40):
        thing = [thing] * 10
    assert found(one({"config": {"bomb": thing}})) == [("graph_too_large", "")]


def test_deep_nesting() -> None:
    deep: Json = 1
    for _ in range(10_000):
        deep = [deep]
    assert found(one({"config": {"deep": deep}})) == [("invalid_json", "")]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "a\0b", "\ud800", 2**70, {1}, (1,), b"x", object()])
def test_what_is_no_json(value: Any) -> None:
    assert found(one({"config": {"x": value}})) == [("invalid_json", "/nodes/1/config/x")]


@pytest.mark.parametrize("value", [None, True, 3, "graph", [], {}])
def test_what_is_no_document(value: Json) -> None:
    assert found(value)
