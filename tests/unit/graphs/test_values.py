"""Value forms (DESIGN 6, value and secret)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.graphs.room import MOST, Oversized
from korak.graphs.values import (
    ExpressionFailed,
    Malformed,
    MissingValue,
    Reference,
    Unresolved,
    Value,
    compile_value,
    get_form,
)
from tests.unit.graphs.test_hygiene import CLEAN

ROOTS: dict[str, Any] = {
    "input": {"order_id": "A-17", "due": "2026-03-01T12:00:00+01:00", "none": None},
    "state": {"total": 12},
    "instance": {"timezone": "Europe/Ljubljana"},
    "now": datetime(2026, 3, 28, 9, tzinfo=UTC),
}


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"ref": "input.order_id"}, "A-17"),
        ({"ref": "input.none"}, None),
        ({"ref": "input.nope"}, None),
        ({"ref": "input.nope", "default": 5}, 5),
        ({"ref": "input.none", "default": 5}, None),
        ({"ref": "input.nope", "default": {"ref": "state.total"}}, 12),
        ({"ref": "now"}, "2026-03-28T09:00:00Z"),
        ({"cel": "state.total * 1.5"}, 18.0),
        ({"cel": "now"}, "2026-03-28T09:00:00Z"),
        ({"template": "Order ${input.order_id}"}, "Order A-17"),
        ({"literal": {"ref": "input.order_id"}}, {"ref": "input.order_id"}),
        ({"relative": {"base": "now", "offset": "PT1H"}}, "2026-03-28T10:00:00Z"),
        ({"relative": {"base": "now", "offset": "P1D"}}, "2026-03-29T09:00:00Z"),
        ({"relative": {"base": "now", "offset": {"days": 1}}}, "2026-03-29T08:00:00Z"),
        ({"relative": {"base": "input.due", "offset": "-P1D"}}, "2026-02-28T11:00:00Z"),
        ({"relative": {"base": {"ref": "input.due"}, "offset": 90}}, "2026-03-01T11:01:30Z"),
        ({"relative": {"base": {"cel": "now"}, "offset": 0}}, "2026-03-28T09:00:00Z"),
        ({"relative": {"base": "2026-01-31T00:00:00Z", "offset": "P1M"}}, "2026-02-28T00:00:00Z"),
        ({"relative": {"base": "input.nope", "offset": "PT1H"}}, None),
        # no forms: their keys are not exactly a form's
        ({"ref": "input.order_id", "op": "eq"}, {"ref": "input.order_id", "op": "eq"}),
        ({"cel": "1", "x": 1}, {"cel": "1", "x": 1}),
        ({"default": 1}, {"default": 1}),
        # members in turn
        ([1, {"ref": "state.total"}, [{"cel": "1 + 1"}]], [1, 12, [2]]),
        ({"a": {"b": {"ref": "state.total"}}, "c": 1}, {"a": {"b": 12}, "c": 1}),
        ({"a": {"literal": {"cel": "1"}}, "b": [{"literal": 1}]}, {"a": {"cel": "1"}, "b": [1]}),
        ("${input.order_id}", "${input.order_id}"),
    ],
    ids=str,
)
def test_resolves(raw: Any, value: Any) -> None:
    assert compile_value(raw).resolve(ROOTS) == value


@pytest.mark.parametrize(
    ("raw", "code", "pointer"),
    [
        ({"ref": 5}, "invalid_value", "/ref"),
        ({"ref": "stat.x"}, "invalid_value", "/ref"),
        ({"ref": "input.x", "default": {"cel": "1 +"}}, "invalid_expression", "/default/cel"),
        ({"a": [1, {"cel": "x"}]}, "invalid_expression", "/a/1/cel"),
        ({"cel": "matches('a', '(')"}, "invalid_pattern", "/cel"),
        ({"a/b": {"template": "${"}}, "invalid_value", "/a~1b/template"),
        ({"relative": {"base": "now"}}, "invalid_value", "/relative"),
        ({"relative": []}, "invalid_value", "/relative"),
        ({"relative": {"base": "now", "offset": "1h"}}, "invalid_duration", "/relative/offset"),
        ({"relative": {"base": "later", "offset": 1}}, "invalid_value", "/relative/base"),
        ({"relative": {"base": 5, "offset": 1}}, "invalid_value", "/relative/base"),
        ({"relative": {"base": {"cel": ")"}, "offset": 1}}, "invalid_expression", "/relative/base/cel"),
        (
            {"relative": {"base": "now", "offset": {"business": "PT1H"}}},
            "invalid_duration",
            "/relative/offset/business",
        ),
        ({"secret": "token"}, "secret_not_allowed", "/secret"),
        ({"h": {"template": "Bearer ${secret.token}"}}, "secret_not_allowed", "/h/template"),
    ],
    ids=str,
)
def test_refuses_with_the_place(raw: Any, code: str, pointer: str) -> None:
    with pytest.raises(Malformed) as caught:
        compile_value(raw)
    assert (caught.value.issue.code, caught.value.issue.pointer) == (code, pointer)


def test_a_secret_stays_a_reference_until_it_is_revealed() -> None:
    value = compile_value(
        {"url": {"secret": "hook"}, "headers": {"authorization": {"template": "Bearer ${secret.token}"}}}, secrets=True
    )
    assert value.resolve(ROOTS) == {
        "url": {"secret": "hook"},
        "headers": {"authorization": "Bearer ${secret.token}"},
    }
    assert value.reveal(ROOTS, lambda name: f"<{name}>") == {
        "url": "<hook>",
        "headers": {"authorization": "Bearer <token>"},
    }


def test_what_a_user_sends_is_never_revealed() -> None:
    value = compile_value({"ref": "input.x"}, secrets=True)
    roots = {"input": {"x": [{"secret": "token"}, "${secret.token}"]}}
    assert value.reveal(roots, lambda name: "revealed") == [{"secret": "token"}, "${secret.token}"]


@pytest.mark.parametrize("name", ["", "a b", "../x", 5, None, "x" * 200])
def test_a_secret_has_a_plain_name(name: Any) -> None:
    with pytest.raises(Malformed):
        compile_value({"secret": name}, secrets=True)


def test_literals_are_shared_and_not_copied() -> None:
    raw: Any = {"a": [1, {"b": 2}]}
    value = compile_value(raw)
    assert value.is_literal
    assert value.resolve(ROOTS) is raw
    inner = compile_value({"lit": raw, "x": {"ref": "state.total"}})
    assert not inner.is_literal
    assert inner.resolve(ROOTS)["lit"] is raw  # type: ignore[index,call-overload]  # an object


@given(CLEAN)
def test_a_literal_form_and_plain_json_are_untouched(raw: Any) -> None:
    assert compile_value({"literal": raw}).resolve({}) is raw


def expect(part: Any) -> Any:
    """What a value must give, written naively."""
    if isinstance(part, list):
        return [expect(member) for member in part]
    if not isinstance(part, dict):
        return part
    for form, result in (("ref", 7), ("cel", 1), ("template", "a"), ("literal", [1])):
        if form in part:
            return result
    return {key: expect(member) for key, member in part.items()}


@given(
    st.recursive(
        st.sampled_from([{"ref": "input.x"}, {"cel": "1"}, {"template": "a"}, {"literal": [1]}, 1, "x", None]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
        max_leaves=12,
    )
)
def test_resolving_keeps_the_shape(raw: Any) -> None:
    value = compile_value(raw)
    assert value.resolve({"input": {"x": 7}}) == expect(raw)
    if value.is_literal:
        assert value.references() == ()


def test_it_says_what_it_reads_and_where() -> None:
    value = compile_value(
        {
            "a": {"ref": "input.x", "default": {"ref": "state.y"}},
            "b~": [{"cel": "state.z > 1 && has(state.q)"}],
            "c": {"template": "${steps.p.output.k}"},
            "d": {"relative": {"base": "input.due", "offset": 1}},
        }
    )
    assert value.references() == (
        Reference(("input", "x"), True, "/a/ref"),
        Reference(("state", "y"), False, "/a/default/ref"),
        Reference(("state", "z"), False, "/b~0/0/cel"),
        Reference(("state", "q"), True, "/b~0/0/cel"),
        Reference(("steps", "p", "output", "k"), False, "/c/template"),
        Reference(("input", "due"), False, "/d/relative/base"),
    )


def resolve(raw: Any, **options: bool) -> Any:
    value: Value = compile_value(raw)
    return value.resolve(ROOTS, **options)


def test_what_can_fail_at_run_time() -> None:
    with pytest.raises(MissingValue):
        resolve({"cel": "state.nope"})
    with pytest.raises(MissingValue):
        resolve([{"ref": "input.nope"}], strict=True)
    with pytest.raises(ExpressionFailed):
        resolve({"cel": "1 / 0"})
    with pytest.raises(Unresolved) as caught:
        resolve({"relative": {"base": "input.order_id", "offset": 1}})
    assert caught.value.code == "type_mismatch"
    with pytest.raises(Unresolved):
        resolve({"relative": {"base": "9999-12-31T23:59:59Z", "offset": "P1D"}})


def test_nesting_is_bounded() -> None:
    raw: Any = 1
    for _ in range(5000):
        raw = [raw]
    with pytest.raises(Malformed):
        compile_value(raw)


@pytest.mark.parametrize(
    ("raw", "form"),
    [
        ({"ref": "x", "default": 1}, "ref"),
        ({"secret": 1}, "secret"),
        ({}, None),
        ({"ref": 1, "x": 2}, None),
        ([], None),
    ],
)
def test_a_form_is_told_by_its_keys(raw: Any, form: str | None) -> None:
    assert get_form(raw) == form


@pytest.mark.parametrize(
    "raw",
    [
        [{"ref": "input.text"}] * 20,
        {f"k{number}": {"ref": "input"} for number in range(20)},
        {"template": "${input.text}" * 20},
        {"template": "${input}" * 20},
        [{"template": "${input.text}"}] * 20,
        [{"cel": "input.text"}] * 20,
        {"ref": "input.nope", "default": [{"ref": "input.text"}] * 20},
    ],
)
def test_a_short_value_cannot_come_to_much(raw: Any) -> None:
    roots = {"input": {"text": "x" * 500_000}}
    value = compile_value(raw)
    with pytest.raises(Oversized) as refused:
        value.resolve(roots)
    assert (refused.value.code, refused.value.params) == ("value_too_large", {"limit": MOST})
    assert value.resolve({"input": {"text": "x" * 100}}) is not None
