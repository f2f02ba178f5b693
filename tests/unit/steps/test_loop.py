"""loop: how often it goes round."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.model import JsonObject
from korak.steps.builtin.loop import Loop
from korak.steps.pure import Completed, Failed, LoopState, PureResult
from tests.support.entries import enter

WHILE: JsonObject = {"while": {"ref": "state.more", "op": "eq", "value": True}, "max_iterations": 1000}
OVER: JsonObject = {"over": {"ref": "input.items"}, "max_iterations": 1000}


def go(config: JsonObject, entries: list[dict[str, Any]]) -> list[PureResult]:
    """What each entry comes to, with the bookkeeping kept between them as the core does."""
    kept: LoopState | None = None
    results = []
    for roots in entries:
        result = enter(Loop(), config, roots=roots, loop=kept)
        if isinstance(result, Completed):
            kept = result.loop
        results.append(result)
    return results


@given(st.lists(st.integers(), max_size=12))
def test_over_goes_once_an_item_in_order(items: list[int]) -> None:
    *rounds, last = go(OVER, [{"input": {"items": items}}] * (len(items) + 1))
    assert [result.output for result in rounds if isinstance(result, Completed)] == [
        {"index": index, "item": item, "count": index + 1} for index, item in enumerate(items)
    ]
    assert all(isinstance(result, Completed) and result.outcome == "body" for result in rounds)
    assert last == Completed("done", {"index": None, "item": None, "count": len(items)})


def test_an_empty_over_goes_to_done_at_once() -> None:
    assert go(OVER, [{"input": {"items": []}}]) == [Completed("done", {"index": None, "item": None, "count": 0})]


@given(st.lists(st.booleans(), max_size=20))
def test_while_looks_at_every_entry_and_its_count_starts_anew_after_done(answers: list[bool]) -> None:
    results = go(WHILE, [{"state": {"more": more}} for more in answers])
    count = 0
    for more, result in zip(answers, results, strict=True):
        count = count + 1 if more else 0
        assert isinstance(result, Completed)
        assert result.outcome == ("body" if more else "done")
        assert result.loop == (LoopState(count) if more else None)


@given(st.integers(1, 8), st.integers(0, 8))
def test_with_all_rounds_made_it_leaves_by_done(limit: int, items: int) -> None:
    config: JsonObject = {**OVER, "max_iterations": limit}
    results = go(config, [{"input": {"items": [0] * items}}] * (min(limit, items) + 1))
    outcomes = [result.outcome for result in results if isinstance(result, Completed)]
    assert outcomes == ["body"] * min(limit, items) + ["done"]


def test_with_all_rounds_made_it_fails_where_it_is_told_to() -> None:
    config: JsonObject = {**WHILE, "max_iterations": 2, "on_max": "fail"}
    results = go(config, [{"state": {"more": True}}] * 3)
    assert isinstance(results[1], Completed)
    assert results[2] == Failed("loop_exhausted", {"pointer": "/max_iterations", "limit": 2})


def test_a_list_that_is_just_through_is_not_exhausted() -> None:
    config: JsonObject = {**OVER, "max_iterations": 2, "on_max": "fail"}
    results = go(config, [{"input": {"items": [1, 2]}}] * 3)
    assert [result.outcome for result in results if isinstance(result, Completed)] == ["body", "body", "done"]


@pytest.mark.parametrize("items", [None, "abc", {"a": 1}, 3])
def test_only_a_list_is_gone_over(items: object) -> None:
    result = enter(Loop(), OVER, roots={"input": {"items": items}})
    assert isinstance(result, Failed)
    assert (result.code, result.params["pointer"]) == ("invalid_input", "/over")


def test_a_kept_state_is_read_back() -> None:
    state = LoopState(3, {"a": 1})
    assert state.to_json() == {"index": 2, "item": {"a": 1}, "count": 3}
    assert LoopState.from_json(state.to_json()) == state


def test_both_ways_must_be_connected() -> None:
    assert [(spec.key, spec.is_required) for spec in Loop().contract().outcomes({})] == [("body", True), ("done", True)]


@pytest.mark.parametrize(
    ("config", "count"), [(OVER, 0), (WHILE, 0), ({"max_iterations": 1}, 1), ({**OVER, **WHILE}, 1)]
)
def test_a_loop_takes_one_of_two_forms(config: JsonObject, count: int, scope: Any) -> None:
    assert len(Loop().validate_config(config, scope)) == count
