"""The calls, by what they do. The blocking ones are made from this module: `python -m tests.support.twins`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Unpack, cast
from urllib.parse import quote

from korak.chains.builder import Chain
from korak.chains.dispatching import DispatchOptions
from korak.client import answering
from korak.client.answering import Verb
from korak.client.asynchronous.linking import AsyncLink
from korak.client.shapes import (
    Delivery,
    Emission,
    Event,
    Instance,
    ListOptions,
    Started,
    StartOptions,
    Step,
    Version,
)
from korak.errors import NotFound
from korak.graphs.builder import GraphBuilder
from korak.model import ENDED, VersionStatus

LOOK = 20.0
"""Seconds of one request that waits for an end."""

UNPUBLISHED = frozenset({"definition_not_found", "version_not_found"})
"""What a start of a version hears that nobody has published yet."""


class AsyncKorak(AsyncLink):
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
        starts are published before it, and don't become current by that.
        """
        for child in graph.children if isinstance(graph, Chain) else ():
            await self._publish(child.document(), current=False, only_newer=False)
        document = graph if isinstance(graph, Mapping) else graph.document()
        return await self._publish(document, current=current, only_newer=only_newer)

    async def get(self, instance: str, *, wait: float = 0.0) -> Instance:
        """An instance. `wait`: answer once it has ended, after so many seconds (60 at most) in any case."""
        return cast("Instance", await self.call("GET", _get_path(instance), wait=wait))

    async def wait(self, instance: str, timeout: float | None = None) -> Instance:
        """The instance once it has ended, however it did. Raises TimeoutError after `timeout` seconds."""
        deadline = None if timeout is None else self._clock.monotonic() + timeout
        while True:
            left = LOOK if deadline is None else deadline - self._clock.monotonic()
            found = await self.get(instance, wait=max(0.0, min(LOOK, left)))
            if found["status"] in ENDED:
                return found
            if deadline is not None and self._clock.monotonic() >= deadline:
                raise TimeoutError(f"{instance} is {found['status']} after {timeout:g} s")

    async def list(self, limit: int | None = None, **options: Unpack[ListOptions]) -> AsyncIterator[Instance]:
        """Instances, the newest first; all of them, or `limit` at most."""
        async for found in self.iterate("/v1/instances", limit, dict(options)):
            yield found

    async def steps(self, instance: str) -> AsyncIterator[Step]:
        """The attempts of an instance, in the order in which they came to be."""
        async for found in self.iterate(_get_path(instance, "steps"), None, {}):
            yield found

    async def events(self, instance: str, *, after: int = 0) -> AsyncIterator[Event]:
        """The history of an instance, after the event of that number."""
        async for found in self.iterate(_get_path(instance, "events"), None, {"after": after}):
            yield found

    async def follow(self, instance: str, *, after: int = 0) -> AsyncIterator[tuple[str, Any]]:
        """What happens in an instance, until it has ended: pairs of a name and what goes with it.

        `history` is a line of it (after the one of that number), `chunk` what a step streams, `end` the last.
        """
        async for sent in self.stream(_get_path(instance, "stream"), after):
            yield sent.name, sent.data

    async def signal(
        self,
        instance: str,
        name: str,
        payload: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        start: Mapping[str, Any] | None = None,
    ) -> Delivery:
        """Send a signal to an instance. `id` is its own: a signal that is sent twice with one counts once.

        To `{definition}~{id}`, with `start`, it starts a run first where none of that id is open.
        """
        extras = {member: value for member, value in (("id", id), ("start", start)) if value is not None}
        body = {"name": name, "payload": payload or {}, **extras}
        return cast("Delivery", await self.post(_get_path(instance, "signal"), body))

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

        Raises Conflict("not_awaited") or Conflict("several_awaited").
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

    async def cancel(self, instance: str, reason: str | None = None) -> Instance:
        """End an instance; steps that had begun clean up."""
        body = {} if reason is None else {"reason": reason}
        return cast("Instance", await self.post(_get_path(instance, "cancel"), body))

    async def pause(self, instance: str) -> Instance:
        """Let an instance begin no further step."""
        return cast("Instance", await self.post(_get_path(instance, "pause")))

    async def resume(self, instance: str) -> Instance:
        """Let a paused instance go on."""
        return cast("Instance", await self.post(_get_path(instance, "resume")))

    async def retry(self, instance: str) -> Instance:
        """Try the step again that failed an instance."""
        return cast("Instance", await self.post(_get_path(instance, "retry")))

    async def export(self, instance: str) -> AsyncIterator[bytes]:
        """Everything that is known of an instance, in pieces: together they are lines of JSON, the last is `end`."""
        async for piece in self.download(_get_path(instance, "export")):
            yield piece

    async def bring(self, lines: bytes) -> Instance:
        """Bring in an exported instance; the same lines again are the instance that they have made."""
        return cast("Instance", await self.upload("/v1/instances/import", lines))

    async def _publish(self, document: Mapping[str, Any], *, current: bool, only_newer: bool) -> Version:
        path = f"/v1/definitions/{quote(str(document.get('key')))}/versions"
        version = cast("Version", await self.post(path, {"graph": document}))
        if not current or version["status"] == VersionStatus.PUBLISHED:
            return version
        await self.post(f"{path}/{version['number']}/activate", {"only_newer": True} if only_newer else {})
        return {**version, "status": VersionStatus.PUBLISHED}

    async def _answer(
        self, instance: str, verb: Verb, data: Mapping[str, Any] | None, picked: tuple[str | None, str | None]
    ) -> Delivery:
        signal, node = picked
        found = await self.get(instance)
        return await self.signal(found["id"], answering.pick(found, verb, signal=signal, node=node), data)


def _get_path(instance: str, below: str | None = None) -> str:
    path = f"/v1/instances/{quote(instance, safe='~:')}"
    return path if below is None else f"{path}/{below}"
