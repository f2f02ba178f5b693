"""Which waits an event fits, told from its payload alone."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.matching import list_digests
from korak.core.waiting import get_digest


@pytest.mark.parametrize(
    ("payload", "shape", "match"),
    [
        ({"a": 1}, [], {}),
        ({"a": 1}, ["a"], {"a": 1}),
        ({"a": 1.0}, ["a"], {"a": 1}),
        ({"a": {"b": [10, 20]}}, ["a.b[1]"], {"a.b[1]": 20}),
        ({"a": None}, ["a"], {"a": None}),
        ({"a": 1, "b": 2}, ["b", "a"], {"a": 1, "b": 2}),
        ({"a": {"x": 1, "y": 2}}, ["a"], {"a": {"y": 2, "x": 1}}),
    ],
)
def test_an_event_has_the_digest_of_the_waits_that_it_fits(payload: Any, shape: list[str], match: Any) -> None:
    assert list(list_digests("team:1", "paid", payload, [shape])) == [get_digest("team:1", "paid", match)]


@pytest.mark.parametrize("shape", [["b"], ["a", "b"], ["a.b"], ["a[0]"], ["a..b"], [""]])
def test_a_shape_that_the_payload_lacks_a_path_of_fits_none(shape: list[str]) -> None:
    assert list(list_digests("team:1", "paid", {"a": 1}, [shape])) == []


def test_owner_name_and_type_of_a_value_count() -> None:
    def digest(owner: str, name: str, payload: Any) -> list[str]:
        return list(list_digests(owner, name, payload, [["a"]]))

    one = digest("team:1", "paid", {"a": 1})
    assert one != digest("team:2", "paid", {"a": 1})
    assert one != digest("team:1", "unpaid", {"a": 1})
    assert one != digest("team:1", "paid", {"a": "1"})
    assert one != digest("team:1", "paid", {"a": True})
