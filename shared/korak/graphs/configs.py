"""A node's config, compiled member by member: what runs, and what publish reads from it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TypeAlias

from korak.graphs import paths
from korak.graphs.conditions import compile_condition
from korak.graphs.forms import LiteralValue, ObjectValue, Value
from korak.graphs.paths import Malformed, Reference
from korak.graphs.references import find_conditions, set_aside_conditions
from korak.graphs.values import compile_value
from korak.model import Json, JsonObject

Read: TypeAlias = Reference | Malformed
"""A path that is read, or what keeps the value that reads it from being compiled."""


def compile_config(schema: JsonObject, raw: JsonObject, secret_members: Collection[str]) -> Value:
    """The value that gives a handler's input; conditions stay in it as written. Raises Malformed.

    A config is never a value form itself, whatever its members are called.
    """
    written = set_aside_conditions(schema, raw)
    members = {name: compile_value(member, secrets=name in secret_members) for name, member in written.items()}
    if all(value.is_literal for value in members.values()):
        return LiteralValue({name: value.resolve({}) for name, value in members.items()})
    return ObjectValue(tuple(members.items()))


def list_reads(schema: JsonObject, raw: JsonObject, secret_members: Collection[str]) -> Iterator[Read]:
    """All that a config reads in its values and conditions, with pointers into it, and what can't be compiled."""
    for place in find_conditions(schema, raw):
        try:
            references = compile_condition(place.value).references()
        except Malformed as error:
            yield error.at(place.pointer)
        else:
            yield from (Reference(found.path, found.has_default, place.pointer + found.pointer) for found in references)
    for name, member in set_aside_conditions(schema, raw).items():
        yield from read_value(member, paths.pointer([name]), secrets=name in secret_members)


def read_value(raw: Json, pointer: str, *, secrets: bool = False) -> Iterator[Read]:
    """All that one value reads, or what keeps it from being compiled."""
    try:
        references = compile_value(raw, secrets=secrets).references()
    except Malformed as error:
        yield error.at(pointer)
    else:
        yield from (Reference(found.path, found.has_default, pointer + found.pointer) for found in references)
