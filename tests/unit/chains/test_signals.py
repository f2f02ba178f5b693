"""What a wait of a chain takes: payloads that hold what it asks for, and agree with the state."""

from __future__ import annotations

from typing import Any

import pytest

from korak import chain, ref
from korak.model import InstanceStatus, JsonObject
from tests.support.chained import get_state, go_on, run
from tests.support.runs import Run

COMPLETED, WAITING = InstanceStatus.COMPLETED, InstanceStatus.WAITING

FITTING: list[tuple[Any, JsonObject, bool]] = [
    ({"q": 1}, {"q": 1.0}, True),
    ({"q": 1}, {"q": True}, False),
    ({"q": 1}, {"q": "1"}, False),
    ({"q": [1]}, {"q": [True]}, False),
    ({"q": [1]}, {"q": [1.0]}, True),
    ({"q": [{"a": 0}]}, {"q": [{"a": False}]}, False),
    ({"q": [{"a": 1, "b": 2}]}, {"q": [{"b": 2, "a": 1}]}, True),
    ({"q": [1, 2]}, {"q": [1]}, False),
    ({"q": None}, {}, False),
    ({"q": None}, {"q": None}, True),
    ({"q": {"r": 1}}, {"q": 5}, False),
    ({"q": {"r": 1}}, {"q": {"r": 1, "s": 2}}, True),
    ({"q": {"x.y": 1}}, {"q": {"x.y": 1}}, True),
    ({"ref": "A-1"}, {"ref": "A-1", "more": 1}, True),
    ({"ref": "A-1"}, {"ref": "A-2"}, False),
    ({"cel": "a"}, {"cel": "a"}, True),
    ({}, {}, True),
]


@pytest.mark.parametrize("number", range(len(FITTING)))
def test_a_payload_must_hold_what_is_asked_for(number: int) -> None:
    """T-SIG-6: by JSON's equality, however deep"""
    match, payload, fits = FITTING[number]
    begun = run(chain("x").wait_for_signal("a", "k", match_payload=match))
    begun.signal("a", payload)
    assert begun.instance.status is (COMPLETED if fits else WAITING)


def test_what_is_asked_for_may_come_from_the_state() -> None:
    begun = run(chain("x").wait_for_signal("a", "k", match_payload={"order": ref("state.mine")}), {"mine": 7})
    begun.signal("a", {"order": 8})
    assert begun.instance.status is WAITING
    begun.signal("a", {"order": 7})
    assert begun.instance.status is COMPLETED


@pytest.mark.parametrize(
    ("key", "value"),
    [("order.id", {"order": {"id": 7}}), ("orders[1]", {"orders": [6, 7]}), ('o["a b"]', {"o": {"a b": 7}})],
)
def test_payload_and_state_must_agree_at_a_path(key: str, value: JsonObject) -> None:
    """T-SIG-5"""
    begun = run(chain("x").wait_for_signal("a", "k", correlation_key=key), value)
    begun.signal("a", {"order": {"id": 8}, "orders": [7, 6], "o": {}})
    assert begun.instance.status is WAITING
    begun.signal("a", value)
    assert begun.instance.status is COMPLETED


def test_both_filters_hold_for_every_name() -> None:
    built = chain("x").wait_for_signals(["a", "b"], result_key="k", match_payload={"t": 1}, correlation_key="o")
    begun = run(built, {"o": 1})
    begun.signal("a", {"t": 1, "o": 2})
    begun.signal("a", {"t": 1, "o": 1})
    begun.signal("b", {"t": 2, "o": 1})
    assert begun.instance.status is WAITING
    begun.signal("b", {"t": 1, "o": 1})
    assert get_state(begun)["k"] == {"a": {"t": 1, "o": 1}, "b": {"t": 1, "o": 1}}


def send_early(begun: Run, *signals: tuple[str, JsonObject]) -> Any:
    """The state of a run whose signals came before it waited for them."""
    for name, payload in signals:
        begun.signal(name, payload)
    begun.pass_time(60)
    go_on(begun)
    return get_state(begun)


def test_of_several_that_came_early_the_first_counts() -> None:
    """T-SIG-2, T-SIG-4: the first of a name, the first of any, the first of two that decide"""
    both = chain("x").delay(60).wait_for_signals(["a", "b"], "all", "k")
    assert send_early(run(both), ("a", {"n": 1}), ("a", {"n": 2}), ("b", {"n": 3}))["k"] == {
        "a": {"n": 1},
        "b": {"n": 3},
    }
    either = chain("x").delay(60).wait_for_signals(["a", "b"], "any", "k")
    assert send_early(run(either), ("b", {"n": 1}), ("a", {"n": 2}))["k"] == {"b": {"n": 1}}
    state = send_early(run(chain("x").delay(60).wait_for_decision()), ("rejected", {"n": 1}), ("approved", {"n": 2}))
    assert (state["decision"]["outcome"], state["decision"]["data"]) == ("rejected", {"n": 1})


def test_a_decisions_own_keys_lie_above_the_payloads() -> None:
    begun = run(chain("x").wait_for_decision(result_key=None))
    begun.signal("rejected", {"decision_outcome": "approved", "_hidden": 1, "reason": "late"})
    assert get_state(begun) == {"decision_outcome": "rejected", "decision_signal": "rejected", "reason": "late"}
