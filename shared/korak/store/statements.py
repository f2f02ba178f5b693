"""Named statements: each stands in a .sql file of its name, and is prepared once on every connection that uses it.

A file writes its set-based parameters as `rows(step: id bigint, status varchar)`, which becomes one `unnest` of arrays,
and its single ones as `:name::type`. So a column is named once, beside its type, and never counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from operator import attrgetter
from typing import Any

import orjson

ROWS = re.compile(r"rows\((\w+):([^)]*)\)")
VALUE = re.compile(r"(?<!:):(\w+)::(\w+(?:\[\])?)")


@dataclass(frozen=True, slots=True)
class Group:
    """One set of rows that a statement takes: the names of its columns, and how they are read off an object."""

    name: str
    columns: tuple[str, ...]
    documents: tuple[int, ...]
    read: Callable[[Any], tuple[Any, ...]]

    def spread(self, rows: Iterable[tuple[Any, ...]]) -> Sequence[Sequence[Any]]:
        """The rows as one array a column. Documents are encoded here: the driver takes a list for an array."""
        spread: list[Sequence[Any]] = list(zip(*rows, strict=True))
        if not spread:
            return [()] * len(self.columns)
        for place in self.documents:
            spread[place] = [None if value is None else encode(value) for value in spread[place]]
        return spread


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with its groups and single values, in the order of its parameters."""

    name: str
    text: str
    parts: tuple[Group | str, ...]
    groups: Mapping[str, Group]

    def bind(self, **given: Any) -> list[Any]:
        """The arguments: a group takes rows (tuples in the order of its columns), a single value takes itself."""
        arguments: list[Any] = []
        for part in self.parts:
            if isinstance(part, Group):
                arguments.extend(part.spread(given[part.name]))
            else:
                arguments.append(given[part])
        return arguments


@cache
def get_statement(name: str) -> Statement:
    """The statement of that name."""
    source = files("korak.store").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return compile_statement(name, source)


def compile_statement(name: str, source: str) -> Statement:
    """Number the parameters of a statement's source."""
    parts: list[Group | str] = []
    count = 0

    def spread(found: re.Match[str]) -> str:
        nonlocal count
        columns = [column.split(maxsplit=1) for column in found[2].split(",")]
        names = tuple(column[0] for column in columns)
        arrays = [f"${count + place}::{column[1].strip()}[]" for place, column in enumerate(columns, 1)]
        count += len(columns)
        documents = tuple(place for place, column in enumerate(columns) if column[1].strip() == "jsonb")
        parts.append(Group(found[1], names, documents, _reader(names)))
        return f"unnest({', '.join(arrays)}) as {found[1]} ({', '.join(names)})"

    def number(found: re.Match[str]) -> str:
        nonlocal count
        if found[1] in parts:
            return f"${places[found[1]]}::{found[2]}"
        count += 1
        parts.append(found[1])
        places[found[1]] = count
        return f"${count}::{found[2]}"

    places: dict[str, int] = {}
    text = VALUE.sub(number, ROWS.sub(spread, source))
    groups = {part.name: part for part in parts if isinstance(part, Group)}
    return Statement(name, text, tuple(parts), groups)


def encode(value: Any) -> bytes:
    """A document as Postgres takes it in binary; what is encoded already stays as it is."""
    return value if type(value) is bytes else b"\x01" + orjson.dumps(value)


def decode(data: bytes) -> Any:
    """A document as Postgres gives it in binary."""
    return orjson.loads(memoryview(data)[1:])


def _reader(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) == 1:
        single = attrgetter(names[0])
        return lambda row: (single(row),)
    return attrgetter(*names)
