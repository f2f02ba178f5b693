"""What publish refuses of nodes and the edges between them, each at its pointer (spec 14, DESIGN 6)."""

from __future__ import annotations

from typing import Any

from korak.model import Json, JsonObject
from tests.support.publishing import END, START, check, document, found, one


def test_unknown_type() -> None:
    assert found(one({"type": "test.gone"})) == [("unknown_type", "/nodes/1/type")]


def test_unknown_version_of_a_type() -> None:
    assert found(one({"type": "test.open", "type_version": 7})) == [("unknown_type", "/nodes/1/type_version")]


def test_the_outcomes_of_an_older_version() -> None:
    assert found(one({"type": "test.versioned", "type_version": 1})) == []
    assert found(one({"type": "test.versioned"})) == [("outcome_unconnected", "/nodes/1")]


def test_an_id_used_twice() -> None:
    raw = document({"id": "a", "type": "test.open"}, {"id": "a", "type": "test.open"}, edges=["start a", "a done"])
    assert found(raw) == [("duplicate_node", "/nodes/2/id")]


def test_no_trigger() -> None:
    raw: JsonObject = {"schema": "korak.graph/v1", "key": "x", "nodes": [END]}
    assert found(raw) == [("trigger_missing", "/nodes")]


def test_two_triggers() -> None:
    second: JsonObject = {"id": "again", "type": "trigger"}
    raw = document(second, edges=["start done", "again done"])
    assert found(raw) == [("trigger_multiple", "/nodes/1")]


def test_a_trigger_that_leads_nowhere() -> None:
    raw: JsonObject = {"schema": "korak.graph/v1", "key": "x", "nodes": [START]}
    assert found(raw) == [("nothing_follows", "/nodes/0")]


def test_an_edge_into_the_trigger() -> None:
    node: JsonObject = {"id": "a", "type": "loop", "config": {"over": [1], "max_iterations": 2}}
    raw = document(node, edges=["start a", "a body start", "a done done"])
    assert ("edge_into_trigger", "/edges/1/to") in found(raw)


def test_edges_with_unknown_ends() -> None:
    raw = document({"id": "a", "type": "test.open"}, edges=["start a", "a done", "ghost a", "a error ghost"])
    assert found(raw) == [("edge_unknown_node", "/edges/2/from"), ("edge_unknown_node", "/edges/3/to")]
    assert check(raw).issues[0].edge == 2


def test_an_edge_by_an_unknown_outcome() -> None:
    raw = document({"id": "a", "type": "test.open"}, edges=["start a", "a done", "a maybe done"])
    assert found(raw) == [("edge_unknown_outcome", "/edges/2/outcome")]


def test_end_has_no_way_out() -> None:
    assert found(document(edges=["start done", "done done"])) == [
        ("edge_unknown_outcome", "/edges/1/outcome"),
        ("cycle_without_loop", "/nodes/1"),
    ]


def test_two_edges_by_one_outcome() -> None:
    raw = document({"id": "a", "type": "test.open"}, edges=["start a", "a done", "a next done"])
    assert found(raw) == [("edge_duplicate", "/edges/2")]


def test_an_outcome_without_an_edge() -> None:
    raw = document({"id": "a", "type": "condition", "config": {"if": {"all": []}}}, edges=["start a", "a true done"])
    issue = check(raw).issues[0]
    assert (issue.code, issue.pointer, issue.node) == ("outcome_unconnected", "/nodes/1", "a")
    assert issue.params == {"id": "a", "outcome": "false"}


def test_outcomes_that_depend_on_the_config() -> None:
    cases: Json = [{"key": "big", "if": {"ref": "input.n", "op": "gt", "value": 5}}]
    node: JsonObject = {"id": "a", "type": "branch", "config": {"cases": cases}}
    assert found(document(node, edges=["start a", "a big done", "a default done"])) == []
    assert found(document(node, edges=["start a", "a default done"])) == [("outcome_unconnected", "/nodes/1")]


def test_an_error_exit_may_be_connected() -> None:
    assert found(document({"id": "a", "type": "test.open"}, edges=["start a", "a done", "a error done"])) == []


def test_no_error_exit_where_nothing_can_fail() -> None:
    assert found(document(edges=["start done", "start error done"])) == [("edge_unknown_outcome", "/edges/1/outcome")]


def test_on_error_makes_outcomes() -> None:
    rule: JsonObject = {"codes": ["acme.*"], "outcome": "declined"}
    node: JsonObject = {"id": "a", "type": "test.open", "on_error": [rule]}
    assert found(document(node, edges=["start a", "a done", "a declined done"])) == []
    assert found(document(node, edges=["start a", "a done"])) == [
        ("outcome_unconnected", "/nodes/1/on_error/0/outcome")
    ]


def test_on_error_where_nothing_can_fail() -> None:
    end: JsonObject = {"id": "z", "type": "end", "on_error": [{"codes": ["x"], "outcome": "error"}]}
    raw = document(end, edges=["start z"])
    assert ("invalid_config", "/nodes/1/on_error") in found(raw)


def test_a_node_that_nothing_leads_to() -> None:
    raw = document({"id": "a", "type": "test.open"}, edges=["start done", "a done"])
    assert found(raw) == [("unreachable_node", "/nodes/1")]


def test_a_jump_reaches_its_targets() -> None:
    nodes: list[JsonObject] = [
        {"id": "a", "type": "test.open", "jumps": ["b", "$end"]},
        {"id": "b", "type": "test.open", "jumps": ["a"]},
    ]
    assert found(document(*nodes, edges=["start a", "a done", "b done"])) == []


def test_only_what_has_a_handler_jumps() -> None:
    waiting: JsonObject = {"id": "a", "type": "wait", "config": {"signal": "go"}, "jumps": "any"}
    assert found(document(waiting, edges=["start a", "a done"])) == [("invalid_config", "/nodes/1/jumps")]


def test_jumps_stay_in_the_graph() -> None:
    assert found(one({"jumps": ["ghost", "start"]})) == [
        ("edge_unknown_node", "/nodes/1/jumps/0"),
        ("edge_into_trigger", "/nodes/1/jumps/1"),
    ]


def test_a_cycle_without_a_loop() -> None:
    nodes: list[JsonObject] = [
        {"id": "a", "type": "test.open"},
        {"id": "b", "type": "condition", "config": {"if": {"any": []}}},
    ]
    report = check(document(*nodes, edges=["start a", "a b", "b true a", "b false done"]))
    assert [(issue.code, issue.pointer) for issue in report.issues] == [("cycle_without_loop", "/nodes/1")]
    assert report.issues[0].params == {"nodes": "a -> b -> a"}


def test_an_error_exit_may_not_lead_back() -> None:
    raw = document({"id": "a", "type": "test.open"}, edges=["start a", "a done", "a error a"])
    assert found(raw) == [("cycle_without_loop", "/nodes/1")]


def test_a_cycle_through_a_loop() -> None:
    nodes: list[JsonObject] = [
        {"id": "l", "type": "loop", "config": {"over": [1, 2], "max_iterations": 5}},
        {"id": "a", "type": "test.open", "config": {"item": {"ref": "loops.l.item"}}},
    ]
    assert found(document(*nodes, edges=["start l", "l body a", "a l", "l done done"])) == []


def straight(count: int, **members: Json) -> JsonObject:
    """A document of so many nodes in a row, and the end."""
    names = [f"n{number}" for number in range(count)]
    nodes: list[JsonObject] = [{"id": name, "type": "test.open"} for name in names]
    ways = zip(["start", *names], [*names, "done"], strict=True)
    return document(*nodes, edges=[f"{source} {target}" for source, target in ways], **members)


def test_a_long_chain() -> None:
    nodes: list[JsonObject] = [{"id": f"n{number}", "type": "test.open"} for number in range(498)]
    edges = ["start n0", *(f"n{number} n{number + 1}" for number in range(497)), "n497 done"]
    assert found(document(*nodes, edges=edges), run={"max_steps": 500}) == []


def test_a_graph_that_no_run_could_walk_to_its_end() -> None:
    """LM-1, chain.md 2: the trigger is no visit, the end is one, and a shorter way is enough."""
    assert found(straight(199)) == []
    assert found(straight(200)) == [("graph_too_long", "/nodes")]
    assert found(straight(200), run={"max_steps": 201}) == []
    assert found(straight(3, settings={"limits": {"max_steps": 3}})) == [("graph_too_long", "/nodes")]
    shorter: Any = straight(200)
    shorter["nodes"][1]["jumps"] = ["n150"]
    assert found(shorter) == []
    shorter["nodes"][1]["jumps"] = ["$end"]
    assert found(shorter) == []
    [issue] = check(straight(250)).issues
    assert issue.message == "Every way through has 251 nodes or more; limits.max_steps is 200, so no run would end."
