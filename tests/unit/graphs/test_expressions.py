"""CEL with JSON's numbers (DESIGN 6, condition): the table of expressions, the bounds, and what fails how."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from korak.graphs import hygiene
from korak.graphs.expressions import ExpressionFailed, compile_expression
from korak.graphs.paths import Malformed, MissingValue, Unresolved
from tests.unit.graphs.test_hygiene import CLEAN

ROOTS: dict[str, Any] = {
    "input": {
        "order_id": "A-17",
        "unit price": 19.99,
        "tags": ["new", "vip"],
        "note": None,
        "due": "2026-03-01T12:00:00+01:00",
    },
    "state": {
        "total": 1200,
        "rate": 1.2,
        "rows": [{"sku": "x", "qty": 2}, {"sku": "y", "qty": 0}, {"sku": "z", "qty": 5}],
        "flags": {"paid": True, "sent": False},
        "loop": 1,
    },
    "steps": {"price": {"output": {"quote": 100.5}, "outcome": "next"}},
    "item": 3,
    "index": 0,
    "now": "2026-03-01T11:30:00Z",
}

TABLE: list[tuple[str, Any]] = [
    # numbers are JSON numbers
    ("1200 * 1.2", 1440.0),
    ("state.total * state.rate", 1440.0),
    ("1 / 2", 0.5),
    ("4 / 2", 2),
    ("7 % 3", 1),
    ("-7 % 3", -1),
    ("7.5 % 2", 1.5),
    ("1 + 2.5", 3.5),
    ("10 - 3 - 2", 5),
    ("2 + 3 * 4", 14),
    ("(2 + 3) * 4", 20),
    ("1 == 1.0", True),
    ("2 < 2.5 && 2.5 < 3", True),
    ("-state.total", -1200),
    ("1-1", 0),
    ("5u + 1", 6),
    ("0x10", 16),
    ("1e3", 1000.0),
    ("9223372036854775807 + 1", 2**63),
    # decimals for money, as text
    ('decimal("1.10") * 3', "3.30"),
    ('decimal("0.1") + decimal("0.2")', "0.3"),
    ('decimal("0.1") + decimal("0.2") == 0.3', True),
    ('decimal("10") / 4', "2.5"),
    ("decimal(input['unit price']) * 2 > 39", True),
    ('double(decimal("1.50"))', 1.5),
    ('decimal("1.10") == decimal("1.1")', True),
    # truth
    ("true && !false", True),
    ("false || true", True),
    ("state.total > 1000 ? 'big' : 'small'", "big"),
    ("false && state.nope", False),
    ("state.nope || true", True),
    ("true == 1", False),
    ("null == null", True),
    ("input.note == null", True),
    ("false < true", True),
    # text
    ("'a' + \"b\"", "ab"),
    ("input.order_id.startsWith('A-')", True),
    ("input.order_id.endsWith('17')", True),
    ("input.order_id.contains('-')", True),
    ("input.order_id.matches('^[A-Z]-[0-9]+$')", True),
    ("matches('abc', 'b')", True),
    ("size('žš')", 2),
    ("'ABC'.lowerAscii() + 'x'.upperAscii() + ' y '.trim()", "abcXy"),
    ("'a' < 'b'", True),
    (r"'tab\t quote\' \u00e9 \x41 \101'", "tab\t quote' é A A"),
    (r"r'\d'", "\\d"),
    ("'''it's'''", "it's"),
    ("\"\" + ''", ""),
    ("string(1200) + string(1.5) + string(true)", "12001.5true"),
    ("int('42') + int(2.9)", 44),
    ("double('2.5')", 2.5),
    ("bool('true')", True),
    ("dyn(1)", 1),
    ("'// no comment' // a comment", "// no comment"),
    # lists and maps
    ("[1, 2] + [3]", [1, 2, 3]),
    ("[1, 2.0, 'x'][2]", "x"),
    ("{'a': 1, 'b': [true]}", {"a": 1, "b": [True]}),
    ("{'a': 1}.a", 1),
    ("'vip' in input.tags", True),
    ("'paid' in state.flags", True),
    ("2 in [1, 2.0]", True),
    ("1 in [true]", False),
    ("size(input.tags) + size(state.flags)", 4),
    ("[1, [2]] == [1.0, [2]]", True),
    ("{'a': 1, 'b': 2} == {'b': 2, 'a': 1}", True),
    ("state.rows[0].sku", "x"),
    ("input['unit price']", 19.99),
    ("state.rows[index].qty", 2),
    ("item * 2", 6),
    ("state.loop", 1),
    # macros
    ("state.rows.all(r, r.qty >= 0)", True),
    ("state.rows.exists(r, r.qty == 0)", True),
    ("state.rows.exists_one(r, r.qty > 1)", False),
    ("state.rows.filter(r, r.qty > 0).map(r, r.sku)", ["x", "z"]),
    ("state.rows.map(r, r.qty > 0, r.qty * 2)", [4, 10]),
    ("state.flags.exists(k, k == 'paid')", True),
    ("[1, 2].map(x, [10, 20].map(y, x * y))", [[10, 20], [20, 40]]),
    ("[].all(x, x > 1)", True),
    ("[1, 'x'].exists(x, x == 1 || x > 0)", True),
    # has
    ("has(state.total)", True),
    ("has(state.nope)", False),
    ("has(state.nope.deeper)", False),
    ("has(input.note)", True),
    ("has(state.nope) ? state.nope : 7", 7),
    ("state.rows.filter(r, has(r.price))", []),
    # time
    ("now < timestamp(input.due)", False),
    ("now + duration('1h')", "2026-03-01T12:30:00Z"),
    ("now - timestamp('2026-03-01T11:00:00Z')", 1800),
    ("duration('PT1H30M') == duration('1h30m')", True),
    ("duration('90s') > duration(60)", True),
    ("duration('1.5s') + duration('1s')", 2.5),
    ("timestamp(0)", "1970-01-01T00:00:00Z"),
    ("int(timestamp('1970-01-01T00:01:00Z'))", 60),
    ("now.getHours('Europe/Ljubljana')", 12),
    ("now.getFullYear() * 100 + now.getMonth() + 1", 202603),
    ("now.getDayOfWeek()", 0),
    ("string(now)", "2026-03-01T11:30:00Z"),
]


@pytest.mark.parametrize(("text", "result"), TABLE, ids=[text for text, _ in TABLE])
def test_the_table(text: str, result: Any) -> None:
    value = compile_expression(text).evaluate(ROOTS)
    assert value == result
    assert type(value) is type(result)


def test_the_table_is_long_enough() -> None:
    assert len(TABLE) >= 40


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("state.nope > 1", "state.nope"),
        ("state.total.deeper", "state.total.deeper"),
        ("state.rows[7].sku", "state.rows[7].sku"),
        ("input['a b']", 'input["a b"]'),
        ("input.note.x", "input.note.x"),
        ("state.rows.map(r, r.price)", "price"),
        ("[1, 2][index + 5]", "5"),
        ("state.nope && true", "state.nope"),
        ("[1].exists(x, state.nope)", "state.nope"),
    ],
)
def test_a_missing_key_is_missing_value(text: str, path: str) -> None:
    with pytest.raises(MissingValue) as caught:
        compile_expression(text).evaluate(ROOTS)
    assert caught.value.code == "missing_value"
    assert caught.value.params == {"path": path}


@pytest.mark.parametrize(
    "text",
    [
        "1 / 0",
        "1.0 % 0",
        "decimal('1') / 0",
        "'a' + 1",
        "true + 1",
        "null < 1",
        "1 < 'a'",
        "now < 'x'",
        "!1",
        "1 && true",
        "1 ? 2 : 3",
        "-'a'",
        "'a' in 'abc'",
        "1 in 2",
        "size(1)",
        "int('x')",
        "int(true)",
        "int('1e400')",
        "double('nan')",
        "double('1e400')",
        "double('1_0')",
        "bool('yes')",
        "string(null)",
        "string([1])",
        "decimal('NaN')",
        "decimal('1e9999')",
        "decimal(null)",
        "timestamp('yesterday')",
        "timestamp('2026-01-01T00:00:00')",
        "timestamp(1e30)",
        "timestamp(true)",
        "timestamp('9999-12-31T23:00:00Z') + duration('2h')",
        "duration('P1M')",
        "duration('soon')",
        "duration(null)",
        "now.getHours('Mars/Olympus')",
        "'x'.getHours()",
        "'a'.startsWith(1)",
        "[1].contains(1)",
        "18446744073709551615 + 1",
        "9223372036854775807 * 9223372036854775807",
        "1e308 * 10",
        "state.rows.sku",
        "(1).map(x, x)",
        "{1: 2}",
        "[1].all(x, x)",
        "state.rows[0][0]",
        "matches('a', input.order_id + '(')",
        "decimal('1e6000') * decimal('1e6000')",
    ],
)
def test_what_has_no_result_is_expression_error(text: str) -> None:
    with pytest.raises(Unresolved) as caught:
        compile_expression(text).evaluate(ROOTS)
    assert caught.value.code in ("expression_error", "missing_value")
    if caught.value.code == "expression_error":
        assert caught.value.params["expression"] == text
        assert caught.value.params["why"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid_expression"),
        ("1 +", "invalid_expression"),
        ("state.", "invalid_expression"),
        ("stat.total > 1", "invalid_expression"),
        ("__import__('os')", "invalid_expression"),
        ("open('/etc/passwd')", "invalid_expression"),
        ("state.__class__.mro()", "invalid_expression"),
        ("size()", "invalid_expression"),
        ("size(1, 2)", "invalid_expression"),
        ("has(1)", "invalid_expression"),
        ("has(state)", "invalid_expression"),
        ("[1].map(1, 2)", "invalid_expression"),
        ("[1].map(x)", "invalid_expression"),
        ("[1].all(x, [2].all(x, true))", "invalid_expression"),
        ("b'bytes'", "invalid_expression"),
        (".state", "invalid_expression"),
        ("Money{amount: 1}", "invalid_expression"),
        ("'open", "invalid_expression"),
        ("'a\nb'", "invalid_expression"),
        ("'''open", "invalid_expression"),
        (r"'\q'", "invalid_expression"),
        (r"'\u0000'", "invalid_expression"),
        (r"'\ud800'", "invalid_expression"),
        (r"'\UFFFFFFFF'", "invalid_expression"),
        ("99999999999999999999", "invalid_expression"),
        ("1e999", "invalid_expression"),
        ("(" * 2000 + "1" + ")" * 2000, None),
        ("!" * 200 + "true", "invalid_expression"),
        ("[" * 200 + "]" * 200, "invalid_expression"),
        ("1 + " * 200 + "1", "invalid_expression"),
        ("x" * 5000, "invalid_expression"),
        ("matches('a', '(')", "invalid_pattern"),
        ("'a'.matches('(?=a)')", "invalid_pattern"),
        (5, "invalid_expression"),
        (None, "invalid_expression"),
        ("\0", "invalid_expression"),
        ("a ; b", "invalid_expression"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_is_no_expression_is_malformed(text: object, code: str | None) -> None:
    if code is None:
        assert compile_expression(text).evaluate(ROOTS) == 1
        return
    with pytest.raises(Malformed) as caught:
        compile_expression(text)
    assert caught.value.issue.code == code


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        '"' + "\\\\" * 2000,
        "'" + "\\x" * 1300,
        "'''" + "\\\r\n" * 1000,
        "''" * 1000 + "'",
        "1" * 4000 + ".",
        "a" + ".a" * 2000 + "'",
    ],
    ids=["escapes", "hexadecimal", "lines", "quotes", "digits", "members"],
)
def test_text_made_to_be_slow_to_read_is_refused_quickly(text: str) -> None:
    with pytest.raises(Malformed):
        compile_expression(text)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "state.l.all(a, state.l.all(b, state.l.all(c, a == b || true)))",
        "state.l.map(a, state.l.map(b, state.l))",
        "state.l.map(a, state.l)",
        "state.l.map(a, state.s)",
        "state.l.map(a, state.s + state.s).map(b, b + b)",
        "state.l.all(a, state.l == state.l)",
        "state.l.all(a, state.s == state.s + '')",
        "state.l.all(a, a in state.l)",
        "state.l.all(a, state.s.contains('y') || true)",
        "state.l.all(a, state.s.matches('(x+x+)+y') || true)",
        "state.l.filter(a, state.l.filter(b, b > 1) == [])",
        "[[[state.l, state.l], [state.l, state.l]]].map(a, state.l.map(b, a))",
    ],
)
def test_an_expression_made_to_be_slow_is_stopped(text: str) -> None:
    roots = {"state": {"l": list(range(2000)), "s": "x" * 200_000}}
    with pytest.raises(ExpressionFailed) as caught:
        compile_expression(text).evaluate(roots)
    assert caught.value.params["why"] == "it takes too much work"


def test_too_much_work_is_not_absorbed() -> None:
    roots = {"state": {"l": list(range(2000))}}
    with pytest.raises(ExpressionFailed):
        compile_expression("state.l.all(a, state.l.all(b, true)) || true").evaluate(roots)


def test_a_long_chain_is_not_a_deep_one() -> None:
    assert compile_expression(" || ".join(["state.total == 1"] * 150 + ["true"])).evaluate(ROOTS) is True


def test_a_deep_result_is_refused() -> None:
    deep: Any = 1
    for _ in range(62):
        deep = [deep]
    assert compile_expression("[item]").evaluate({"item": deep})
    with pytest.raises(ExpressionFailed):
        compile_expression("[[[item]]]").evaluate({"item": deep})


def test_it_says_what_it_reads() -> None:
    expression = compile_expression(
        "has(input.a) && input.a.b > state.rows[0].x && steps['p'].output.y && state.l.exists(s, s.z > item)"
    )
    assert {(reference.path, reference.has_default) for reference in expression.references()} == {
        (("input", "a"), True),
        (("input", "a", "b"), True),
        (("state", "rows", 0, "x"), False),
        (("steps", "p", "output", "y"), False),
        (("state", "l"), False),
        (("item",), False),
    }


def test_a_variable_hides_a_root() -> None:
    expression = compile_expression("[1, 2].map(item, item + 1)")
    assert expression.evaluate(ROOTS) == [2, 3]
    assert expression.references() == ()


def test_equal_expressions_are_equal_and_compiled_once() -> None:
    assert compile_expression("1 + 1") is compile_expression("1 + 1")


NUMBERS = st.integers(-(2**62), 2**62) | st.floats(-1e15, 1e15)


@given(NUMBERS, NUMBERS)
def test_numbers_add_and_compare_like_numbers(left: float, right: float) -> None:
    roots = {"state": {"l": left, "r": right}}
    assert compile_expression("state.l + state.r").evaluate(roots) == left + right
    assert compile_expression("state.l < state.r").evaluate(roots) is (left < right)
    assert compile_expression("state.l == state.r").evaluate(roots) is (left == right)


@given(st.integers(-(2**53), 2**53), st.integers(-(2**53), 2**53).filter(bool))
def test_division_is_exact_and_the_rest_has_the_sign_of_the_left(left: int, right: int) -> None:
    roots = {"state": {"l": left, "r": right}}
    quotient = compile_expression("state.l / state.r").evaluate(roots)
    assert quotient == float(Fraction(left, right))
    assert (type(quotient) is int) is (left % right == 0)
    assert compile_expression("state.l % state.r").evaluate(roots) == int(math.fmod(left, right))


@given(CLEAN)
def test_any_value_comes_back_unchanged(value: Any) -> None:
    assert compile_expression("state.v").evaluate({"state": {"v": value}}) == value
    assert compile_expression("state.v == state.v").evaluate({"state": {"v": value}}) is True


@given(st.text(max_size=30) | st.text("state.now[]{}()'\"\\+-*/%<>=!&|?:,0123456789. ", max_size=30))
@example("'\\'")
@example("'\\\\''")
@example("''''")
def test_any_text_is_malformed_unresolved_or_json(text: str) -> None:
    try:
        value = compile_expression(text).evaluate(ROOTS)
    except (Malformed, Unresolved):
        return
    assert hygiene.check_json(value) is None
