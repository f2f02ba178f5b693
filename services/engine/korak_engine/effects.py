"""once() and recall(): an effect and its result in one transaction, once a visit (spec 9, DESIGN 5)."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

import orjson

from korak import config
from korak.clock import Clock
from korak.errors import StaleClaim, StepFailed
from korak.graphs import hygiene
from korak.model import Json
from korak.store.effects import BOUND, Claim, EffectDatabase, Stored
from korak_engine.work import Work

MAX_RESULT: Final = 1 << 20
"""Bytes of a result as JSON."""

SEPARATOR: Final = "\x1f"


class Effects:
    """An async context manager. Each method has a face for the loop and one for a thread.

    An effect's own exception rolls back what it did and goes on as it is. A token that is lost raises StaleClaim, and
    the work counts as cancelled: nothing that it comes to will be recorded.
    """

    def __init__(self, database: config.Database, clock: Clock) -> None:
        url = database.effect_url or database.require_url()
        self._database = EffectDatabase(url, database.schema, pool=database.pool)
        self._clock = clock

    async def __aenter__(self) -> Self:
        await self._database.__aenter__()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self._database.__aexit__(*problem)

    async def once(self, work: Work, name: str, effect: Callable[[Any], Awaitable[Json]]) -> Json:
        """Run `effect(connection)` and store its result in the same transaction, or give the stored one (ID-6, ID-7).

        A second call at the same time waits for the first (ID-12).
        """
        claim = get_claim(work, name)
        with _noticing(work):
            async with asyncio.timeout(BOUND), self._database.transact() as connection:
                stored = await connection.run_sync(self._database.begin, claim, self._clock.now())
                if stored is not None:
                    return stored.result
                returned: Any = effect(connection)
                result = read_result(await returned if inspect.isawaitable(returned) else returned)
                await connection.run_sync(self._database.end, claim, result)
        return result

    def once_blocking(self, work: Work, name: str, effect: Callable[[Any], Json]) -> Json:
        """The same in a thread."""
        claim = get_claim(work, name)
        with _noticing(work), self._database.transact_blocking() as connection:
            stored = self._database.begin(connection, claim, self._clock.now())
            if stored is not None:
                return stored.result
            result = read_result(effect(connection))
            self._database.end(connection, claim, result)
        return result

    async def recall(self, work: Work, name: str) -> Json:
        """What `once(name)` stored in this visit, or None (ID-8)."""
        claim = get_claim(work, name)
        with _noticing(work):
            async with asyncio.timeout(BOUND), self._database.transact() as connection:
                stored = await connection.run_sync(self._database.begin, claim, self._clock.now())
                await connection.rollback()
        return _get_result(stored)

    def recall_blocking(self, work: Work, name: str) -> Json:
        """The same in a thread."""
        claim = get_claim(work, name)
        with _noticing(work), self._database.transact_blocking() as connection:
            stored = self._database.begin(connection, claim, self._clock.now())
            connection.rollback()
        return _get_result(stored)


def get_claim(work: Work, name: str) -> Claim:
    """The effect of that name in this visit: a digest, for no key of anybody's is stored as it is (ID-1, ID-11)."""
    if not isinstance(name, str) or not name:
        raise TypeError("an effect has a name")
    key = SEPARATOR.join(["effect", work.step.idempotency_key, name])
    return Claim(work.step.id, work.step.claim_token or "", hashlib.sha256(key.encode()).hexdigest())


def read_result(returned: object) -> Json:
    """A copy of an effect's result. Raises `invalid_output` where it isn't JSON, or is too big."""
    if issue := hygiene.check_json(returned):
        raise StepFailed("invalid_output", pointer=issue.pointer, detail=issue.params["why"])
    raw = orjson.dumps(returned)
    if len(raw) > MAX_RESULT:
        detail = f"the result of once() is {len(raw)} bytes, {MAX_RESULT} at most"
        raise StepFailed("invalid_output", pointer="", detail=detail, size=len(raw), limit=MAX_RESULT)
    result: Json = orjson.loads(raw)
    return result


def _get_result(stored: Stored | None) -> Json:
    return None if stored is None else stored.result


@contextmanager
def _noticing(work: Work) -> Iterator[None]:
    """A lost token means that the handler works for nothing: it can see that in `ctx.cancelled`."""
    try:
        yield
    except StaleClaim:
        work.is_cancelled = True
        raise
