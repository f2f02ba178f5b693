"""What publish refuses of what is read, each at its pointer: it is there, and was written before (spec 14)."""

from __future__ import annotations

import pytest

from korak.model import JsonObject
from tests.support.publishing import START, Pairs, check, configured, document, found, one, warned


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
