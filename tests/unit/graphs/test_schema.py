"""The JSON Schema of the document: valid itself, complete, and of one mind with the check."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from korak.errors import Invalid
from korak.graphs.schema import graph_schema
from korak.graphs.shape import parse
from korak.model import Json, JsonObject

DESIGN: JsonObject = {
    "schema": "korak.graph/v1",
    "key": "order-approval",
    "name": "Order approval",
    "nodes": [
        {
            "id": "start",
            "type": "trigger",
            "config": {"on": "manual", "inputs": {"order_id": {"type": "string", "required": True}}},
        },
        {
            "id": "price",
            "type": "shop.price",
            "config": {"order": {"ref": "input.order_id"}},
            "retry": {"max_attempts": 5, "backoff": [10, 60, 300]},
            "timeout": "PT2M",
            "save": {"key": "quote"},
        },
        {
            "id": "big",
            "type": "condition",
            "config": {"if": {"ref": "state.quote.total", "op": "gte", "value": 1000}},
        },
        {
            "id": "ask",
            "type": "approval",
            "config": {"approvers": [{"role": "finance"}], "timeout": "P3D"},
            "escalations": [{"after": {"business": "PT4H", "calendar": "office"}, "actions": [{"type": "notify"}]}],
        },
        {
            "id": "each",
            "type": "for_each",
            "config": {"items": {"ref": "input.lines"}},
            "body": {"start": "one", "nodes": [{"id": "one", "type": "shop.line", "position": {"x": 1, "y": 2}}]},
        },
        {
            "id": "both",
            "type": "parallel",
            "branches": {"left": {"start": "l", "nodes": [{"id": "l", "type": "shop.line"}], "edges": []}},
        },
        {"id": "done", "type": "end", "config": {"result": {"ref": "state"}}},
    ],
    "edges": [
        {"from": "start", "to": "price"},
        {"from": "price", "to": "big"},
        {"from": "big", "outcome": "true", "to": "ask"},
        {"from": "big", "outcome": "false", "to": "done"},
    ],
    "settings": {"timezone": "Europe/Ljubljana", "limits": {"max_steps": 100}},
}


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(graph_schema())


def test_each_caller_has_a_copy() -> None:
    graph_schema()["properties"] = {}
    assert graph_schema()["properties"]


def list_objects(schema: Any, path: str = "") -> Iterator[tuple[str, JsonObject]]:
    if isinstance(schema, dict):
        if isinstance(schema.get("properties"), dict) and "additionalProperties" in schema:
            yield path, schema
        for name, member in schema.items():
            yield from list_objects(member, f"{path}/{name}")
    elif isinstance(schema, list):
        for index, member in enumerate(schema):
            yield from list_objects(member, f"{path}/{index}")


def test_every_member_says_what_it_is_for() -> None:
    for path, schema in list_objects(graph_schema()):
        if "anyOf" in path:
            continue
        properties = schema["properties"]
        assert isinstance(properties, dict)
        for name, member in properties.items():
            assert isinstance(member, dict)
            assert "description" in member or "$ref" in member, f"{path}/{name}"


def test_the_documents_of_the_design() -> None:
    """DESIGN 6."""
    Draft202012Validator(graph_schema()).validate(DESIGN)
    graph = parse(DESIGN)
    assert graph.key == "order-approval"
    assert list(graph.nodes) == ["start", "price", "big", "ask", "each", "both", "done", "one", "l"]
    assert [(body.container, body.branch, body.start) for body in graph.bodies] == [
        (None, None, "start"),
        ("each", None, "one"),
        ("both", "left", "l"),
    ]
    assert graph.nodes["l"].pointer == "/nodes/5/branches/left/nodes/0"
    assert graph.nodes["one"].container == "each"
    assert graph.nodes["both"].branches == ("left",)
    assert graph.root.edges[0].outcome == "next"
    assert graph.root.edges[2].pointer == "/edges/2"


@pytest.mark.parametrize("raw", [None, [], "x", {}, {"schema": "korak.graph/v1", "key": "x", "nodes": [{}]}])
def test_what_has_another_form(raw: Json) -> None:
    with pytest.raises(Invalid) as raised:
        parse(raw)
    assert raised.value.code == "invalid_document"
    assert raised.value.issues
    assert all(issue.code == "invalid_config" for issue in raised.value.issues)


def test_the_issues_are_bounded() -> None:
    nodes: list[Json] = [{"id": "A", "type": "", "config": 1, "wat": 2} for _ in range(400)]
    with pytest.raises(Invalid) as raised:
        parse({"schema": "korak.graph/v1", "key": "x", "nodes": nodes})
    assert 100 <= len(raised.value.issues) < 110


def test_pointers_escape_names() -> None:
    with pytest.raises(Invalid) as raised:
        parse({**DESIGN, "a/b~c": 1})
    assert [issue.pointer for issue in raised.value.issues] == ["/a~1b~0c"]
