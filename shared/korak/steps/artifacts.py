"""What a step or somebody outside leaves with a run under a name, beside its state: checked, and as bytes."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import orjson

from korak.errors import StepFailed
from korak.graphs import hygiene
from korak.model import ArtifactKind, Json, JsonObject
from korak.steps.secrets import scrub, scrub_json

MAX_KEY: Final = 191
MAX_METADATA: Final = 16 << 10
"""Bytes of the metadata as JSON."""

KEY: Final = re.compile(r"[A-Za-z0-9._:-]{1,191}")


@dataclass(frozen=True, slots=True)
class Made:
    """An artifact, not yet anybody's. `content` is what is stored: JSON and text as UTF-8."""

    key: str
    kind: ArtifactKind
    content: bytes
    metadata: JsonObject | None = None

    @property
    def reference(self) -> JsonObject:
        """What a step puts into its output in place of the content."""
        return {"artifact": self.key, "kind": self.kind.value, "size": len(self.content)}


def make(
    key: object,
    content: object,
    *,
    kind: object = None,
    metadata: object = None,
    limit: int,
    hidden: Collection[str] = (),
) -> Made:
    """Check an artifact: at most `limit` bytes, without the secrets `hidden`.

    Without a kind bytes are `bytes`, a string is `text` and all else `json`. Raises StepFailed (`invalid_output`) with
    a pointer into `/artifacts/<key>`.
    """
    if not isinstance(key, str) or not KEY.fullmatch(key):
        raise _refuse("", f"its key has 1 to {MAX_KEY} letters, digits and . _ : -")
    chosen = _choose(key, kind, content)
    raw = _write(key, chosen, content, hidden)
    if len(raw) > limit:
        hint = "keep what is larger elsewhere and make its address the artifact"
        raise _refuse(f"/{key}/content", f"it is {len(raw)} bytes, {limit} at most: {hint}")
    return Made(key, chosen, raw, _read_metadata(key, metadata, hidden))


def show(kind: str, content: bytes) -> Json:
    """A stored content as JSON carries it: bytes in base64."""
    match kind:
        case ArtifactKind.JSON:
            shown: Json = orjson.loads(content)
            return shown
        case ArtifactKind.TEXT:
            return content.decode()
        case _:
            return base64.b64encode(content).decode()


def _choose(key: str, kind: object, content: object) -> ArtifactKind:
    if kind is None:
        if isinstance(content, (bytes, bytearray, memoryview)):
            return ArtifactKind.BYTES
        return ArtifactKind.TEXT if isinstance(content, str) else ArtifactKind.JSON
    try:
        return ArtifactKind(str(kind))
    except ValueError:
        raise _refuse(f"/{key}/kind", f"it is one of {', '.join(ArtifactKind)}") from None


def _write(key: str, kind: ArtifactKind, content: object, hidden: Collection[str]) -> bytes:
    if kind is ArtifactKind.BYTES:
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise _refuse(f"/{key}/content", f"it is bytes, not {type(content).__name__}")
        return bytes(content)
    if kind is ArtifactKind.TEXT and not isinstance(content, str):
        raise _refuse(f"/{key}/content", f"it is a string, not {type(content).__name__}")
    checked = _check(f"/{key}/content", content)
    if kind is ArtifactKind.TEXT:
        return scrub(str(checked), hidden).encode()
    return orjson.dumps(scrub_json(checked, hidden))


def _read_metadata(key: str, metadata: object, hidden: Collection[str]) -> JsonObject | None:
    if metadata is None:
        return None
    if type(metadata) is not dict:
        raise _refuse(f"/{key}/metadata", f"it is an object, not {type(metadata).__name__}")
    checked = scrub_json(_check(f"/{key}/metadata", metadata), hidden)
    if (size := hygiene.size(checked)) > MAX_METADATA:
        raise _refuse(f"/{key}/metadata", f"it is {size} bytes, {MAX_METADATA} at most")
    return orjson.loads(orjson.dumps(checked)) if isinstance(checked, dict) else None


def _check(pointer: str, value: object) -> Json:
    if issue := hygiene.check_json(value):
        raise _refuse(pointer + issue.pointer, str(issue.params["why"]))
    checked: Json = value  # type: ignore[assignment]  # it is JSON, as was just seen
    return checked


def _refuse(pointer: str, detail: str) -> StepFailed:
    return StepFailed("invalid_output", pointer=f"/artifacts{pointer}", detail=detail)
