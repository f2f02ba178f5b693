"""The registry as the catalogue that publishing and planning read."""

from __future__ import annotations

from typing import cast

import pytest

from korak.graphs.freezing import freeze
from korak.graphs.planning import build
from korak.graphs.validation import validate
from korak.model import Json, JsonObject
from korak.steps import builtin
from korak.steps.pure import Completed, Entry, Parked
from korak.steps.registry import Registry
from tests.support.entries import NOW
from tests.unit.steps import samples

ORDER: JsonObject = {
    "schema": "korak.graph/v1",
    "key": "order",
    "nodes": [
        {
            "id": "start",
            "type": "trigger",
            "config": {"on": "manual", "inputs": {"order": {"type": "string", "required": True}}},
        },
        {"id": "price", "type": "shop.price", "config": {"order": {"ref": "input.order"}}, "save": {"key": "quote"}},
        {"id": "big", "type": "condition", "config": {"if": {"ref": "state.quote.total", "op": "gte", "value": 1000}}},
        {
            "id": "paid",
            "type": "wait",
            "config": {"event": "paid", "match": {"o": {"ref": "input.order"}}, "timeout": "P3D"},
        },
        {"id": "each", "type": "loop", "config": {"over": [1, 2], "max_iterations": 5}},
        {"id": "note", "type": "set_field", "config": {"field": "state.last", "value": {"ref": "loops.each.item"}}},
        {
            "id": "call",
            "type": "webhook",
            "config": {"url": "https://example.com/", "headers": {"Authorization": {"secret": "pay"}}},
        },
        {"id": "done", "type": "end", "config": {"result": {"ref": "state"}}},
    ],
    "edges": [
        {"from": "start", "to": "price"},
        {"from": "price", "to": "big"},
        {"from": "big", "outcome": "true", "to": "paid"},
        {"from": "big", "outcome": "false", "to": "each"},
        {"from": "paid", "to": "each"},
        {"from": "paid", "outcome": "timed_out", "to": "done"},
        {"from": "each", "outcome": "body", "to": "note"},
        {"from": "note", "to": "each"},
        {"from": "each", "outcome": "done", "to": "call"},
        {"from": "call", "to": "done"},
    ],
}


@pytest.fixture
def registry() -> Registry:
    registry = Registry()
    registry.add(samples.price)
    return registry


def test_a_graph_of_built_in_types_can_be_published(registry: Registry) -> None:
    assert validate(ORDER, registry).issues == ()


@pytest.mark.parametrize(
    ("number", "config", "code", "pointer"),
    [
        (0, {"on": {"cron": "0 9 * * *"}}, "invalid_config", "/nodes/0/config/on"),
        (1, {"order": 3}, "invalid_config", "/nodes/1/config/order"),
        (1, {}, "invalid_config", "/nodes/1/config/order"),
        (3, {"event": "a", "signal": "b", "timeout": 1}, "invalid_config", "/nodes/3/config"),
        (4, {"over": [], "max_iterations": 0}, "invalid_config", "/nodes/4/config/max_iterations"),
        (4, {"over": [], "max_iterations": 5000}, "invalid_config", "/nodes/4/config/max_iterations"),
        (4, {"over": []}, "invalid_config", "/nodes/4/config/max_iterations"),
        (5, {"field": "input.x", "value": 1}, "invalid_config", "/nodes/5/config/field"),
        (5, {"field": "state.x", "value": {"secret": "a"}}, "secret_not_allowed", "/nodes/5/config/value/secret"),
        (6, {"url": "https://a/", "method": "BREW"}, "invalid_config", "/nodes/6/config/method"),
    ],
)
def test_a_config_that_makes_no_sense_is_said_with_its_place(
    registry: Registry, number: int, config: Json, code: str, pointer: str
) -> None:
    nodes = list(cast("list[JsonObject]", ORDER["nodes"]))
    nodes[number] = {**nodes[number], "config": config}
    issues = validate({**ORDER, "nodes": [*nodes]}, registry).issues
    assert (code, pointer) in {(issue.code, issue.pointer) for issue in issues}


def test_the_nodes_of_a_plan_are_entered(registry: Registry) -> None:
    plan = build(ORDER, freeze(ORDER, registry))
    roots = {"input": {"order": "7"}, "state": {"quote": {"total": 5}}, "steps": {}, "loops": {}}

    def enter(node: str) -> object:
        planned = plan.nodes[node]
        assert planned.is_pure
        return builtin.PURE[planned.type].enter(Entry(planned, roots, NOW))

    assert enter("big") == Completed("false", {"result": False})
    parked = enter("paid")
    assert isinstance(parked, Parked)
    assert parked.spec.items[0].match == {"o": "7"}
    assert isinstance(enter("each"), Completed)
    assert not plan.nodes["call"].is_pure
