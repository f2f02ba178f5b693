"""Which waits an event fits, told from its payload alone: a digest for each set of paths that waits match on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from korak.core.waiting import get_digest
from korak.graphs.paths import MISSING, Malformed, lookup, parse
from korak.model import Json, JsonObject


def list_digests(owner_scope: str, name: str, payload: Json, shapes: Iterable[Sequence[str]]) -> Iterator[str]:
    """The digests of the waits that take the event. A shape of which the payload lacks a path fits none."""
    for shape in shapes:
        match = _read(payload, shape)
        if match is not None:
            yield get_digest(owner_scope, name, match)


def _read(payload: Json, shape: Sequence[str]) -> JsonObject | None:
    match: JsonObject = {}
    for path in shape:
        try:
            found = lookup(parse(path), payload) if isinstance(payload, dict) else MISSING
        except Malformed:
            found = MISSING
        if found is MISSING:
            return None
        match[path] = found
    return match
