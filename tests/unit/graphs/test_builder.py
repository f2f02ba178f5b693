"""The fluent builder: the document it gives, and what it refuses (DESIGN 7)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from korak.errors import Invalid
from korak.graphs.builder import GraphBuilder, graph, ref
from korak.graphs.validation import validate
from tests.support.catalogue import CATALOGUE


def test_the_example_of_the_design() -> None:
    order = (
        graph("order")
        .trigger("manual")
        .node("erp", "acme.sync_erp")
        .retry(5, [10, 60, 300])
        .node("done", "end")
        .edge("start", "erp")
        .edge("erp", "done")
    )
    assert order.document() == {
        "schema": "korak.graph/v1",
        "key": "order",
        "nodes": [
            {"id": "start", "type": "trigger", "config": {"on": "manual"}},
            {"id": "erp", "type": "acme.sync_erp", "retry": {"max_attempts": 5, "backoff": [10, 60, 300]}},
            {"id": "done", "type": "end"},
        ],
        "edges": [{"from": "start", "to": "erp"}, {"from": "erp", "to": "done"}],
    }


def test_everything_that_a_node_may_have() -> None:
    built = (
        graph("order", "Order")
        .trigger("manual", inputs={"amount": {"type": "number", "required": True}})
        .node("pay", "test.charge", {"note": "x"}, amount=ref("input.amount"), token={"secret": "stripe"})
        .label("Pay")
        .version(1)
        .retry(2, [timedelta(minutes=1), "PT2M"], jitter=0)
        .timeout(timedelta(seconds=30))
        .save("payment")
        .queue("slow")
        .priority("high")
        .on_error("card.*", outcome="declined")
        .on_error("*", outcome="error")
        .position(10, 20)
        .node("more", "test.open", total=ref("state.payment.receipt", default=None))
        .save()
        .jumps()
        .node("last", "test.open")
        .jumps("more", "$end")
        .node("done", "end")
        .edge("start", "pay")
        .edge("pay", "more", "paid")
        .edge("pay", "done", "declined")
        .edge("pay", "done", "error")
        .edge("more", "last")
        .edge("last", "done")
        .settings(timezone="Europe/Ljubljana", execution_timeout=timedelta(days=1))
        .settings(limits={"max_steps": 50})
    )
    document = built.document()
    assert validate(document, CATALOGUE).issues == ()
    pay = document["nodes"][1]  # type: ignore[index]  # a list, as built
    assert pay == {
        "id": "pay",
        "type": "test.charge",
        "config": {"note": "x", "amount": {"ref": "input.amount"}, "token": {"secret": "stripe"}},
        "label": "Pay",
        "type_version": 1,
        "retry": {"max_attempts": 2, "backoff": [60, "PT2M"], "jitter": 0},
        "timeout": 30,
        "save": {"key": "payment"},
        "queue": "slow",
        "priority": "high",
        "on_error": [{"codes": ["card.*"], "outcome": "declined"}, {"codes": ["*"], "outcome": "error"}],
        "position": {"x": 10, "y": 20},
    }
    assert document["name"] == "Order"
    assert document["settings"] == {
        "timezone": "Europe/Ljubljana",
        "execution_timeout": 86400,
        "limits": {"max_steps": 50},
    }
    assert json.loads(built.to_json()) == document


def test_a_document_is_a_copy() -> None:
    config = {"items": [1]}
    built = graph("x").trigger().node("a", "test.open", config)
    built.document()["key"] = "y"
    config["items"].append(2)
    assert built.document()["key"] == "x"


def test_several_ways_to_start() -> None:
    trigger = graph("x").trigger("manual", {"webhook": True}).document()["nodes"]
    assert trigger == [{"id": "start", "type": "trigger", "config": {"on": ["manual", {"webhook": True}]}}]


def hold_itself() -> dict[str, Any]:
    thing: dict[str, Any] = {}
    thing["self"] = thing
    return thing


def multiply() -> list[Any]:
    thing: list[Any] = ["lol"]
    for _ in range(40):
        thing = [thing, thing]
    return thing


MISUSE: list[tuple[Callable[[GraphBuilder], Any], str]] = [
    (lambda g: g.node("a", "test.open").node("a", "end"), "used twice"),
    (lambda g: g.trigger().trigger(), "start is used twice"),
    (lambda g: g.retry(2), "call node() first"),
    (lambda g: g.trigger().save(), "save() means the node"),
    (lambda g: g.node("a", "x.y").save().save("x"), "said twice"),
    (lambda g: g.node("a", "x.y").on_error(outcome="x"), "names the codes"),
    (lambda g: g.node("a", 3), "has an id and a type"),  # type: ignore[arg-type]  # the misuse
    (lambda g: g.edge("a", "b").edge("a", "c"), "Two edges leave a by next"),
    (lambda g: g.trigger().edge("start", "b").document(), "names b, which isn't there"),
    (lambda g: g.node("a", "x.y", when={1, 2}).document(), "set is no JSON type"),
    (lambda g: g.node("a", "x.y", x=hold_itself()).document(), "nested more than"),
    (lambda g: g.node("a", "x.y", x=multiply()).document(), "over its limit"),
    (lambda g: g.settings(label=object()).to_json(), "is no JSON type"),
]


@pytest.mark.parametrize(("misuse", "message"), MISUSE)
def test_misuse(misuse: Callable[[GraphBuilder], Any], message: str) -> None:
    with pytest.raises(Invalid) as raised:
        misuse(graph("x"))
    assert raised.value.code == "invalid_document"
    assert message in raised.value.message
