"""In which line the steps of a graph follow each other, and which have none."""

from __future__ import annotations

from typing import Any

import pytest

from korak import chain
from korak.graphs.flow import get_line
from korak.graphs.plans import Plan
from tests.support import links
from tests.support.bodies import body, document, for_each, node
from tests.support.plans import plan_of, registry


def plan(built: Any) -> Plan:
    for made in built.step_types:
        if registry().get(made.key) is None:
            registry().add(made)
    return plan_of(built.document())


def test_the_steps_of_a_chain_are_its_line() -> None:
    built = (
        chain("x")
        .then(links.count, "draft")
        .wait_for_decision(timeout=60, timed_out="late")
        .repeat_until("draft", "rounds", 3)
        .for_each("n", links.score, name="each", reducer=links.gather)
        .then(links.fork, "fork")
        .jumps()
        .parallel([links.count, links.count], "both")
        .then(links.count, "late")
    )
    made = plan(built)
    assert made.line == ("draft", "wait_for_decision", "repeat_until_2", "each", "fork", "both", "late")
    assert made.places["begin"] == 0
    assert made.places["each_reducer"] == made.places["each"] == 3
    assert made.places["end"] == len(made.line)
    assert "each_item" not in made.places


def test_a_step_that_may_wait_no_longer_than_to_the_end_is_in_it() -> None:
    assert plan(chain("x").wait_for_input(timeout=5, timed_out="$end").then(links.count)).line == (
        "wait_for_input",
        "s1",
    )


def test_a_graph_that_is_written_in_any_order_has_a_line_too() -> None:
    each = for_each([1], body(node("inner")), name="each")
    edges = [("start", "next", "b"), ("b", "next", "a"), ("a", "next", "each"), ("each", "next", "done")]
    assert plan_of(document(node("a"), each, node("b"), edges=edges)).line == ("b", "a", "each")


def test_one_that_branches_has_none() -> None:
    edges = [("start", "next", "a"), ("a", "yes", "b"), ("a", "no", "c"), ("b", "next", "done"), ("c", "next", "done")]
    made = plan_of(document(node("a", "test.fork"), node("b"), node("c"), edges=edges))
    assert (made.line, made.places) == ((), {})


LINES: list[tuple[dict[str, list[str]], list[str]]] = [
    ({"a": []}, ["a"]),
    ({"a": ["b"], "b": ["c"], "c": []}, ["a", "b", "c"]),
    ({"a": ["c", "b"], "b": ["c"], "c": []}, ["a", "b", "c"]),
    ({"a": ["b"], "b": ["a", "c"], "c": ["b", "a", "d"], "d": []}, ["a", "b", "c", "d"]),
    ({"a": ["b"], "b": ["b", "c"], "c": []}, ["a", "b", "c"]),
    ({"a": ["b", "c"], "b": [], "c": []}, []),
    ({"a": ["b", "c"], "b": ["d"], "c": ["d"], "d": []}, []),
]


@pytest.mark.parametrize("number", range(len(LINES)))
def test_ways_back_and_ahead_leave_a_line(number: int) -> None:
    successors, line = LINES[number]
    assert get_line("a", successors) == line
