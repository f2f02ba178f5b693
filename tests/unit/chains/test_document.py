"""The document that a chain is: its nodes, its names, its options, its checksum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from korak import chain, ref
from korak.chains import Chain
from korak.errors import Invalid
from korak.graphs.validation import validate
from korak.model import Priority
from korak.steps.registry import Registry
from tests.support import links


def build() -> Chain:
    return (
        chain("report", "Report")
        .then(links.fetch, "fetch")
        .then(links.price, currency="USD")
        .wait_for_decision()
        .then(links.publish, name="Publish it")
    )


def get_node(built: Chain, name: str) -> Any:
    nodes: Any = built.document()["nodes"]
    return next(node for node in nodes if node["id"] == name)


def get_registry(*chains: Chain) -> Registry:
    registry = Registry()
    for made in (made for built in chains for made in built.step_types):
        registry.add(made)
    return registry


def test_a_chain_is_a_graph() -> None:
    assert build().document() == {
        "schema": "korak.graph/v1",
        "key": "report",
        "name": "Report",
        "nodes": [
            {"id": "start", "type": "trigger", "config": {"on": "manual"}},
            {
                "id": "begin",
                "type": "set_field",
                "config": {"field": "state", "value": {"ref": "input"}},
                "counts": False,
            },
            {
                "id": "fetch",
                "type": "tests.support.links.fetch",
                "config": {"order": {"ref": "state.order"}},
                "type_version": 1,
                "save": {"merge": True},
            },
            {
                "id": "s1",
                "label": "1",
                "type": "tests.support.links.price",
                "config": {"currency": "USD", "fetched": {"ref": "state.fetched"}},
                "type_version": 1,
                "save": {"merge": True},
            },
            {
                "id": "wait_for_decision",
                "type": "wait",
                "config": {
                    "signals": ["approved", "rejected"],
                    "mode": "any",
                    "human": "decision",
                    "result": {
                        "outcome": {"cel": '"approved" in signal.payload ? "approved" : "rejected"'},
                        "signal": {"cel": '"approved" in signal.payload ? "approved" : "rejected"'},
                        "data": {
                            "cel": '"approved" in signal.payload'
                            ' ? signal.payload["approved"] : signal.payload["rejected"]'
                        },
                    },
                },
                "save": {"key": "decision"},
            },
            {
                "id": "publish_it",
                "label": "Publish it",
                "type": "tests.support.links.publish",
                "config": {"state": {"ref": "state"}},
                "type_version": 1,
                "save": {"merge": True},
            },
            {"id": "end", "type": "end", "config": {"result": {"ref": "state"}}},
        ],
        "edges": [
            {"from": "start", "to": "begin"},
            {"from": "begin", "to": "fetch"},
            {"from": "fetch", "to": "s1"},
            {"from": "s1", "to": "wait_for_decision"},
            {"from": "wait_for_decision", "to": "publish_it"},
            {"from": "publish_it", "to": "end"},
        ],
    }


def test_it_may_be_published() -> None:
    built = build()
    assert validate(built.document(), get_registry(built)).issues == ()


def test_the_document_is_the_callers_own() -> None:
    built = build()
    first: Any = built.document()
    first["nodes"].clear()
    assert built.document() == build().document()


def test_two_builds_are_equal() -> None:
    """T-GUARD-8"""
    assert build().checksum == build().checksum
    assert len(build().checksum) == 64


def test_t_guard_8_the_key_and_the_payload_are_no_part_of_the_checksum() -> None:
    keyed = build().idempotency_key("K")
    assert keyed.prepare({"a": 1}, {})["idempotency_key"] == "K"
    assert keyed.prepare({"a": 1}, {"idempotency_key": "L"})["idempotency_key"] == "L"
    assert keyed.checksum == build().checksum


@pytest.mark.parametrize("key", ["", "  ", "x" * 192, "a\nb", "ključ", None])
def test_what_is_no_key_is_refused(key: Any) -> None:
    with pytest.raises(Invalid):
        build().idempotency_key(key)


CHANGES: dict[str, Callable[[Chain], Chain]] = {
    "step": lambda built: built.then(links.count),
    "queue": lambda built: built.on_queue("slow"),
    "version": lambda built: built.version("2"),
    "priority": lambda built: built.with_priority("high"),
    "attempts": lambda built: built.max_attempts(5),
    "transitions": lambda built: built.max_transitions(50),
    "items": lambda built: built.max_for_each_items(5),
    "bytes": lambda built: built.max_state_bytes(5_000),
    "cost": lambda built: built.max_cost_units(5),
    "pruning": lambda built: built.prune_state_after(),
    "deadline": lambda built: built.must_complete_within(days=1),
    "parameter": lambda built: built.bind(state={}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_changes_the_checksum(change: str) -> None:
    """T-GUARD-8"""
    assert CHANGES[change](build()).checksum != build().checksum


def test_options_are_settings() -> None:
    built = (
        chain("x")
        .with_priority(Priority.HIGH)
        .version(" 2024-05 ")
        .must_complete_within(hours=1, minutes=30)
        .max_transitions(3)
        .max_state_bytes(2_000)
        .on_queue("pipelines")
        .then(links.count)
    )
    assert built.document()["settings"] == {
        "priority": "high",
        "label": "version:2024-05",
        "execution_timeout": 5_400,
        "queue": "pipelines",
        "limits": {"max_transitions": 3, "max_state_bytes": 2_000},
    }
    assert chain("x").then(links.count).with_priority(3).document()["settings"] == {"priority": "urgent"}


def test_attempts_and_queue_are_for_handlers_that_name_none() -> None:
    """T-OPT-1, T-OPT-3, RT-1"""
    built = chain("x").on_queue("q").then(links.count, "a").then(links.twice, "b").then(links.slow, "c").max_attempts(5)
    a, b, c = (get_node(built, name) for name in "abc")
    assert (a["retry"], a["queue"]) == ({"max_attempts": 5}, "q")
    assert ("retry" in b, b["queue"]) == (False, "q")
    assert (c["retry"], "queue" in c, c["type_version"]) == ({"max_attempts": 5}, False, 3)


def test_a_parameter_is_bound_or_comes_from_the_state() -> None:
    config = get_node(chain("x").then(links.price, "p", fetched=ref("state.other")), "p")["config"]
    assert config == {"fetched": {"ref": "state.other"}, "currency": {"ref": "state.currency", "default": "EUR"}}
    assert get_node(chain("x").then(links.greet, "g").bind(name="Ada"), "g")["config"] == {"name": "Ada"}
    assert get_node(chain("x").then(links.Ship, "s"), "s")["config"] == {"order": {"ref": "state.order"}}
    assert get_node(chain("x").then("shop.price", "n", order=1), "n")["config"] == {"order": 1}
    assert get_node(chain("x").then(links.strange, "s", more=1), "s")["config"] == {
        "kind": {"ref": "state.kind"},
        "more": 1,
    }


def test_a_parameter_that_no_state_has_keeps_its_default() -> None:
    """Spec 3: keys that begin with `_` never enter the state."""
    built = chain("x").then(links.private, "p")
    assert "config" not in get_node(built, "p")
    assert validate(built.document(), get_registry(built)).issues == ()
    assert get_node(chain("x").then(links.private, "p", _own="given"), "p")["config"] == {"_own": "given"}


def test_every_way_out_of_a_handler_leads_on() -> None:
    built = chain("x").then(links.fork, "fork").then(links.count, "after")
    assert validate(built.document(), get_registry(built)).issues == ()
    edges: Any = built.document()["edges"]
    assert {"from": "fork", "to": "after", "outcome": "left"} in edges
    assert {"from": "fork", "to": "after", "outcome": "right"} in edges


def test_names_become_ids() -> None:
    built = (
        chain("x")
        .then(links.count, "Über alles!")
        .then(links.count)
        .wait_for_signal("order.paid")
        .delay(1)
        .delay(2)
        .repeat_until("1", "rounds", 3)
    )
    nodes: Any = built.document()["nodes"]
    assert [(node["id"], node.get("label")) for node in nodes[2:-1]] == [
        ("s_ber_alles_", "Über alles!"),
        ("s1", "1"),
        ("wait_for_order_paid", "wait_for_order.paid"),
        ("delay_0", None),
        ("delay_1", None),
        ("repeat_until_5", None),
    ]


def test_a_repeat_is_a_loop_behind_its_body() -> None:
    built = chain("x").then(links.count, "body").repeat_while("body", "more", {"ref": "x"}, max_iterations=2)
    assert get_node(built, "repeat_while_1")["config"] == {
        "while": {"ref": "state.more", "default": None, "op": "eq", "value": {"literal": {"ref": "x"}}},
        "max_iterations": 2,
        "on_max": "fail",
    }
    edges: Any = built.document()["edges"]
    assert edges[-2:] == [
        {"from": "repeat_while_1", "to": "body", "outcome": "body"},
        {"from": "repeat_while_1", "to": "end", "outcome": "done"},
    ]


def test_a_delay_is_a_sum_or_a_time() -> None:
    """T-DELAY-1"""
    assert get_node(chain("x").delay(minutes=30, hours=1), "delay_0")["config"] == {"for": 5_400}
    assert get_node(chain("x").delay(), "delay_0")["config"] == {"for": 0}
    assert get_node(chain("x").delay(until="due"), "delay_0")["config"] == {"until": {"ref": "state.due"}}


def test_what_a_wait_asks_for() -> None:
    built = chain("x").wait_for_signal("paid", match_payload={"a": {"b": 1}, "c": "d"}, correlation_key="order")
    assert get_node(built, "wait_for_paid")["config"] == {
        "signal": "paid",
        "result": {"ref": "signal.payload"},
        "match": {"a.b": 1, "c": "d"},
        "correlation": "order",
    }
    several = chain("x").wait_for_signals([" a ", "", "b c"], "any", name="w")
    assert get_node(several, "w")["config"] == {
        "signals": ["a", "b c"],
        "mode": "any",
        "result": [{"ref": "signal.payload.a"}, {"ref": 'signal.payload["b c"]'}],
    }


def test_a_time_limit_leads_to_a_later_step() -> None:
    built = (
        chain("x")
        .wait_for_input(timeout="P1D", timed_out="late")
        .wait_for_approval(timeout=ref("state.limit"), timed_out="$end")
        .then(links.count, "late")
    )
    edges: Any = built.document()["edges"]
    assert {"from": "wait_for_input", "to": "late", "outcome": "timed_out"} in edges
    assert {"from": "wait_for_approval", "to": "end", "outcome": "timed_out"} in edges
    assert validate(built.document(), get_registry(built)).issues == ()


def test_jumps_are_declared() -> None:
    """T-COND-3 by the id that the index name has"""
    built = chain("x").then(links.leap).jumps("last", "0", "$end").then(links.leap).jumps().then(links.count, "last")
    assert get_node(built, "s0")["jumps"] == ["last", "s0", "$end"]
    assert get_node(built, "s1")["jumps"] == "any"
    assert validate(built.document(), get_registry(built)).issues == ()


def test_containers_are_nodes_with_bodies() -> None:
    """T-PAR-2, T-FE-6: their form"""
    built = chain("x").parallel([links.fetch, links.fork], "both").for_each("things", links.score, reducer=links.gather)
    assert get_node(built, "both") == {
        "id": "both",
        "type": "parallel",
        "branches": {
            "branch_0": {
                "start": "both_0",
                "nodes": [
                    {
                        "id": "both_0",
                        "type": "tests.support.links.fetch",
                        "config": {"order": {"ref": "state.order"}},
                        "type_version": 1,
                        "jumps": [],
                        "save": {"merge": True},
                    }
                ],
                "edges": [],
            },
            "branch_1": {
                "start": "both_1",
                "nodes": [
                    {"id": "both_1", "type": "links.fork", "type_version": 1, "jumps": [], "save": {"merge": True}},
                    {"id": "both_1_end", "type": "end"},
                ],
                "edges": [
                    {"from": "both_1", "to": "both_1_end", "outcome": "left"},
                    {"from": "both_1", "to": "both_1_end", "outcome": "right"},
                ],
            },
        },
    }
    assert get_node(built, "s1") == {
        "id": "s1",
        "label": "1",
        "type": "for_each",
        "config": {"items": {"ref": "state.things", "default": []}, "mode": "all"},
        "body": {
            "start": "s1_item",
            "nodes": [
                {
                    "id": "s1_item",
                    "type": "tests.support.links.score",
                    "config": {"item": {"ref": "item"}, "index": {"ref": "index"}},
                    "type_version": 1,
                    "jumps": [],
                }
            ],
            "edges": [],
        },
        "save": {"key": "s1_results"},
    }
    assert validate(built.document(), get_registry(built)).issues == ()
    assert get_node(built, "s1_reducer")["config"] == {"results": {"ref": "state.s1_results.results"}}


def test_the_types_that_an_engine_must_know() -> None:
    built = chain("x").then(links.fetch).parallel([links.fetch, links.Ship]).then("shop.price").then(links.twice)
    assert [made.key for made in built.step_types] == ["tests.support.links.fetch", "links.ship", "links.twice"]


def test_what_a_for_each_binds() -> None:
    built = chain("x").for_each("n", links.price, name="each").bind(fetched={"ref": "item.id"})
    body = get_node(built, "each")["body"]
    assert body["nodes"][0]["config"] == {
        "fetched": {"ref": "item.id"},
        "currency": {"ref": "state.currency", "default": "EUR"},
    }


def test_what_is_written_out_is_given_where_the_chain_is_built() -> None:
    """A secret, a condition and a node are no values that stand in the state."""
    with pytest.raises(Invalid, match="needs token, which must be given where the chain is built"):
        chain("x").then(links.charge).document()
    built = chain("x").then(links.charge, "pay", token={"secret": "bank"})
    assert get_node(built, "pay")["config"] == {"token": {"secret": "bank"}}
    assert validate(built.document(), get_registry(built)).issues == ()
