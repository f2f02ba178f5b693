"""condition, branch, set_field and end: each decided from the snapshot alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.graphs.contracts import OutcomeSpec
from korak.model import Json, JsonObject
from korak.steps.builtin.branch import Branch
from korak.steps.builtin.condition import ConditionStep
from korak.steps.builtin.end import End
from korak.steps.builtin.set_field import SetField
from korak.steps.pure import MISSING, Completed, Entry, Failed
from tests.support.entries import NOW, Node, enter

BIG: JsonObject = {"ref": "state.total", "op": "gte", "value": 1000}


@pytest.mark.parametrize(("total", "outcome"), [(1000, "true"), (999, "false")])
def test_a_condition_goes_one_way_or_the_other(total: int, outcome: str) -> None:
    result = enter(ConditionStep(), {"if": BIG}, roots={"state": {"total": total}})
    assert result == Completed(outcome, {"result": outcome == "true"})


def test_a_condition_on_what_is_not_there_is_missing_value() -> None:
    result = enter(ConditionStep(), {"if": BIG}, roots={"state": {}})
    assert isinstance(result, Failed)
    assert (result.code, result.is_retryable) == ("missing_value", False)


def test_both_ways_must_be_connected() -> None:
    contract = ConditionStep().contract()
    assert [(each.key, each.is_required) for each in contract.outcomes({})] == [("true", True), ("false", True)]
    assert contract.is_pure


def test_a_config_is_compiled_once_a_plan() -> None:
    node = Node("n", {"if": BIG})
    for total in (1, 2000):
        ConditionStep().enter(Entry(node, {"state": {"total": total}}, NOW))
    program = node.program
    ConditionStep().enter(Entry(node, {"state": {"total": 1}}, NOW))
    assert node.program is program is not None


@pytest.mark.parametrize("pure", [ConditionStep(), Branch(), SetField(), End()])
@pytest.mark.parametrize("garbage", [{"if": 3, "result": {"cel": "1 +"}}, {"cases": [{}], "result": {"ref": "!"}}])
def test_a_graph_edited_by_hand_fails_with_a_code(pure: Any, garbage: JsonObject) -> None:
    result = enter(pure, garbage)
    assert isinstance(result, (Failed, Completed))
    if isinstance(result, Failed):
        assert result.code in ("invalid_graph", "field_not_writable")


def case(key: str, total: int) -> Json:
    return {"key": key, "if": {"ref": "state.total", "op": "gte", "value": total}}


CASES: JsonObject = {"cases": [case("large", 1000), case("middle", 100)]}


@pytest.mark.parametrize(("total", "outcome"), [(5000, "large"), (100, "middle"), (1, "default")])
def test_a_branch_takes_the_first_case_that_holds(total: int, outcome: str) -> None:
    result = enter(Branch(), CASES, roots={"state": {"total": total}})
    assert result == Completed(outcome, {"matched": outcome})


def test_a_branch_has_one_way_out_a_case_and_default() -> None:
    assert [spec.key for spec in Branch().contract().outcomes(CASES)] == ["large", "middle", "default"]
    assert Branch().contract().outcomes({}) == (OutcomeSpec("default", True, "Otherwise"),)


@pytest.mark.parametrize(
    ("keys", "pointers"),
    [
        (["a", "b"], []),
        (["a", "a"], ["/cases/1/key"]),
        (["default"], ["/cases/0/key"]),
        (["error"], ["/cases/0/key"]),
    ],
)
def test_a_branch_s_keys_are_different_and_free(keys: list[str], pointers: list[str], scope: Any) -> None:
    issues = Branch().validate_config({"cases": [case(key, 1) for key in keys]}, scope)
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", pointer) for pointer in pointers]


def test_set_field_gives_old_and_new() -> None:
    config: JsonObject = {"field": "state.total", "value": {"ref": "input.total"}}
    result = enter(SetField(), config, roots={"state": {"total": 1}, "input": {"total": 2}})
    assert result == Completed(output={"old": 1, "new": 2}, state_patch={"total": 2})


def test_set_field_makes_the_objects_on_the_way_and_keeps_what_is_there() -> None:
    state = {"order": {"id": 7}, "other": 1}
    result = enter(SetField(), {"field": "state.order.customer.name", "value": "Ana"}, roots={"state": state})
    assert isinstance(result, Completed)
    assert result.state_patch == {"order": {"id": 7, "customer": {"name": "Ana"}}}
    assert state == {"order": {"id": 7}, "other": 1}
    assert result.output == {"old": None, "new": "Ana"}


def test_set_field_merges_an_object_into_the_state() -> None:
    config: JsonObject = {"field": "state", "value": {"ref": "input"}}
    result = enter(SetField(), config, roots={"state": {"a": 1, "b": 2}, "input": {"b": 3, "c": {}}})
    assert result == Completed(output={"old": {"b": 2}, "new": {"b": 3, "c": {}}}, state_patch={"b": 3, "c": {}})
    assert enter(SetField(), config, roots={"state": {"a": 1}, "input": {}}) == Completed(
        output={"old": {}, "new": {}}, state_patch={}
    )


def test_set_field_merges_nothing_but_objects_of_public_keys() -> None:
    """T-STATE-5"""
    config: JsonObject = {"field": "state", "value": {"ref": "input"}}
    failed = enter(SetField(), config, roots={"input": [1]})
    assert isinstance(failed, Failed)
    assert (failed.code, failed.params["pointer"]) == ("invalid_input", "/value")
    failed = enter(SetField(), config, roots={"input": {"a": 1, "_x": 1}})
    assert isinstance(failed, Failed)
    assert (failed.code, failed.params["field"]) == ("field_not_writable", "state._x")


def test_set_field_writes_into_nothing_but_objects() -> None:
    result = enter(SetField(), {"field": "state.order.id", "value": 1}, roots={"state": {"order": [1]}})
    assert result == Failed("field_not_writable", {"field": "state.order.id"}, "state.order.id can't be written.")


@pytest.mark.parametrize("field", ["input.x", "state._x", "state.x[0]", "steps.a.output", "1x", "", None])
def test_only_names_in_the_state_can_be_written(field: Any, scope: Any) -> None:
    issues = SetField().validate_config({"field": field, "value": 1}, scope)
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", "/field")]


def test_only_an_object_is_merged_into_the_state(scope: Any) -> None:
    given: list[tuple[Json, list[str]]] = [(1, ["/value"]), ({"a": 1}, []), ({"ref": "input"}, [])]
    for value, pointers in given:
        issues = SetField().validate_config({"field": "state", "value": value}, scope)
        assert [issue.pointer for issue in issues] == pointers


@given(st.lists(st.from_regex(r"[a-z]{1,3}", fullmatch=True), min_size=1, max_size=4), st.integers())
def test_what_set_field_wrote_is_read_back(names: list[str], value: int) -> None:
    path = ".".join(["state", *names])
    result = enter(SetField(), {"field": path, "value": value}, roots={"state": {}})
    assert isinstance(result, Completed)
    found: Any = result.state_patch
    for name in names:
        found = found[name]
    assert found == value


def test_an_end_gives_its_result() -> None:
    result = enter(End(), {"result": {"ref": "state"}}, roots={"state": {"a": 1}})
    assert result == Completed(output={"result": {"a": 1}}, result={"a": 1}, ends=True)


def test_an_end_without_a_result_leaves_it_to_the_last_output() -> None:
    result = enter(End(), {"terminate": True})
    assert isinstance(result, Completed)
    assert result.ends
    assert result.terminates
    assert result.result is MISSING


def test_an_end_has_no_way_out() -> None:
    assert End().contract().outcomes({}) == ()
    assert not End().contract().can_fail
