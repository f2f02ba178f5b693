"""What counts as JSON (DESIGN 10, row JSON)."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json
import math
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.errors import Invalid, TooLarge
from korak.graphs import hygiene

CLEAN_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(hygiene.SMALLEST, hygiene.LARGEST)
    | st.floats(allow_nan=False, allow_infinity=False)
    | CLEAN_TEXT
)
CLEAN = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(CLEAN_TEXT, inner, max_size=5), max_leaves=20
)


class Colour(enum.StrEnum):
    RED = "red"


class Plain(enum.Enum):
    A = "a"


class Text(str):
    __slots__ = ()


@dataclasses.dataclass
class Point:
    x: int = 1


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


DIRTY: list[tuple[Any, str]] = [
    ({"a": "x\0y"}, "/a"),
    ({"a\0": 1}, "/a\\u0000"),
    ({"a": ["\ud800"]}, "/a/0"),
    ({"\udfff": 1}, "/\\udfff"),
    ({"a": math.nan}, "/a"),
    ({"a": [1, math.inf]}, "/a/1"),
    (-math.inf, ""),
    ({"a": 2**64}, "/a"),
    ({"a": -(2**63) - 1}, "/a"),
    ({1: 2}, "/1"),
    ({"a": {None: 2}}, "/a/None"),
    ({"a": (1, 2)}, "/a"),
    ({"a/b~c": {1, 2}}, "/a~1b~0c"),
    ({"a": uuid.UUID(int=1)}, "/a"),
    ({"a": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}, "/a"),
    ({"a": Point()}, "/a"),
    ({"a": b"x"}, "/a"),
    ({"a": Text("x")}, "/a"),
    ({Text("x"): 1}, "/x"),
    ({"a": Plain.A}, "/a"),
    (..., ""),
]


@pytest.mark.parametrize(("value", "pointer"), DIRTY, ids=lambda value: ascii(value)[:30])
def test_refuses_with_the_place(value: Any, pointer: str) -> None:
    issue = hygiene.check_json(value, code="invalid_output")
    assert issue is not None
    assert (issue.code, issue.pointer) == ("invalid_output", pointer)
    assert issue.params["pointer"] == pointer
    issue.message.encode()


@given(CLEAN)
def test_lets_all_json_through(value: Any) -> None:
    assert hygiene.check_json(value) is None
    assert hygiene.loads(hygiene.dumps(value)) == value
    assert hygiene.size(value) == len(hygiene.dumps(value))


@given(CLEAN, st.sampled_from(["\0", "\ud800", math.nan, 2**64, (1,), b"", object()]))
def test_one_bad_member_anywhere_is_found(value: Any, bad: Any) -> None:
    assert hygiene.check_json({"a": value, "b": [value, {"c": bad}]}) is not None


def test_an_enumeration_of_strings_counts_as_its_value() -> None:
    assert hygiene.check_json({"colour": Colour.RED}) is None
    assert hygiene.check_json([{}] * 70 + [Colour.RED]) is None


def test_text_that_looks_like_an_escape_is_clean() -> None:
    assert hygiene.check_json({"a": "\\u0000"}) is None


def test_many_siblings_are_not_depth() -> None:
    assert hygiene.check_json([[]] * 1000) is None


@pytest.mark.parametrize("depth", [65, 300, 100_000])
def test_too_deep_is_an_issue_and_no_crash(depth: int) -> None:
    issue = hygiene.check_json(nested(depth))
    assert issue is not None
    assert "64" in str(issue.params["why"])


def test_the_depth_may_be_chosen() -> None:
    assert hygiene.check_json(nested(64)) is None
    assert hygiene.check_json(nested(3), max_depth=3) is None
    assert hygiene.check_json(nested(4), max_depth=3) is not None


def test_a_value_that_holds_itself_is_too_deep() -> None:
    value: list[Any] = []
    value.append(value)
    assert hygiene.check_json(value) is not None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b"1e999",
        b'"\xff"',
        b'"\\ud800"',
        b'{"a": "\\u0000"}',
        b'"\0"',
        b"18446744073709551616",
        b"[-9223372036854775809]",
        b"9" * 5000,
        b'{"a":' * 65 + b"1" + b"}" * 65,
        b"[" * 1_000_000,
        b"[1] x",
        b"{'a': 1}",
    ],
    ids=lambda raw: ascii(raw)[:20],
)
def test_reading_refuses(raw: bytes) -> None:
    with pytest.raises(Invalid) as caught:
        hygiene.loads(raw)
    assert caught.value.code == "invalid_json"
    assert caught.value.params["why"]
    assert caught.value.issues


def test_reading_is_bounded() -> None:
    assert hygiene.loads(b'"abc"', max_bytes=5) == "abc"
    with pytest.raises(TooLarge):
        hygiene.loads(b'"abc"', max_bytes=4)


@pytest.mark.parametrize("number", [hygiene.SMALLEST, hygiene.LARGEST, 2**63, 10**18])
def test_reading_keeps_every_digit(number: int) -> None:
    assert hygiene.loads(b'{"a": %d}' % number) == {"a": number}


def test_long_digits_in_a_string_or_a_fraction_are_fine() -> None:
    assert hygiene.loads(b'["12345678901234567890123", 0.1234567890123456789012]') == [
        "12345678901234567890123",
        0.1234567890123456789012,
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"a":[true,null,"x"],"b":1}'),
        (
            {"€": 1, "\r": 2, "ﬀ": 3, "😀": 4, "1": 5, "ö": 6, "\x80": 7},
            '{"\\r":2,"1":5,"\x80":7,"ö":6,"€":1,"😀":4,"ﬀ":3}',
        ),
        ([333333333.33333329, 1e30, 4.50, 2e-3, 1e-27], "[333333333.3333333,1e+30,4.5,0.002,1e-27]"),
        (
            [1e-6, 1e-7, 1.5e-5, 1e20, 1e21, 2.0, -0.0, 123e-10],
            "[0.000001,1e-7,0.000015,100000000000000000000,1e+21,2,0,1.23e-8]",
        ),
        (2**64 - 1, "18446744073709551615"),
    ],
    ids=["members", "utf16", "numbers", "exponents", "long"],
)
def test_canonical_form_is_rfc_8785(value: Any, text: str) -> None:
    assert hygiene.canonical(value).decode() == text


@given(CLEAN)
def test_canonical_form_reads_as_the_same_value(value: Any) -> None:
    assert json.loads(hygiene.canonical(value)) == value
