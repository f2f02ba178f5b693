"""What a client reads of instances. The blocking one is made from this module: `python -m tests.support.twins`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Unpack, cast

from korak.client.addresses import get_path
from korak.client.asynchronous.linking import AsyncLink
from korak.client.operations import Queue
from korak.client.shapes import Artifact, Chunk, Event, FailureRecord, Instance, ListOptions, Step, Wait
from korak.model import ENDED

LOOK = 20.0
"""Seconds of one request that waits for an end."""


class AsyncReading(AsyncLink):
    """Instances and what stands below them. Each list goes on over all its pages."""

    async def get(self, instance: str, *, wait: float = 0.0) -> Instance:
        """An instance. `wait`: answer once it has ended, after so many seconds (60 at most) in any case."""
        return cast("Instance", await self.call("GET", get_path(instance), wait=wait))

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
        async for found in self.iterate(get_path(instance, "steps"), None, {}):
            yield found

    async def events(self, instance: str, *, after: int = 0) -> AsyncIterator[Event]:
        """The history of an instance, after the event of that number."""
        async for found in self.iterate(get_path(instance, "events"), None, {"after": after}):
            yield found

    async def waits(self, instance: str) -> AsyncIterator[Wait]:
        """All that an instance waits or has waited for, the oldest first."""
        async for found in self.iterate(get_path(instance, "waits"), None, {}):
            yield found

    async def failures(self, instance: str) -> AsyncIterator[FailureRecord]:
        """Every failure of an instance, those that were handled or tried again too, the oldest first."""
        async for found in self.iterate(get_path(instance, "failures"), None, {}):
            yield found

    async def chunks(self, instance: str, *, step: str | None = None, after: int | None = None) -> AsyncIterator[Chunk]:
        """What steps have streamed whose output isn't recorded yet; those of a node or of one visit (`step`).

        `after`: only chunks of a greater index.
        """
        params = {name: value for name, value in (("step", step), ("after", after)) if value is not None}
        async for found in self.iterate(get_path(instance, "chunks"), None, params):
            yield found

    async def artifacts(self, instance: str, *, content: bool = False) -> AsyncIterator[Artifact]:
        """What an instance keeps beside its state, by key; `content`: with what each holds."""
        params = {"content": "true"} if content else {}
        async for found in self.iterate(get_path(instance, "artifacts"), None, params):
            yield found

    async def artifact(self, instance: str, key: str) -> Artifact:
        """One artifact with what it holds; bytes stand in base64. Raises NotFound."""
        return cast("Artifact", await self.call("GET", get_path(instance, "artifacts", key)))

    async def export(self, instance: str) -> AsyncIterator[bytes]:
        """Everything that is known of an instance, in pieces: together they are lines of JSON that `import_` takes."""
        async for piece in self.download(get_path(instance, "export")):
            yield piece

    async def queues(self) -> AsyncIterator[Queue]:
        """The queues: what waits in each, and who serves it."""
        for found in (await self.call("GET", "/v1/queues"))["items"]:
            yield found

    async def follow(self, instance: str, *, after: int = 0) -> AsyncIterator[tuple[str, Any]]:
        """What happens in an instance, until it has ended: pairs of a name and what goes with it.

        `history` is a line of it (after the one of that number), `chunk` what a step streams, `end` the last.
        """
        async for sent in self.stream(get_path(instance, "stream"), after):
            yield sent.name, sent.data
