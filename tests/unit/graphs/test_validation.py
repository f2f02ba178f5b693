"""Every rule of publish: its code, and the pointer at which it is reported (spec 14, DESIGN 6)."""

from __future__ import annotations

from typing import Any

import pytest

from korak.graphs.document import GraphLimits
from korak.graphs.validation import Report, validate
from korak.model import Json, JsonObject
from tests.support.catalogue import CATALOGUE, WITH_CONTAINERS

Pairs = list[tuple[str, str]]

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
    return one({"type": kind, "config": config}, **members)


def charge(config: JsonObject, **members: Json) -> JsonObject:
    """A document with test.charge, its two ways connected."""
    node: JsonObject = {"id": "a", "type": "test.charge", "config": {"amount": 5, **config}, **members}
    return document(node, edges=["start a", "a paid done", "a declined done"])


def check(raw: Json, **limits: Any) -> Report:
    return validate(raw, CATALOGUE, GraphLimits(**limits))


def found(raw: Json, **limits: Any) -> Pairs:
    return [(issue.code, issue.pointer) for issue in check(raw, **limits).issues]


def warned(raw: Json, **limits: Any) -> Pairs:
    report = check(raw, **limits)
    assert not report.issues, report.issues
    return [(issue.code, issue.pointer) for issue in report.warnings]


def test_a_sound_document_has_no_issues() -> None:
    assert check(one({})) == Report()
    assert check(one({})).is_publishable


# form and size


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


@pytest.mark.parametrize(
    ("member", "pointer"),
    [
        ({"settings": {"calendar": "office"}}, "/settings/calendar"),
        ({"settings": {"events": ["*"]}}, "/settings/events"),
    ],
)
def test_settings_of_later_versions_are_refused_by_name(member: JsonObject, pointer: str) -> None:
    issues = check(one({}, **member)).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", pointer)]
    assert "not available in this version" in issues[0].message


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


# nodes and edges


def test_unknown_type() -> None:
    assert found(one({"type": "test.gone"})) == [("unknown_type", "/nodes/1/type")]


def test_containers_are_unknown_until_they_come() -> None:
    body: JsonObject = {"start": "b", "nodes": [{"id": "b", "type": "test.open"}]}
    raw = document({"id": "a", "type": "scope", "body": body}, edges=["start a", "a done"])
    assert found(raw) == [("unknown_type", "/nodes/1/type")]


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


def test_more_rounds_than_the_limit() -> None:
    """LM-4."""
    node: JsonObject = {"id": "l", "type": "loop", "config": {"over": [1], "max_iterations": 1001}}
    raw = document(node, edges=["start l", "l body done", "l done done"])
    assert found(raw) == [("invalid_config", "/nodes/1/config/max_iterations")]


def test_a_long_chain() -> None:
    nodes: list[JsonObject] = [{"id": f"n{number}", "type": "test.open"} for number in range(498)]
    edges = ["start n0", *(f"n{number} n{number + 1}" for number in range(497)), "n497 done"]
    assert found(document(*nodes, edges=edges), run={"max_steps": 500}) == []


# configs


def test_a_config_against_its_schema() -> None:
    assert found(charge({"amount": "five"})) == [("invalid_config", "/nodes/1/config/amount")]
    assert found(charge({"colour": 1})) == [("invalid_config", "/nodes/1/config/colour")]


def test_a_value_form_stands_for_anything() -> None:
    assert found(charge({"amount": {"ref": "input.amount"}})) == []


def test_the_types_own_checks() -> None:
    """Spec 13.9."""
    assert found(charge({"amount": 0})) == [("invalid_config", "/nodes/1/config/amount")]
    assert found(charge({"after": "done"})) == [("invalid_config", "/nodes/1/config/after")]


def test_a_type_whose_own_check_breaks() -> None:
    issues = check(one({"type": "test.rude"})).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", "/nodes/1/config")]
    assert "RuntimeError" in issues[0].message


def test_a_type_that_can_not_tell_its_outcomes() -> None:
    assert found(one({"type": "test.lost"})) == [("invalid_config", "/nodes/1/config")]


def test_a_type_whose_schema_can_not_be_used() -> None:
    assert found(one({"type": "test.odd"})) == [("invalid_config", "/nodes/1/type")]


def test_a_node_id_that_is_not_there() -> None:
    assert ("edge_unknown_node", "/nodes/1/config/after") in found(charge({"after": "ghost"}))


@pytest.mark.parametrize(
    ("value", "code", "pointer"),
    [
        ({"ref": "a b"}, "invalid_value", "/nodes/1/config/x"),
        ({"ref": "nowhere.x"}, "invalid_value", "/nodes/1/config/x"),
        ({"template": "${"}, "invalid_value", "/nodes/1/config/x"),
        ({"cel": "1 +"}, "invalid_expression", "/nodes/1/config/x"),
    ],
)
def test_a_value_that_can_not_be_used(value: JsonObject, code: str, pointer: str) -> None:
    issues = found(configured({"x": value}))
    assert [issue_code for issue_code, _ in issues] == [code]
    assert issues[0][1].startswith(pointer)


def test_a_condition_that_can_not_be_used() -> None:
    node: JsonObject = {"id": "a", "type": "condition", "config": {"if": {"ref": "input.x", "op": "resembles"}}}
    issues = found(document(node, edges=["start a", "a true done", "a false done"]))
    assert issues
    assert issues[0][0] == "invalid_condition"
    assert issues[0][1].startswith("/nodes/1/config/if")


def test_a_pattern_in_a_condition_that_can_not_be_used() -> None:
    node: JsonObject = {"id": "a", "type": "condition", "config": {"if": {"cel": "input.x.matches('(')"}}}
    issues = found(document(node, edges=["start a", "a true done", "a false done"]))
    assert [code for code, _ in issues] in (["invalid_pattern"], ["invalid_expression"])


def test_secrets_stand_where_they_may() -> None:
    assert found(charge({"token": {"secret": "stripe"}})) == []
    assert found(charge({"note": {"secret": "stripe"}})) == [("secret_not_allowed", "/nodes/1/config/note/secret")]
    assert found(configured({"x": {"template": "${secret.stripe}"}}))[0][0] == "secret_not_allowed"


# what is read


@pytest.mark.parametrize(
    ("path", "issues"),
    [
        ("input.order_id", []),
        ("input.items[0].sku", []),
        ("input", []),
        ("input.order", [("unknown_reference", "/nodes/1/config/x/ref")]),
        ("input.order_id.length", [("unknown_reference", "/nodes/1/config/x/ref")]),
        ("input.items.sku", [("unknown_reference", "/nodes/1/config/x/ref")]),
        ("instance.id", []),
        ("now", []),
    ],
)
def test_declared_inputs(path: str, issues: Pairs) -> None:
    raw = one({"config": {"x": {"ref": path}}})
    raw["nodes"] = [
        START | {"config": {"on": "manual", "inputs": {"order_id": {"type": "string"}, "items": {"type": "array"}}}},
        *raw["nodes"][1:],  # type: ignore[index, misc]  # a list, as built above
    ]
    assert [(code, pointer) for code, pointer in found(raw)] == issues


def test_without_inputs_any_input_may_be_read() -> None:
    assert warned(configured({"x": {"ref": "input.anything"}})) == []


def test_state_that_nothing_writes() -> None:
    assert found(configured({"x": {"ref": "state.quote"}})) == [("unknown_reference", "/nodes/1/config/x/ref")]


@pytest.mark.parametrize(
    ("writer", "path", "code"),
    [
        ({"type": "test.quote", "save": {"key": "quote"}}, "state.quote", None),
        ({"type": "test.quote", "save": {"key": "quote"}}, "state.quote.total", None),
        ({"type": "test.quote", "save": {"key": "quote"}}, "state.quote.totl", "error"),
        ({"type": "test.quote", "save": {"key": "quote"}}, "state.qoute", "error"),
        ({"type": "test.quote", "save": {"merge": True}}, "state.total", None),
        ({"type": "test.quote", "save": {"merge": True}}, "state.other", "error"),
        ({"type": "test.quote", "save": {"merge": True}}, "state._trace", "error"),
        ({"type": "test.open", "save": {"key": "quote"}}, "state.quote", None),
        ({"type": "test.open", "save": {"key": "quote"}}, "state.quote.total", "warning"),
        ({"type": "test.open", "save": {"merge": True}}, "state.anything", "warning"),
        ({"type": "set_field", "config": {"field": "state.x", "value": 1}}, "state.x", None),
        ({"type": "set_field", "config": {"field": "state.x.y", "value": 1}}, "state.x.y.z", None),
        ({"type": "set_field", "config": {"field": "state.x", "value": 1}}, "state.y", "error"),
    ],
)
def test_who_writes_the_state(writer: JsonObject, path: str, code: str | None) -> None:
    node: JsonObject = {"id": "b", "type": "test.open", "config": {"x": {"ref": path}}}
    report = check(document({"id": "a", **writer}, node, edges=["start a", "a b", "b done"]))
    at = [("unknown_reference", "/nodes/2/config/x/ref")]
    assert [(issue.code, issue.pointer) for issue in report.issues] == (at if code == "error" else [])
    assert [(issue.code, issue.pointer) for issue in report.warnings] == (at if code == "warning" else [])


def reading(path: str | JsonObject) -> JsonObject:
    """First a (test.quote), then either b or c, then d, which reads the path."""
    value: JsonObject = {"ref": path} if isinstance(path, str) else path
    return document(
        {"id": "a", "type": "test.quote"},
        {"id": "fork", "type": "condition", "config": {"if": {"all": []}}},
        {"id": "b", "type": "test.quote"},
        {"id": "c", "type": "test.open"},
        {"id": "d", "type": "test.open", "config": {"x": value}},
        edges=["start a", "a fork", "fork true b", "fork false c", "b d", "c d", "d done", "a error done"],
    )


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("steps.a.output.total", None),
        ("steps.a.outcome", None),
        ("steps.a.error.code", None),
        ("steps.a.output.nothing", "unknown_reference"),
        ("steps.a.result", "unknown_reference"),
        ("steps.ghost.output.x", "unknown_reference"),
        ("steps.start.output.x", "unknown_reference"),
        ("steps.b.output.total", "reference_not_ancestor"),
        ("steps.d.output", "reference_not_ancestor"),
        ("steps.done.outcome", "reference_not_ancestor"),
        ("item", "unknown_reference"),
        ("loops.a.item", "unknown_reference"),
        ("loops.ghost.item", "unknown_reference"),
    ],
)
def test_steps_that_are_read(path: str, code: str | None) -> None:
    assert found(reading(path)) == ([] if code is None else [(code, "/nodes/5/config/x/ref")])


def test_a_default_allows_for_a_step_that_may_not_have_run() -> None:
    assert found(reading({"ref": "steps.b.output.total", "default": 0})) == []


def test_references_in_templates_and_expressions() -> None:
    assert found(reading({"template": "It is ${steps.b.output.total}"}))[0][0] == "reference_not_ancestor"
    assert found(reading({"cel": "steps.b.output.total + 1"}))[0][0] == "reference_not_ancestor"


def test_each_path_of_a_template_is_told() -> None:
    issues = check(configured({"x": {"template": "${state.a} ${state.b}"}})).issues
    assert [issue.params["path"] for issue in issues] == ["state.a", "state.b"]


def test_an_error_exit_is_a_way() -> None:
    """The end of the error exit has not seen the node after it."""
    raw = document(
        {"id": "a", "type": "test.open"},
        {"id": "b", "type": "test.quote"},
        {"id": "z", "type": "end", "config": {"result": {"ref": "steps.b.output.total"}}},
        edges=["start a", "a b", "b z", "a error z"],
    )
    assert ("reference_not_ancestor", "/nodes/3/config/result/ref") in found(raw)


def test_references_in_conditions() -> None:
    node: JsonObject = {"id": "a", "type": "condition", "config": {"if": {"ref": "state.x", "op": "eq", "value": 1}}}
    issues = found(document(node, edges=["start a", "a true done", "a false done"]))
    assert [code for code, _ in issues] == ["unknown_reference"]
    assert issues[0][1].startswith("/nodes/1/config/if")


@pytest.mark.parametrize(
    ("comparison", "is_wrong"),
    [
        ({"ref": "input.n", "op": "gt", "value": 3}, False),
        ({"ref": "input.n", "op": "gt", "value": "3"}, True),
        ({"ref": "input.n", "op": "eq", "value": "3"}, True),
        ({"ref": "input.n", "op": "eq", "value": None}, False),
        ({"ref": "input.n", "op": "gt", "value": {"ref": "input.s"}}, False),
        ({"ref": "input.n", "op": "in", "value": ["a"]}, False),
        ({"ref": "input.n", "op": "starts_with", "value": "a"}, True),
        ({"ref": "input.n", "op": "contains", "value": 1}, True),
        ({"ref": "input.s", "op": "contains", "value": "a"}, False),
        ({"ref": "input.s", "op": "starts_with", "value": "a"}, False),
        ({"ref": "input.s", "op": "starts_with", "value": 1}, True),
        ({"ref": "input.s", "op": "lt", "value": True}, True),
        ({"ref": "input.list", "op": "contains", "value": 1}, False),
        ({"ref": "input.list[0]", "op": "gt", "value": "a"}, True),
        ({"ref": "input.any", "op": "gt", "value": 1}, False),
        ({"ref": "input.maybe", "op": "gt", "value": "1"}, False),
        ({"ref": "input.n", "op": "is_null"}, False),
        ({"ref": "steps.q.output.total", "op": "gte", "value": "1000"}, True),
        ({"ref": "state.quote.total", "op": "gte", "value": "1000"}, True),
        ({"ref": "instance.id", "op": "gte", "value": 1000}, False),
    ],
    ids=str,
)
def test_comparisons_with_literals(comparison: JsonObject, is_wrong: bool) -> None:
    raw = document(
        {"id": "q", "type": "test.quote", "save": {"key": "quote"}},
        {"id": "a", "type": "condition", "config": {"if": {"all": [{"not": comparison}]}}},
        edges=["start q", "q a", "a true done", "a false done"],
    )
    kinds: JsonObject = {
        "n": {"type": "integer"},
        "s": {"type": "string"},
        "any": {},
        "maybe": {"type": ["null", "number"]},
    }
    inputs: JsonObject = {**kinds, "list": {"type": "array", "items": {"type": "number"}}}
    trigger: JsonObject = {"id": "start", "type": "trigger", "config": {"on": "manual", "inputs": inputs}}
    nodes = raw["nodes"]
    assert isinstance(nodes, list)
    nodes[0] = trigger
    assert found(raw) == ([("type_mismatch", "/nodes/2/config/if/all/0/not/value")] if is_wrong else [])


def test_a_loop_that_is_read_outside() -> None:
    nodes: list[JsonObject] = [
        {"id": "fork", "type": "condition", "config": {"if": {"all": []}}},
        {"id": "l", "type": "loop", "config": {"over": [1], "max_iterations": 5}},
        {"id": "b", "type": "test.open", "config": {"x": {"ref": "loops.l.index"}}},
    ]
    edges = ["start fork", "fork true l", "fork false b", "l body l", "l done b", "b done"]
    assert found(document(*nodes, edges=edges)) == [("reference_not_ancestor", "/nodes/3/config/x/ref")]


def test_no_subject_yet() -> None:
    assert warned(configured({"x": {"ref": "subject.id"}})) == [("subject_required", "/nodes/1/config/x/ref")]


# how a node runs


def test_attempts_over_the_cap_are_clamped() -> None:
    """RT-3."""
    report = check(one({"retry": {"max_attempts": 12}}))
    assert not report.issues
    assert [(w.code, w.pointer) for w in report.warnings] == [("retry_clamped", "/nodes/1/retry/max_attempts")]
    assert report.warnings[0].message == "max_attempts is 12; 10 is used."
    assert warned(one({}, settings={"retry": {"max_attempts": 99}}))[0][1] == "/settings/retry/max_attempts"


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (one({"retry": {"max_attempts": 2, "backoff": [1, "soon"]}}), "/nodes/1/retry/backoff/1"),
        (one({"retry": {"max_attempts": 2, "backoff": [-1, 2]}}), "/nodes/1/retry/backoff/0"),
        (one({"timeout": "P"}), "/nodes/1/timeout"),
        (one({"timeout": 0}), "/nodes/1/timeout"),
        (one({"timeout": "PT0S"}), "/nodes/1/timeout"),
        (one({"timeout": {"business": "PT1H"}}), "/nodes/1/timeout"),
        (one({}, settings={"execution_timeout": "P1X"}), "/settings/execution_timeout"),
        (one({}, settings={"run_timeout": {"hours": 1}}), "/settings/run_timeout"),
        (one({}, settings={"retry": {"max_attempts": 2, "backoff": ["x1"]}}), "/settings/retry/backoff/0"),
    ],
)
def test_durations(raw: JsonObject, pointer: str) -> None:
    issues = found(raw)
    assert issues
    assert issues[0][1].startswith(pointer)
    assert issues[0][0] in {"invalid_duration", "invalid_config"}


def test_a_backoff_may_be_nothing() -> None:
    assert found(one({"retry": {"max_attempts": 2, "backoff": [0]}})) == []


def test_a_timeout_on_a_type_that_waits() -> None:
    issues = check(one({"type": "wait", "config": {"signal": "go"}, "timeout": 5})).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", "/nodes/1/timeout")]
    assert "config.timeout" in issues[0].message


def test_escalations() -> None:
    """ES-1."""
    level: Json = [{"after": 60, "actions": []}]
    assert found(one({"escalations": level})) == [("invalid_config", "/nodes/1/escalations")]
    raw = document({"id": "a", "type": "test.ask", "escalations": level}, edges=["start a", "a approved done"])
    assert found(raw) == [("invalid_config", "/nodes/1/escalations")]
    assert "not available" in check(raw).issues[0].message


def test_a_body_on_what_is_no_container() -> None:
    body: JsonObject = {"start": "b", "nodes": [{"id": "b", "type": "test.open"}]}
    assert found(one({"body": body})) == [("invalid_config", "/nodes/1/body")]


# trigger and settings


def triggered(config: JsonObject, **settings: Json) -> JsonObject:
    raw = document(edges=["start done"])
    trigger: JsonObject = {"id": "start", "type": "trigger", "config": config}
    return raw | {"nodes": [trigger, END]} | ({"settings": settings} if settings else {})


@pytest.mark.parametrize(
    ("inputs", "pointer"),
    [
        ({"n": "integer"}, "/nodes/0/config/inputs/n"),
        ({"n": {"type": "integer", "required": 1}}, "/nodes/0/config/inputs/n/required"),
        ({"n": {"type": "integer", "default": "x"}}, "/nodes/0/config/inputs/n/default"),
        ({"n": {"typo": "integer"}}, "/nodes/0/config/inputs/n"),
        (
            {"type": "object", "properties": {"n": {"type": "integer", "default": "x"}}},
            "/nodes/0/config/inputs/properties/n/default",
        ),
        ({"type": "object", "patternProperties": {}}, "/nodes/0/config/inputs"),
    ],
)
def test_inputs_that_can_not_be_used(inputs: JsonObject, pointer: str) -> None:
    issues = found(triggered({"on": "manual", "inputs": inputs}))
    assert len(issues) == 1
    assert issues[0][1].startswith(pointer)


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"n": {"type": "integer", "required": True, "minimum": 1}, "type": {"type": "string", "default": "x"}},
        {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}, "required": ["n"]},
    ],
)
def test_inputs_that_can_be_used(inputs: JsonObject) -> None:
    assert found(triggered({"on": "manual", "inputs": inputs})) == []


@pytest.mark.parametrize("on", [{"cron": "* * * * *"}, {"webhook": True}, ["manual", {"webhook": True}]])
def test_an_actor_where_nobody_starts(on: Json) -> None:
    assert ("actor_requires_user", "/settings/actor") in found(triggered({"on": on}, actor="on_behalf_of"))


def test_on_behalf_of_who_starts() -> None:
    assert found(triggered({"on": "manual"}, actor="on_behalf_of")) == []


def test_unknown_timezone() -> None:
    assert found(one({}, settings={"timezone": "Europe/Nowhere"})) == [("invalid_config", "/settings/timezone")]
    assert found(one({}, settings={"timezone": "Europe/Ljubljana"})) == []


def test_limits_only_lower() -> None:
    """LM-1."""
    assert found(one({}, settings={"limits": {"max_steps": 200}})) == []
    assert found(one({}, settings={"limits": {"max_steps": 201}})) == [("invalid_config", "/settings/limits/max_steps")]
    assert found(one({}, settings={"limits": {"max_starts_per_minute": 1}})) == []


def test_the_label() -> None:
    assert found(one({}, settings={"label": {"template": "Order ${input.id}"}})) == []
    assert found(one({}, settings={"label": {"ref": "state.ghost"}})) == [("unknown_reference", "/settings/label/ref")]
    assert found(one({}, settings={"label": {"template": "${"}}))[0][0] == "invalid_value"


# bodies


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


# length


def straight(count: int, **members: Json) -> JsonObject:
    """A document of so many nodes in a row, and the end."""
    names = [f"n{number}" for number in range(count)]
    nodes: list[JsonObject] = [{"id": name, "type": "test.open"} for name in names]
    ways = zip(["start", *names], [*names, "done"], strict=True)
    return document(*nodes, edges=[f"{source} {target}" for source, target in ways], **members)


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
