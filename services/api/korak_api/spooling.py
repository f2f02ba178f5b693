"""Copies of runs on their way: kept in a file until they are whole, within a bound, and few at a time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, Final, Self

from starlette.requests import ClientDisconnect, Request

from korak.errors import Invalid, Issue, KorakError, TooLarge, Unavailable, Unreadable
from korak.graphs import hygiene
from korak.graphs.paths import pointer
from korak.model import Json

PIECE: Final = 256 << 10
"""Bytes that are in memory at a time."""

MOST: Final = 8
"""Copies of one process that are on their way at once."""


SHARE: Final = 32
"""A line has a part of what a copy may have: it is in memory whole, many times as large."""


class Spools:
    """How many copies are on their way, each of `limit` bytes at most, with lines of `longest` bytes at most."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.longest = limit // SHARE
        self.count = 0

    def open(self) -> Spool:
        """A new one. Raises Unavailable where there are too many."""
        if self.count >= MOST:
            raise Unavailable("too_many_copies", limit=MOST)
        with ExitStack() as stack:
            file = stack.enter_context(TemporaryFile())
            return Spool(self, file, stack.pop_all())


class Spool:
    """The lines of one copy. Whoever opens it closes it, or what it is iterated by does."""

    def __init__(self, spools: Spools, file: IO[bytes], stack: ExitStack) -> None:
        self._spools, self._file, self._stack = spools, file, stack
        self._digest = hashlib.sha256()
        self.size = 0
        self._is_open = True
        spools.count += 1

    @property
    def digest(self) -> str:
        """SHA-256 of the bytes, in hex."""
        return self._digest.hexdigest()

    def write(self, piece: bytes) -> None:
        """Add a piece. Raises TooLarge where that is more than a copy may have."""
        self.size += len(piece)
        if self.size > self._spools.limit:
            raise TooLarge(limit=self._spools.limit)
        self._digest.update(piece)
        self._file.write(piece)

    async def list_lines(self) -> AsyncIterator[tuple[Json, int]]:
        """The JSON of each line, and its bytes; empty lines are none. Raises Invalid("invalid_export")."""
        self._file.seek(0)
        number, longest = 0, self._spools.longest
        while raw := self._file.readline(longest + 1):
            if len(raw) > longest:
                raise _refuse(number, f"the line is over {longest} bytes")
            if raw.strip():
                yield await _read_aside(raw, number), len(raw)
                number += 1

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece

    async def aclose(self) -> None:
        """End it, as whatever sends it does."""
        self.close()

    def close(self) -> None:
        """Let the file go."""
        if self._is_open:
            self._is_open = False
            self._spools.count -= 1
            self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


async def _read_aside(raw: bytes, number: int) -> Json:
    """A long line is read in a thread: others are answered meanwhile."""
    return await asyncio.to_thread(_read, raw, number) if len(raw) > PIECE else _read(raw, number)


def _read(raw: bytes, number: int) -> Json:
    try:
        return hygiene.loads(raw)
    except KorakError as error:
        why = error.params.get("why") or error.message
        raise _refuse(number, f"the line isn't JSON that can be stored: {why}") from None


def _refuse(number: int, detail: str) -> Invalid:
    issue = Issue("invalid_export", pointer([number]), {"detail": detail})
    return Invalid("invalid_export", issues=[issue], detail=detail)


async def receive(request: Request, spools: Spools) -> Spool:
    """The body of a request. Raises TooLarge, Unreadable where the connection is closed before its end."""
    spool = spools.open()
    try:
        async for piece in request.stream():
            spool.write(piece)
    except ClientDisconnect:
        spool.close()
        raise Unreadable("invalid_json", None, why="the connection was closed before its end") from None
    except BaseException:
        spool.close()
        raise
    return spool
