"""What publish refuses of bodies: what they see, and what is seen of them (spec 14, DESIGN 6)."""

from __future__ import annotations

from korak.graphs.validation import validate
from korak.model import Json, JsonObject
from tests.support.catalogue import WITH_CONTAINERS
from tests.support.publishing import Pairs, document, found, one


def nested(inner: JsonObject, *, edges: list[Json] | None = None, kind: str = "for_each") -> JsonObject:
    body: JsonObject = {"start": "b", "nodes": [{"id": "b", "type": "test.open", **inner}], "edges": edges or []}
    config: JsonObject = {"items": [1]} if kind == "for_each" else {}
    return document(
        {"id": "q", "type": "test.quote"},
        {"id": "each", "type": kind, "config": config, "body": body},
        {"id": "z", "type": "test.open"},
        edges=["start q", "q each", "each z", "z done"],
    )


def found_in(raw: JsonObject) -> Pairs:
    return [(issue.code, issue.pointer) for issue in validate(raw, WITH_CONTAINERS).issues]


def test_a_body_sees_what_is_around_it() -> None:
    reads: JsonObject = {name: {"ref": name} for name in ("item", "index", "steps.q.output.total", "loops.each.item")}
    assert found_in(nested({"config": reads})) == []


def test_a_body_does_not_see_its_container() -> None:
    at = "/nodes/2/body/nodes/0/config/x/ref"
    assert found_in(nested({"config": {"x": {"ref": "steps.each.outcome"}}})) == [("reference_not_ancestor", at)]


def test_only_a_for_each_has_items() -> None:
    at = "/nodes/2/body/nodes/0/config/x/ref"
    assert found_in(nested({"config": {"x": {"ref": "item"}}}, kind="scope")) == [("unknown_reference", at)]


def test_a_body_is_not_seen_from_outside() -> None:
    raw = nested({})
    nodes = raw["nodes"]
    assert isinstance(nodes, list)
    nodes[3] = {"id": "z", "type": "test.open", "config": {"x": {"ref": "steps.b.outcome"}}}
    assert found_in(raw) == [("reference_not_ancestor", "/nodes/3/config/x/ref")]


def test_no_edge_crosses_a_border() -> None:
    raw = nested({}, edges=[{"from": "b", "to": "z"}])
    assert found_in(raw) == [("edge_unknown_node", "/nodes/2/body/edges/0/to")]


def test_a_body_has_a_start_and_no_trigger() -> None:
    raw = nested({"id": "c"})
    assert found_in(raw) == [("edge_unknown_node", "/nodes/2/body/start")]
    assert ("trigger_multiple", "/nodes/2/body/nodes/0") in found_in(nested({"type": "trigger"}))


def test_ids_are_unique_in_the_whole_document() -> None:
    raw = nested({})
    nodes = raw["nodes"]
    assert isinstance(nodes, list)
    nodes.append({"id": "b", "type": "test.open"})
    assert ("duplicate_node", "/nodes/2/body/nodes/0/id") in found_in(raw)


def test_containers_are_unknown_until_they_come() -> None:
    body: JsonObject = {"start": "b", "nodes": [{"id": "b", "type": "test.open"}]}
    raw = document({"id": "a", "type": "scope", "body": body}, edges=["start a", "a done"])
    assert found(raw) == [("unknown_type", "/nodes/1/type")]


def test_a_body_on_what_is_no_container() -> None:
    body: JsonObject = {"start": "b", "nodes": [{"id": "b", "type": "test.open"}]}
    assert found(one({"body": body})) == [("invalid_config", "/nodes/1/body")]
