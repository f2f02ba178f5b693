"""A node's config, compiled member by member: what runs, and what publish reads from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from korak.graphs import paths
from korak.graphs.conditions import compile_condition
from korak.graphs.paths import Malformed, Reference, Roots
from korak.graphs.references import find_conditions, set_aside_conditions
from korak.graphs.values import Value, compile_value
from korak.model import Json, JsonObject

Read: TypeAlias = Reference | Malformed
"""A path that is read, or what keeps the value that reads it from being compiled."""


@dataclass(frozen=True, slots=True)
class Config:
    """The members of a config as values: a config is never a value form itself, whatever its members are called."""

    members: Mapping[str, Value]
    is_literal: bool

    def resolve(self, roots: Roots) -> JsonObject:
        """The handler's input; secrets stay references. Raises Unresolved."""
        return {name: value.resolve(roots) for name, value in self.members.items()}

    def reveal(self, roots: Roots, secrets: Callable[[str], str]) -> JsonObject:
        """The input with its secrets in it. Raises Unresolved."""
        return {name: value.reveal(roots, secrets) for name, value in self.members.items()}

    def references(self) -> tuple[Reference, ...]:
        """All that the members read, with pointers into the config."""
        return tuple(_at(reference, name) for name, value in self.members.items() for reference in value.references())


def compile_config(schema: JsonObject, raw: JsonObject, secret_members: Collection[str]) -> Config:
    """The config that runs; conditions stay in it as written. Raises Malformed."""
    written = set_aside_conditions(schema, raw)
    members = {name: compile_value(member, secrets=name in secret_members) for name, member in written.items()}
    return Config(members, all(value.is_literal for value in members.values()))


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


def _at(reference: Reference, member: str) -> Reference:
    return Reference(reference.path, reference.has_default, paths.pointer([member]) + reference.pointer)
