"""Who asks: a bearer token into its credential, believed for a few seconds."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final, Protocol

from korak.clock import Clock
from korak.errors import Unauthenticated
from korak.owners.tokens import MAX_SECRET, Credential, digest
from korak.store import tokens
from korak.store.database import Database

BELIEVED: Final = 3.0
"""Seconds for which a token isn't looked up again: so long may a revoked one still open something."""

KEPT: Final = 10_000


class Identifying(Protocol):
    """Tells who asks."""

    async def identify(self, header: str | None) -> Credential:
        """Who sends this Authorization header. Raises Unauthenticated."""
        ...

    def forget(self) -> None:
        """Look every token up again."""
        ...


class Credentials:
    """The tokens that were seen lately."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, Credential]] = OrderedDict()

    async def identify(self, header: str | None) -> Credential:
        """Who sends this Authorization header. Raises Unauthenticated."""
        scheme, _, secret = (header or "").partition(" ")
        secret = secret.strip()
        if scheme.lower() != "bearer" or not secret or len(secret) > MAX_SECRET:
            raise Unauthenticated
        key = digest(secret)
        until, known = self._known.get(key, (0.0, None))
        if known is not None and self._clock.monotonic() < until:
            return known
        return await self._look_up(key)

    async def _look_up(self, key: str) -> Credential:
        async with self._database.acquire() as connection:
            found = await tokens.get_by_digest(connection, key, now=self._clock.now())
        if found is None:
            self._known.pop(key, None)
            raise Unauthenticated
        self._known[key] = (self._clock.monotonic() + BELIEVED, found)
        self._known.move_to_end(key)
        while len(self._known) > KEPT:
            self._known.popitem(last=False)
        return found

    def forget(self) -> None:
        """Look every token up again: one was revoked here."""
        self._known.clear()
