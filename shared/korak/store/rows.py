"""Rows of tables as the core's dataclasses, by the names of their columns."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum
from functools import cache
from typing import Any, TypeVar, cast, get_args, get_type_hints

Row = TypeVar("Row")


def read(row: type[Row], record: Mapping[str, Any]) -> Row:
    """One row, its statuses and kinds as the vocabulary's own."""
    values = dict(record)
    for name, enum in _get_enums(cast("Hashable", row)):
        if values[name] is not None:
            values[name] = enum(values[name])
    made = object.__new__(row)
    made.__dict__ = values
    return made


@cache
def _get_enums(row: Hashable) -> tuple[tuple[str, type[Enum]], ...]:
    return tuple(
        (name, option)
        for name, hint in get_type_hints(cast("type[Any]", row)).items()
        for option in (hint, *get_args(hint))
        if isinstance(option, type) and issubclass(option, Enum)
    )
