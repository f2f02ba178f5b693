"""What the API answers of definitions, as types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict


class VersionFacts(TypedDict):
    """What is told of every version. `status`: published for the current one, else superseded."""

    definition: str
    number: int
    status: str
    label: str | None
    checksum: str
    published_at: str
    publisher: str | None


class Version(VersionFacts):
    """A version of a definition. `warnings`: what is odd about its graph, with code, message and pointer.

    Only a publish answers them.
    """

    warnings: NotRequired[Sequence[dict[str, Any]]]


class FrozenVersion(VersionFacts):
    """A version with its graph."""

    graph: dict[str, Any]


class DefinitionHead(TypedDict):
    """A definition as lists have it. `status`: draft, active or archived; `version` is the current one's number."""

    key: str
    name: str
    description: str | None
    owner: str | None
    status: str
    version: int | None
    checksum: str
    published_checksum: str | None
    has_draft: bool
    created_at: str
    updated_at: str


class Definition(DefinitionHead):
    """A definition with its graph, and the JSON Schema of what a start must bring (None: any object)."""

    graph: dict[str, Any]
    input_schema: dict[str, Any] | None
    warnings: NotRequired[Sequence[dict[str, Any]]]


class Validation(TypedDict):
    """That a graph could be published: `errors` is empty, `warnings` have code, message and pointer."""

    valid: bool
    errors: Sequence[dict[str, Any]]
    warnings: Sequence[dict[str, Any]]
