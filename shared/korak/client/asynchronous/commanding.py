"""What a client commands. The blocking one is made from this module: `python -m tests.support.twins`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from typing import Any, cast

from korak.client.addresses import get_hold_path, get_path
from korak.client.asynchronous.linking import AsyncLink
from korak.client.gathering import AsyncPieces
from korak.client.operations import Hold, HoldKind
from korak.client.shapes import Artifact, ArtifactKind, Instance


class AsyncCommanding(AsyncLink):
    """Commands on instances, each of which answers the instance as it stands then; holds; artifacts from outside."""

    async def cancel(self, instance: str, reason: str | None = None) -> Instance:
        """End an instance; steps that had begun clean up."""
        return cast("Instance", await self.post(get_path(instance, "cancel"), _write(reason=reason)))

    async def pause(self, instance: str) -> Instance:
        """Let an instance begin no further step."""
        return cast("Instance", await self.post(get_path(instance, "pause")))

    async def resume(self, instance: str) -> Instance:
        """Let a paused instance go on."""
        return cast("Instance", await self.post(get_path(instance, "resume")))

    async def retry(self, instance: str) -> Instance:
        """Try the step again that failed an instance."""
        return cast("Instance", await self.post(get_path(instance, "retry")))

    async def rewind(self, instance: str, to: str) -> Instance:
        """Send an instance back to where it stood behind a completed step: its id, or a node for its newest visit."""
        return cast("Instance", await self.post(get_path(instance, "rewind"), {"to": to}))

    async def fork(self, instance: str, to: str | None = None) -> Instance:
        """Begin an instance of its own where another one stood: behind its newest completed step, or behind `to`."""
        return cast("Instance", await self.post(get_path(instance, "fork"), _write(to=to)))

    async def import_(self, lines: AsyncPieces) -> Instance:
        """Bring in an exported instance, whole or in pieces as `export` gives it: an ended one as it was, an open one
        goes on. The same lines again are the instance that they have made.
        """
        return cast("Instance", await self.upload("/v1/instances/import", lines))

    async def hold(self, kind: HoldKind, name: str, *, reason: str | None = None, until: str | None = None) -> Hold:
        """Begin no step of a definition, step type or queue, `until` a time (ISO 8601) or its release: none from the
        answer on. Raises NotFound where nobody knows the name.
        """
        return cast("Hold", await self.post(get_hold_path(kind, name, "hold"), _write(reason=reason, until=until)))

    async def release(self, kind: HoldKind, name: str) -> Hold:
        """Let what is held go on. Raises NotFound where nothing is."""
        return cast("Hold", await self.post(get_hold_path(kind, name, "release")))

    async def put_artifact(
        self,
        instance: str,
        key: str,
        content: Any,
        *,
        kind: ArtifactKind | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Artifact:
        """Leave an artifact with an instance, or replace one: any JSON, a text, or bytes."""
        if isinstance(content, bytes):
            kind, content = "bytes", b64encode(content).decode()
        body = {"content": content, **_write(kind=kind, metadata=metadata)}
        return cast("Artifact", await self.call("PUT", get_path(instance, "artifacts", key), body=body))

    async def drop_artifact(self, instance: str, key: str) -> None:
        """Take an artifact away. Raises NotFound."""
        await self.call("DELETE", get_path(instance, "artifacts", key))


def _write(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
