"""Conditions (DESIGN 6, condition; spec 16): a misspelt path must not approve an order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.graphs.conditions import OPS, compile_condition
from korak.graphs.expressions import ExpressionFailed
from korak.graphs.paths import Malformed, MissingValue, Reference, Unresolved
from tests.unit.graphs.test_hygiene import CLEAN

ROOTS: dict[str, Any] = {
    "input": {"n": 5, "s": "abc", "l": [1, "x", None], "none": None, "t": True, "due": "2026-03-01T12:00:00+01:00"},
    "state": {"limit": 5.0, "allowed": [5, 6]},
    "now": "2026-03-01T11:30:00Z",
}


def on(ref: str, op: str, *value: Any) -> dict[str, Any]:
    return {"ref": ref, "op": op} | ({"value": value[0]} if value else {})


@pytest.mark.parametrize(
    ("raw", "holds"),
    [
        (on("input.n", "eq", 5), True),
        (on("input.n", "eq", 5.0), True),
        (on("input.n", "eq", "5"), False),
        (on("input.t", "eq", 1), False),
        (on("input.n", "neq", 4), True),
        (on("input.none", "eq", None), True),
        (on("input.l", "eq", [1, "x", None]), True),
        (on("input.n", "gt", 4), True),
        (on("input.n", "gte", {"ref": "state.limit"}), True),
        (on("input.n", "lt", 5), False),
        (on("input.n", "lte", 5), True),
        (on("input.s", "gt", "abb"), True),
        (on("input.due", "lt", {"ref": "now"}), True),
        (on("input.due", "gte", "2026-03-01T11:00:00Z"), True),
        (on("input.none", "gt", 1), False),
        (on("input.none", "lte", 1), False),
        (on("input.n", "gt", None), False),
        (on("input.n", "in", [1, 5]), True),
        (on("input.n", "in", {"ref": "state.allowed"}), True),
        (on("input.n", "not_in", [1, 2]), True),
        (on("input.t", "in", [1]), False),
        (on("input.none", "in", [None]), True),
        (on("input.l", "contains", "x"), True),
        (on("input.l", "contains", True), False),
        (on("input.s", "contains", "bc"), True),
        (on("input.none", "contains", "x"), False),
        (on("input.s", "starts_with", "ab"), True),
        (on("input.s", "ends_with", {"template": "b${input.nothing}c"}), None),
        (on("input.s", "ends_with", "bc"), True),
        (on("input.none", "starts_with", "a"), False),
        (on("input.none", "is_null"), True),
        (on("input.nope", "is_null"), True),
        (on("input.nope.deeper", "not_null"), False),
        (on("input.n", "not_null"), True),
        (on("input.n", "not_null", None), True),
        ({"ref": "input.nope", "default": 7, "op": "gt", "value": 6}, True),
        ({"cel": "input.n * 2 == 10"}, True),
        ({"all": []}, True),
        ({"any": []}, False),
        ({"all": [on("input.n", "eq", 5), {"not": on("input.n", "eq", 6)}]}, True),
        ({"any": [on("input.n", "eq", 6), {"cel": "true"}]}, True),
        ({"any": [{"cel": "true"}, on("input.nope", "eq", 1)]}, True),
        ({"all": [{"cel": "false"}, on("input.nope", "eq", 1)]}, False),
    ],
    ids=str,
)
def test_holds(raw: Any, holds: bool | None) -> None:
    condition = compile_condition(raw)
    if holds is None:
        with pytest.raises(MissingValue):
            condition.holds(ROOTS)
        return
    assert condition.holds(ROOTS) is holds


@pytest.mark.parametrize("op", sorted(OPS - {"is_null", "not_null"}))
def test_a_missing_path_is_missing_value_on_either_side(op: str) -> None:
    with pytest.raises(MissingValue) as caught:
        compile_condition(on("input.nope", op, [1])).holds(ROOTS)
    assert caught.value.params == {"path": "input.nope"}
    with pytest.raises(MissingValue):
        compile_condition(on("input.n", op, {"ref": "state.nope"})).holds(ROOTS)


def test_a_missing_path_is_not_turned_around_by_not() -> None:
    with pytest.raises(MissingValue):
        compile_condition({"not": {"any": [on("input.nope", "eq", 1)]}}).holds(ROOTS)
    with pytest.raises(MissingValue):
        compile_condition({"not": {"cel": "input.nope == 1"}}).holds(ROOTS)


@pytest.mark.parametrize(
    "raw",
    [
        on("input.n", "gt", "4"),
        on("input.s", "lt", 4),
        on("input.t", "gte", True),
        on("input.l", "lt", [2]),
        on("input.n", "in", {"ref": "state.limit"}),
        on("input.n", "contains", 5),
        on("input.s", "contains", 5),
        on("input.n", "starts_with", "5"),
        on("input.s", "ends_with", 5),
    ],
    ids=str,
)
def test_types_without_an_order_are_a_mismatch(raw: Any) -> None:
    with pytest.raises(Unresolved) as caught:
        compile_condition(raw).holds(ROOTS)
    assert caught.value.code == "type_mismatch"


def test_an_expression_must_give_a_bool() -> None:
    with pytest.raises(ExpressionFailed):
        compile_condition({"cel": "input.n"}).holds(ROOTS)


@pytest.mark.parametrize(
    ("raw", "code", "pointer"),
    [
        (None, "invalid_condition", ""),
        (True, "invalid_condition", ""),
        ([], "invalid_condition", ""),
        ({}, "invalid_condition", ""),
        ({"all": [], "any": []}, "invalid_condition", ""),
        ({"xor": []}, "invalid_condition", "/xor"),
        ({"all": {}}, "invalid_condition", "/all"),
        ({"any": [1]}, "invalid_condition", "/any/0"),
        ({"not": []}, "invalid_condition", "/not"),
        ({"cel": "1 +"}, "invalid_expression", "/cel"),
        ({"cel": 5}, "invalid_expression", "/cel"),
        ({"ref": "input.x"}, "invalid_condition", "/op"),
        ({"op": "eq", "value": 1}, "invalid_condition", ""),
        (on("input.x", "equals", 1), "invalid_condition", "/op"),
        (on("input.x", "eq"), "invalid_condition", ""),
        (on("input.x", "is_null", 1), "invalid_condition", "/value"),
        (on("input.x", "in", 1), "invalid_condition", "/value"),
        (on("input.x", "eq", 1) | {"extra": 1}, "invalid_condition", "/extra"),
        (on("x.y", "eq", 1), "invalid_value", "/ref"),
        (on("input.x", "eq", {"cel": ")"}), "invalid_expression", "/value/cel"),
        (on("input.x", "eq", {"secret": "s"}), "secret_not_allowed", "/value/secret"),
        ({"all": [{"not": on("input.x", "nope", 1)}]}, "invalid_condition", "/all/0/not/op"),
        ({"any": [{"all": []}] * 500}, "invalid_condition", "/any/499"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_refuses_with_the_place(raw: Any, code: str, pointer: str) -> None:
    with pytest.raises(Malformed) as caught:
        compile_condition(raw)
    assert (caught.value.issue.code, caught.value.issue.pointer) == (code, pointer)


def test_nesting_is_bounded() -> None:
    raw: Any = {"all": []}
    for _ in range(5000):
        raw = {"not": raw}
    with pytest.raises(Malformed):
        compile_condition(raw)


def test_it_says_what_it_reads_and_where() -> None:
    condition = compile_condition(
        {
            "all": [
                on("input.a", "eq", {"ref": "state.b"}),
                {"any": [on("input.c", "is_null"), {"not": {"ref": "input.d", "default": 1, "op": "eq", "value": 1}}]},
                {"cel": "item > 1"},
            ]
        }
    )
    assert condition.references() == (
        Reference(("input", "a"), False, "/all/0/ref"),
        Reference(("state", "b"), False, "/all/0/value/ref"),
        Reference(("input", "c"), True, "/all/1/any/0/ref"),
        Reference(("input", "d"), True, "/all/1/any/1/not/ref"),
        Reference(("item",), False, "/all/2/cel"),
    )


@given(CLEAN, CLEAN)
def test_eq_is_symmetric_and_neq_its_opposite(left: Any, right: Any) -> None:
    roots = {"state": {"l": left, "r": right}}

    def holds(one: str, op: str, other: str) -> bool:
        return compile_condition(on(one, op, {"ref": other})).holds(roots)

    assert holds("state.l", "eq", "state.l")
    assert holds("state.l", "eq", "state.r") is holds("state.r", "eq", "state.l")
    assert holds("state.l", "eq", "state.r") is not holds("state.l", "neq", "state.r")


@given(st.integers() | st.floats(allow_nan=False), st.integers() | st.floats(allow_nan=False))
def test_numbers_have_a_total_order(left: float, right: float) -> None:
    roots = {"state": {"l": left, "r": right}}
    results = [compile_condition(on("state.l", op, {"ref": "state.r"})).holds(roots) for op in ("lt", "eq", "gt")]
    assert sum(results) == 1


@given(
    st.recursive(
        st.sampled_from([{"cel": "true"}, {"cel": "false"}]),
        lambda inner: (
            st.builds(lambda terms: {"all": terms}, st.lists(inner, max_size=3))
            | st.builds(lambda terms: {"any": terms}, st.lists(inner, max_size=3))
            | st.builds(lambda term: {"not": term}, inner)
        ),
        max_leaves=10,
    )
)
def test_de_morgan(raw: Any) -> None:
    def turn(part: Any) -> Any:
        match part:
            case {"all": terms}:
                return {"any": [turn(term) for term in terms]}
            case {"any": terms}:
                return {"all": [turn(term) for term in terms]}
        return {"not": part}

    try:
        expected = not compile_condition(raw).holds({})
        turned = compile_condition(turn(raw))
    except Malformed:
        return
    assert turned.holds({}) is expected
