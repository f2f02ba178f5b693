"""The calls, by what they do. The blocking ones are made from this module: `python -m tests.support.twins`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, cast
from urllib.parse import quote

from korak.chains.builder import Chain
from korak.chains.dispatching import DispatchOptions
from korak.client import answering
from korak.client.addresses import get_path
from korak.client.answering import Verb
from korak.client.asynchronous.commanding import AsyncCommanding
from korak.client.asynchronous.defining import AsyncDefining
from korak.client.asynchronous.reading import AsyncReading
from korak.client.definitions import Version
from korak.client.shapes import Delivery, Emission, Started, StartOptions
from korak.errors import NotFound
from korak.graphs.builder import GraphBuilder
from korak.model import VersionStatus

UNPUBLISHED = frozenset({"definition_not_found", "version_not_found"})
"""What a start of a version hears that nobody has published yet."""


class AsyncKorak(AsyncReading, AsyncCommanding, AsyncDefining):
    """Korak's API. An async context manager; or call `close()` once you are done.

    Without `url` or `token` they are those of KORAK_CLIENT__URL and KORAK_CLIENT__TOKEN, else those that `korak dev`
    left in `.korak/`; neither: SettingsError. `owner` (type:id) is who is acted for with a token of the application.
    `timeout` is how many seconds an answer may take beyond what a call asks to wait.

    Where the connection fails or the server can't answer now, a call is repeated `retries` times, with growing pauses.
    Whatever changes something goes out with an Idempotency-Key, the same for every repeat, so it happens once. What is
    refused is raised as the Problem of `korak.errors` that it is (NotFound, Conflict, Invalid ...), with `code` and
    `issues`; Unreachable where nobody answers. An instance is named by its id, or by
    `{definition}~{id}`, with the id that it was started with, for the newest of that id.
    """

    async def start(
        self, definition: str, input: Mapping[str, Any] | None = None, **options: Unpack[StartOptions]
    ) -> Started:
        """Start an instance of a definition. Under an idempotency key that started one before, that one is answered."""
        body = {name: value for name, value in options.items() if value is not None}
        wait, key = options.get("wait", 0.0), options.get("idempotency_key")
        body = {name: value for name, value in body.items() if name not in ("wait", "idempotency_key")}
        path = f"/v1/definitions/{quote(definition)}/start"
        started = cast("Started", await self.post(path, {"input": input or {}, **body}, key=key, wait=wait))
        if key is not None or "id" in body or "created" not in started:
            return started
        # A key of this call's own has started nothing before: a repeat found what its first sending made.
        return {**started, "created": True}

    async def dispatch(
        self, chain: Chain, payload: Mapping[str, Any] | None = None, **options: Unpack[DispatchOptions]
    ) -> str:
        """Start a run of a chain as it stands here, and tell its id.

        The run is pinned to the version with the chain's checksum, whichever is current; where there is none it is
        published, without becoming the current one. Raises Invalid for a payload that can't be the first state.
        """
        given = chain.prepare(payload, options)
        try:
            started = await self.start(chain.key, payload, **given, version=chain.checksum)
        except NotFound as error:
            if error.code not in UNPUBLISHED:
                raise
            await self.publish(chain, current=False)
            started = await self.start(chain.key, payload, **given, version=chain.checksum)
        return started["instance"]["id"]

    async def publish(
        self, graph: Chain | GraphBuilder | Mapping[str, Any], *, current: bool = True, only_newer: bool = False
    ) -> Version:
        """The version that a graph is, which becomes the current one; published before, it is found by its checksum.

        `only_newer` refuses one that is older than the current one: Conflict("version_older"). The chains that a chain
        starts are published before it, and don't become current by that. Its `warnings` are what is odd about it.
        """
        for child in graph.children if isinstance(graph, Chain) else ():
            await self._publish(child.document(), current=False, only_newer=False)
        document = graph if isinstance(graph, Mapping) else graph.document()
        return await self._publish(document, current=current, only_newer=only_newer)

    async def signal(
        self,
        instance: str,
        name: str,
        payload: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        execution: str | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> Delivery:
        """Send a signal to an instance. `id` is its own: a signal that is sent twice with one counts once.

        With an `execution` (that of `waiting_for`) it is for that visit of a node alone: Conflict("wait_over") once
        that waits for it no more. To `{definition}~{id}`, with `start`, it starts a run first where none is open.
        """
        body = {"name": name, "payload": payload or {}, "id": id, "execution": execution, "start": start}
        given = {member: value for member, value in body.items() if value is not None}
        return cast("Delivery", await self.post(get_path(instance, "signal"), given))

    async def emit(
        self, name: str, payload: Mapping[str, Any] | None = None, *, id: str | None = None, ttl: Any = None
    ) -> Emission:
        """Emit an event to whoever waits for it. It is kept for `ttl` (seconds, ISO 8601) for waits that come later."""
        body = {"name": name, "payload": payload or {}, "id": id, "ttl": ttl}
        given = {member: value for member, value in body.items() if value is not None}
        return cast("Emission", await self.post("/v1/emit", given))

    async def approve(
        self,
        instance: str,
        data: Mapping[str, Any] | None = None,
        *,
        signal: str | None = None,
        node: str | None = None,
    ) -> Delivery:
        """Approve what an instance waits to have approved or decided; `signal` or `node` pick one of several.

        Raises Conflict("not_awaited") or Conflict("several_awaited"), and Conflict("wait_over") where somebody else was
        quicker: a later question is never answered by it.
        """
        return await self._answer(instance, "approve", data, (signal, node))

    async def reject(
        self,
        instance: str,
        data: Mapping[str, Any] | None = None,
        *,
        signal: str | None = None,
        node: str | None = None,
    ) -> Delivery:
        """Reject what an instance waits to have decided; `data` may say why."""
        return await self._answer(instance, "reject", data, (signal, node))

    async def submit_input(
        self, instance: str, data: Mapping[str, Any], *, signal: str | None = None, node: str | None = None
    ) -> Delivery:
        """Bring the input that an instance waits for."""
        return await self._answer(instance, "input", data, (signal, node))

    async def _publish(self, document: Mapping[str, Any], *, current: bool, only_newer: bool) -> Version:
        path = f"/v1/definitions/{quote(str(document.get('key')))}/versions"
        version = cast("Version", await self.post(path, {"graph": document}))
        if not current or version["status"] == VersionStatus.PUBLISHED:
            return version
        await self.activate(str(document.get("key")), version["number"], only_newer=only_newer)
        return {**version, "status": VersionStatus.PUBLISHED}

    async def _answer(
        self, instance: str, verb: Verb, data: Mapping[str, Any] | None, picked: tuple[str | None, str | None]
    ) -> Delivery:
        signal, node = picked
        found = await self.get(instance)
        asked = answering.pick(found, verb, signal=signal, node=node)
        return await self.signal(found["id"], asked.signal, data, execution=asked.execution)
