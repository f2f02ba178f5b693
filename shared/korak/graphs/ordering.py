"""Equality and order of JSON values: numbers by value, text by code point, nothing across types."""

from __future__ import annotations

from typing import Any

from korak.graphs import instants
from korak.model import Json


def equal(left: Any, right: Any) -> bool:
    """JSON equality: 1 equals 1.0, true doesn't equal 1, objects without regard to the order of members."""
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(equal(left[key], right[key]) for key in left)
        )
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return bool(left == right)


def is_number(value: object) -> bool:
    """Whether `value` is a JSON number: a bool is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def compare(left: Json, right: Json) -> int | None:
    """Below 0, 0 or above 0 for two numbers or two strings; None where the two have no order.

    Two strings that are both date-times with an offset compare as instants.
    """
    if is_number(left) and is_number(right):
        return _sign(left, right)
    if not (isinstance(left, str) and isinstance(right, str)):
        return None
    first = instants.parse(left)
    second = instants.parse(right) if first else None
    return _sign(left, right) if second is None else _sign(first, second)


def _sign(left: Any, right: Any) -> int:
    return int(left > right) - int(left < right)
