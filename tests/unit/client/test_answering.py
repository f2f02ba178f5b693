"""Which signal answers what an instance asks of a person."""

from __future__ import annotations

from typing import Any, cast

import pytest

from korak.client import Instance
from korak.client.answering import Verb, pick
from korak.errors import Conflict


def waiting(human: str | None, *names: str, node: str = "ask", kind: str = "signal") -> dict[str, Any]:
    return {"kind": kind, "node": node, "execution": f"01{node}", "human": human, "names": [*names]}


def instance(*waits: dict[str, Any], status: str = "waiting") -> Instance:
    return cast("Instance", {"id": "01RUN", "status": status, "waiting_for": [*waits]})


DECISION = waiting("decision", "yes", "no")
APPROVAL = waiting("approval", "approval", node="boss")
INPUT = waiting("input", "numbers")
PLAIN = waiting(None, "go")


@pytest.mark.parametrize(
    ("asked", "verb", "signal"),
    [
        (DECISION, "approve", "yes"),
        (DECISION, "reject", "no"),
        (APPROVAL, "approve", "approval"),
        (INPUT, "input", "numbers"),
    ],
)
def test_the_awaited_name_is_found(asked: dict[str, Any], verb: Verb, signal: str) -> None:
    """11.9, ours: the name of the signal comes from the current wait"""
    assert pick(instance(PLAIN, asked), verb) == (signal, f"01{asked['node']}")


@pytest.mark.parametrize(
    ("waits", "status", "verb", "told"),
    [
        ([APPROVAL], "waiting", "reject", "it waits for approval approval at boss"),
        ([INPUT, PLAIN], "waiting", "approve", "it waits for input numbers at ask, signal go at ask"),
        ([DECISION], "waiting", "input", "it waits for decision yes or no at ask"),
        ([], "running", "approve", "it is running and waits for nothing"),
        ([], "completed", "approve", "it is completed"),
    ],
)
def test_what_isn_t_asked_isn_t_answered(waits: list[Any], status: str, verb: Verb, told: str) -> None:
    with pytest.raises(Conflict) as raised:
        pick(instance(*waits, status=status), verb)
    assert raised.value.code == "not_awaited"
    assert raised.value.params["awaited"] == told


def test_of_several_one_is_named_by_its_node_or_its_signal() -> None:
    both = instance(DECISION, APPROVAL)
    with pytest.raises(Conflict) as raised:
        pick(both, "approve")
    assert raised.value.code == "several_awaited"
    assert raised.value.params["awaited"] == "yes at ask, approval at boss"
    assert pick(both, "approve", node="boss") == ("approval", "01boss")
    assert pick(both, "approve", signal="yes").signal == "yes"
    assert pick(both, "reject").signal == "no"


def test_one_name_at_two_nodes_is_two_questions_and_in_two_bodies_of_a_node_one() -> None:
    other = waiting("decision", "yes", "no", node="second")
    with pytest.raises(Conflict, match="yes at ask, yes at second"):
        pick(instance(DECISION, other), "approve")
    later = {**DECISION, "execution": "01later"}
    assert pick(instance(DECISION, later), "approve").execution == "01ask"


def test_a_signal_that_is_named_may_be_one_that_asks_nobody() -> None:
    assert pick(instance(PLAIN), "approve", signal="go").signal == "go"
    with pytest.raises(Conflict):
        pick(instance(PLAIN), "approve", signal="stop")
    with pytest.raises(Conflict):
        pick(instance(DECISION), "approve", signal="no")
