"""Parameters of a query, and cursors."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from korak.errors import Invalid
from korak_api.parameters import MAX_VALUES, PAGE, Kind, Page, Parameter, make_page, read_page, read_query


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("text", "a b", "a b"),
        ("count", "17", 17),
        ("seconds", "1.5", 1.5),
        ("flag", "true", True),
        ("flag", "0", False),
        ("time", "2030-01-01T12:00:00Z", datetime(2030, 1, 1, 12, tzinfo=UTC)),
        ("time", "2030-01-01T12:00:00 02:00", datetime(2030, 1, 1, 10, tzinfo=UTC)),
        ("time", "2030-01-01", datetime(2030, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_parameter_is_read(kind: Kind, text: str, value: Any) -> None:
    assert Parameter("x", "", kind).read([text]) == value


@given(st.sampled_from(["count", "seconds", "flag", "time"]), st.text(max_size=30))
def test_whatever_is_given_is_read_or_refused(kind: Kind, text: str) -> None:
    with suppress(Invalid):
        Parameter("x", "", kind).read([text])


def test_a_parameter_stands_once_unless_it_is_a_list() -> None:
    assert Parameter("x", "", is_list=True).read(["a", "b"]) == ["a", "b"]
    with pytest.raises(Invalid):
        Parameter("x", "").read(["a", "b"])
    with pytest.raises(Invalid):
        Parameter("x", "", choices=("a",), is_list=True).read(["a", "b"])


def test_a_list_has_its_bound() -> None:
    parameter = Parameter("label", "", is_list=True)
    assert len(parameter.read(["a"] * MAX_VALUES)) == MAX_VALUES
    with pytest.raises(Invalid) as refused:
        parameter.read(["a"] * (MAX_VALUES + 1))
    assert refused.value.code == "invalid_parameter"


def test_an_unknown_parameter_is_refused_by_name() -> None:
    with pytest.raises(Invalid, match="more is no parameter") as refused:
        read_query([Parameter("x", "")], {"x": ["1"], "more": ["2"]})
    assert [issue.pointer for issue in refused.value.issues] == ["/more"]


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"status": ["nope"]}, "/status"),
        ({"status": ["failed", "failed"]}, "/status"),
        ({"limit": ["0"]}, "/limit"),
        ({"limit": ["many"]}, "/limit"),
        ({"cursor": ["none"]}, "/cursor"),
        ({"a/b": ["x"]}, "/a~1b"),
    ],
)
def test_what_is_wrong_is_pointed_to_by_its_name(given: dict[str, list[str]], pointer: str) -> None:
    declared = [Parameter("status", "", choices=("failed",)), *PAGE]
    with pytest.raises(Invalid) as refused:
        read_page(read_query(declared, given), (int,), most=10)
    assert [issue.pointer for issue in refused.value.issues] == [pointer]


@given(st.integers(0, 2**31 - 1), st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8"), max_size=50))
def test_a_cursor_leads_to_where_its_page_ended(number: int, name: str) -> None:
    made = make_page(Page(1), [1, 2], ["a", "b"], lambda _: (number, name))

    assert made["items"] == ["a"]
    assert read_page({"cursor": made["next"]}, (int, str), most=10).after == [number, name]


def test_the_last_page_leads_nowhere() -> None:
    assert make_page(Page(2), [1, 2], ["a", "b"], lambda row: (row,)) == {"items": ["a", "b"], "next": None}


@given(st.text(max_size=40))
def test_whatever_a_cursor_is_it_is_read_or_refused(cursor: str) -> None:
    with suppress(Invalid):
        assert 0 <= read_page({"cursor": cursor}, (int,), most=10).after[0] < 2**31
