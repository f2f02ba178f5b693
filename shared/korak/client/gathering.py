"""Bytes that come in pieces, put together before they go out, for both faces of the client."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import TypeAlias

Pieces: TypeAlias = bytes | Iterable[bytes]
AsyncPieces: TypeAlias = Pieces | AsyncIterable[bytes]


async def gather_async(pieces: AsyncPieces) -> bytes:
    """All of them: a request that is sent again has the same once more."""
    if isinstance(pieces, AsyncIterable):
        return b"".join([piece async for piece in pieces])
    return gather(pieces)


def gather(pieces: Pieces) -> bytes:
    """The same for those that can be had at once."""
    return pieces if isinstance(pieces, bytes) else b"".join(pieces)
