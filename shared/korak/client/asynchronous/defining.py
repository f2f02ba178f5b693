"""What a client does with definitions. The blocking one is made from this module: `python -m tests.support.twins`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from korak.chains.builder import Chain
from korak.client.asynchronous.linking import AsyncLink
from korak.client.definitions import Definition, DefinitionHead, FrozenVersion, Validation, Version
from korak.graphs.builder import GraphBuilder


class AsyncDefining(AsyncLink):
    """Definitions and their versions; publishing them is `publish`."""

    async def definitions(self, *, status: Sequence[str] | str | None = None) -> AsyncIterator[DefinitionHead]:
        """The definitions by key, those of a status alone if one is given: draft, active or archived."""
        async for found in self.iterate("/v1/definitions", None, {} if status is None else {"status": status}):
            yield found

    async def definition(self, key: str) -> Definition:
        """A definition with the graph of its draft, else of its current version."""
        return cast("Definition", await self.call("GET", _get_path(key)))

    async def versions(self, key: str) -> AsyncIterator[Version]:
        """The versions of a definition, the newest first."""
        async for found in self.iterate(f"{_get_path(key)}/versions", None, {}):
            yield found

    async def version(self, key: str, number: int) -> FrozenVersion:
        """A version with its graph."""
        return cast("FrozenVersion", await self.call("GET", f"{_get_path(key)}/versions/{number}"))

    async def validate(self, graph: Chain | GraphBuilder | Mapping[str, Any]) -> Validation:
        """Whether a graph could be published, and its warnings. Raises Invalid, with all that is wrong in `issues`."""
        document = graph if isinstance(graph, Mapping) else graph.document()
        return cast("Validation", await self.post("/v1/definitions/validate", {"graph": document}))

    async def activate(self, key: str, number: int, *, only_newer: bool = False) -> Definition:
        """Make a version the current one; `only_newer` refuses an older one: Conflict("version_older")."""
        body = {"only_newer": True} if only_newer else {}
        return cast("Definition", await self.post(f"{_get_path(key)}/versions/{number}/activate", body))

    async def archive(self, key: str) -> Definition:
        """Take no more starts of a definition; what runs goes on."""
        return cast("Definition", await self.post(f"{_get_path(key)}/archive"))

    async def restore(self, key: str) -> Definition:
        """Take starts of an archived definition again."""
        return cast("Definition", await self.post(f"{_get_path(key)}/restore"))


def _get_path(key: str) -> str:
    return f"/v1/definitions/{quote(key, safe='')}"
