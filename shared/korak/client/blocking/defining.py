"""Made from the async module of this name, never edited: `python -m tests.support.twins`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from korak.chains.builder import Chain
from korak.client.blocking.linking import Link
from korak.client.definitions import Definition, DefinitionHead, FrozenVersion, Validation, Version
from korak.graphs.builder import GraphBuilder


class Defining(Link):
    """Definitions and their versions; publishing them is `publish`."""

    def definitions(self, *, status: Sequence[str] | str | None = None) -> Iterator[DefinitionHead]:
        """The definitions by key, those of a status alone if one is given: draft, active or archived."""
        for found in self.iterate("/v1/definitions", None, {} if status is None else {"status": status}):
            yield found

    def definition(self, key: str) -> Definition:
        """A definition with the graph of its draft, else of its current version."""
        return cast("Definition", self.call("GET", _get_path(key)))

    def versions(self, key: str) -> Iterator[Version]:
        """The versions of a definition, the newest first."""
        for found in self.iterate(f"{_get_path(key)}/versions", None, {}):
            yield found

    def version(self, key: str, number: int) -> FrozenVersion:
        """A version with its graph."""
        return cast("FrozenVersion", self.call("GET", f"{_get_path(key)}/versions/{number}"))

    def validate(self, graph: Chain | GraphBuilder | Mapping[str, Any]) -> Validation:
        """Whether a graph could be published, and its warnings. Raises Invalid, with all that is wrong in `issues`."""
        document = graph if isinstance(graph, Mapping) else graph.document()
        return cast("Validation", self.post("/v1/definitions/validate", {"graph": document}))

    def activate(self, key: str, number: int, *, only_newer: bool = False) -> Definition:
        """Make a version the current one; `only_newer` refuses an older one: Conflict("version_older")."""
        body = {"only_newer": True} if only_newer else {}
        return cast("Definition", self.post(f"{_get_path(key)}/versions/{number}/activate", body))

    def archive(self, key: str) -> Definition:
        """Take no more starts of a definition; what runs goes on."""
        return cast("Definition", self.post(f"{_get_path(key)}/archive"))

    def restore(self, key: str) -> Definition:
        """Take starts of an archived definition again."""
        return cast("Definition", self.post(f"{_get_path(key)}/restore"))


def _get_path(key: str) -> str:
    return f"/v1/definitions/{quote(key, safe='')}"
