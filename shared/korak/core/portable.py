"""Rows as plain JSON and back, by the names and types of their columns: what an export holds and an import reads."""

from __future__ import annotations

import types
from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from korak.errors import Invalid, Issue
from korak.graphs.paths import pointer
from korak.model import Json, JsonObject

Row = TypeVar("Row")

LARGEST = 2**31 - 1
"""Of the numbers of a row."""

SHORT = ("attempt", "call", "depth")
SHORT_LARGEST = 2**15 - 1
"""Of these numbers."""

OBJECT, LIST, ANY = "an object", "a list of texts", "any JSON"
Place = tuple[str | int, ...]


def refuse(place: Place, detail: str) -> Invalid:
    """What is wrong at a place of an export."""
    at = pointer(list(place))
    return Invalid("invalid_export", issues=[Issue("invalid_export", at, {"detail": detail})], detail=detail)


def write_row(row: Any, names: tuple[str, ...]) -> JsonObject:
    """These columns of a row; times as ISO 8601."""
    return {name: write(getattr(row, name)) for name in names}


def write(value: Any) -> Json:
    """One column's value."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Enum):
        plain: Json = value.value
        return plain
    stored: Json = value
    return stored


def read_row(row: type[Row], raw: Json, names: tuple[str, ...], place: Place) -> dict[str, Any]:
    """The columns of a row, checked. Raises Invalid("invalid_export") with the pointer of what is wrong."""
    if not isinstance(raw, dict):
        raise refuse(place, "it is no object")
    return dict(_read_columns(row, raw, names, place))


def _read_columns(
    row: type[Any], raw: Mapping[str, Json], names: tuple[str, ...], place: Place
) -> Iterator[tuple[str, Any]]:
    kinds = _get_kinds(cast("Hashable", row))
    for name in names:
        kind, may_lack = kinds[name]
        value = raw.get(name)
        if value is None and (may_lack or name in raw):
            if not may_lack:
                raise refuse((*place, name), "it is null")
            yield name, None
        elif name not in raw:
            raise refuse((*place, name), "it is missing")
        else:
            yield name, _read(kind, value, (*place, name))


def _read(kind: Any, value: Json, place: Place) -> Any:
    if kind is ANY:
        return value
    if kind is LIST:
        if not isinstance(value, list) or not all(isinstance(member, str) for member in value):
            raise refuse(place, f"it is not {LIST}")
        return value
    if kind is OBJECT:
        return _check(value, dict, place, OBJECT)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _convert(kind, value, place, f"it is none of {', '.join(str(member.value) for member in kind)}")
    if kind is datetime:
        return read_time(value, place)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _check_range(_check(value, kind, place, f"of type {kind.__name__}"), place)


def _check_range(value: Any, place: Place) -> Any:
    most = SHORT_LARGEST if place[-1] in SHORT else LARGEST
    if isinstance(value, int) and not 0 <= value <= most:
        raise refuse(place, f"it is not between 0 and {most}")
    return value


def read_time(value: Json, place: Place) -> datetime:
    """A time with its zone."""
    time: datetime = _convert(datetime.fromisoformat, value, place, "it is no time as ISO 8601")
    if time.tzinfo is None:
        raise refuse(place, "the time lacks its zone")
    return move_time(time, timedelta(), place)


def move_time(time: datetime, by: timedelta, place: Place) -> datetime:
    """The time so much later, in UTC. Raises Invalid where there is no such time."""
    try:
        return time.astimezone(UTC) + by
    except OverflowError:
        raise refuse(place, "it is out of the range of times") from None


def _convert(make: Callable[[Any], Any], value: Json, place: Place, detail: str) -> Any:
    try:
        return make(value)
    except (TypeError, ValueError):
        raise refuse(place, detail) from None


def _check(value: Json, kind: type, place: Place, told: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise refuse(place, f"it is not {told}")
    return value


@cache
def _get_kinds(row: Hashable) -> Mapping[str, tuple[Any, bool]]:
    """The kind of each column, and whether it may be null."""
    return {name: _get_kind(hint) for name, hint in get_type_hints(row).items()}


def _get_kind(hint: Any) -> tuple[Any, bool]:
    options = [hint]
    if get_origin(hint) in (Union, types.UnionType):
        options = [option for option in get_args(hint) if option is not type(None)]
    may_lack = type(None) in get_args(hint)
    if len(options) > 1:
        return ANY, True
    origin = get_origin(options[0])
    if origin is dict:
        return OBJECT, may_lack
    return (LIST if origin is list else options[0]), may_lack
