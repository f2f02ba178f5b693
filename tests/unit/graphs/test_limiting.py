"""`flow` at publish: what may be written, what it comes to, and what is wrong with the rest."""

from __future__ import annotations

import pytest

from korak.graphs.builder import graph, ref
from korak.graphs.limiting import read_flow
from korak.graphs.validation import validate
from korak.model import Json, JsonObject
from tests.support.plans import plan_of, registry

LIMITED: JsonObject = {"key": "erp", "concurrency": 3}


def document(flow: Json, *, kind: str = "test.ok", settings: Json = None) -> JsonObject:
    """A graph of one node with this `flow`."""
    config: JsonObject = {"value": 1} if kind == "test.ok" else {"for": 60}
    node: JsonObject = {"id": "a", "type": kind, "config": config, "flow": flow}
    if flow is None:
        del node["flow"]
    inputs: JsonObject = {"customer": {"type": "string"}}
    return {
        "schema": "korak.graph/v1",
        "key": "limited",
        "nodes": [
            {"id": "start", "type": "trigger", "config": {"on": "manual", "inputs": inputs}},
            node,
            {"id": "done", "type": "end", "config": {}},
        ],
        "edges": [{"from": "start", "to": "a"}, {"from": "a", "to": "done"}],
        "settings": {} if settings is None else {"flow": settings},
    }


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("erp", "erp"),
        (7, "7"),
        ({"ref": "input.customer"}, "input.customer"),
        ({"default": "", "ref": "input.customer"}, "input.customer"),
        ({"template": "c:${input.customer}"}, "c:${input.customer}"),
        ({"cel": "input.customer"}, "input.customer"),
        ({"literal": ""}, ""),
    ],
)
def test_what_a_key_is_read_from_is_told_as_it_is_written(key: Json, text: str) -> None:
    [rule] = read_flow([{"key": key, "concurrency": 1}])
    assert rule.text == text


def test_what_is_written_is_what_is_planned() -> None:
    built = (
        graph("limited")
        .trigger("manual")
        .node("a", "test.ok", value=1)
        .flow({"template": "c:${input.customer}"}, concurrency=5, weight=2)
        .flow("erp", rate=(10, "PT1M"))
        .edge("start", "a")
        .edge("a", "done")
        .node("done", "end")
        .settings(flow=[{"key": "runs", "concurrency": 100}])
    )
    plan = plan_of(built)
    first, second = plan.nodes["a"].flow
    assert (first.concurrency, first.weight, first.rate) == (5, 2, None)
    assert first.key.resolve({"input": {"customer": "7"}}) == "c:7"
    assert (second.concurrency, second.weight, second.rate, second.per) == (None, 1, 10, 60.0)
    assert [rule.concurrency for rule in plan.settings.flow] == [100]
    assert plan.has_flow
    assert not plan.nodes["done"].flow


def test_a_graph_without_limits_says_so() -> None:
    assert not plan_of(document(None)).has_flow


@pytest.mark.parametrize(
    ("rule", "pointer", "code"),
    [
        ({"key": "erp"}, "", "invalid_config"),
        ({"concurrency": 1}, "", "invalid_config"),
        ({"key": "erp", "concurrency": 0}, "/concurrency", "invalid_config"),
        ({"key": "erp", "concurrency": 1.5}, "/concurrency", "invalid_config"),
        ({"key": "erp", "concurrency": 2, "weight": 3}, "/weight", "invalid_config"),
        ({"key": "erp", "rate": {"limit": 1, "per": 60}, "weight": 3}, "/weight", "invalid_config"),
        ({"key": "erp", "rate": {"limit": 0, "per": 60}}, "/rate/limit", "invalid_config"),
        ({"key": "erp", "rate": {"limit": 1}}, "/rate", "invalid_config"),
        ({"key": "erp", "rate": {"limit": 1, "per": 0}}, "/rate/per", "invalid_duration"),
        ({"key": "erp", "rate": {"limit": 1, "per": "P1M"}}, "/rate/per", "invalid_duration"),
        ({"key": "erp", "rate": {"limit": 1, "per": {"days": 1}}}, "/rate/per", "invalid_duration"),
        ({"key": "erp", "rate": {"limit": 1, "per": "soon"}}, "/rate/per", "invalid_duration"),
        ({"key": None, "concurrency": 1}, "/key", "invalid_config"),
        ({"key": "", "concurrency": 1}, "/key", "invalid_config"),
        ({"key": {"cel": "1 +"}, "concurrency": 1}, "/key/cel", "invalid_expression"),
        ({"key": {"ref": "input.custumer"}, "concurrency": 1}, "/key/ref", "unknown_reference"),
        ({"key": {"secret": "name"}, "concurrency": 1}, "/key/secret", "secret_not_allowed"),
    ],
)
@pytest.mark.parametrize("place", ["/nodes/1/flow", "/settings/flow"])
def test_what_is_wrong_has_a_code_and_a_pointer(rule: JsonObject, pointer: str, code: str, place: str) -> None:
    written = document([rule]) if place.startswith("/nodes") else document(None, settings=[rule])
    report = validate(written, registry())
    assert (code, f"{place}/0{pointer}") in {(issue.code, issue.pointer) for issue in report.issues}


def test_what_no_engine_runs_has_no_limit() -> None:
    [issue] = validate(document([LIMITED], kind="delay"), registry()).issues
    assert (issue.code, issue.pointer) == ("invalid_config", "/nodes/1/flow")


def test_what_a_key_reads_of_steps_is_kept_for_it() -> None:
    built = (
        graph("limited")
        .trigger("manual")
        .node("a", "test.ok", value=1)
        .edge("start", "a")
        .node("b", "test.ok", value=1)
        .flow(ref("steps.a.output.value"), concurrency=1)
        .edge("a", "b")
        .edge("b", "done")
        .node("done", "end")
    )
    assert "a" in plan_of(built).referenced
