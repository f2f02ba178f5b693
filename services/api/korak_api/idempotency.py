"""Idempotency-Key: the first request under a key has the effect, every repeat gets its answer."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from korak.errors import Conflict, Invalid
from korak.graphs.hygiene import canonical
from korak.loop import wait
from korak.model import Json
from korak.starting import get_digest
from korak.store import answers
from korak.store.answers import Claim, Kept
from korak_api import addressing
from korak_api.operations import Answer, Call, Operation
from korak_api.requests import read_header

MAX_KEY: Final = 191
LOST: Final = timedelta(seconds=60)
"""After how long a request without an answer counts as lost, so that a repeat may take its place."""

PATIENCE: Final = 10.0
"""Seconds that a repeat waits for the first request's answer."""

LOOK: Final = 0.05


@dataclass(frozen=True, slots=True)
class _Key:
    owner_scope: str
    digest: str
    fingerprint: str


async def answer(call: Call, operation: Operation) -> Answer:
    """The operation's answer, or the kept one of the same request before.

    Raises Invalid (`idempotency_key_reused`) for another body, Conflict where the first request takes too long.
    """
    given = read_header("Idempotency-Key", call.headers.get("idempotency-key"), MAX_KEY)
    if given is None:
        return await addressing.answer(call, operation)
    key = _get_key(call, operation, given)
    deadline = call.resources.clock.monotonic() + PATIENCE
    while not await _claim(call, key):
        kept = await _find(call, key)
        if kept is not None and kept.fingerprint != key.fingerprint:
            raise Invalid("idempotency_key_reused")
        if kept is not None and kept.status is not None:
            return Answer(kept.body, kept.status, _get_headers(kept))
        if call.resources.clock.monotonic() >= deadline:
            raise Conflict("request_in_progress")
        await wait(LOOK)
    return await _run(replace(call, seed=key.digest), operation, key)


def _get_key(call: Call, operation: Operation, given: str) -> _Key:
    path = operation.path.format(**call.path)
    digest = get_digest("http", operation.method, path, given)
    asked: list[Json] = [call.body, {name: str(value) for name, value in call.query.items()}]
    return _Key(call.owner_scope, digest, hashlib.sha256(canonical(asked)).hexdigest())


async def _claim(call: Call, key: _Key) -> bool:
    now = call.resources.clock.now()
    expires_at = now + call.resources.settings.idempotency.answers
    async with call.resources.database.acquire() as connection:
        claim = Claim(key.owner_scope, key.digest, key.fingerprint, now, expires_at, now - LOST)
        return await answers.claim(connection, claim)


async def _find(call: Call, key: _Key) -> Kept | None:
    async with call.resources.database.acquire() as connection:
        return await answers.get(connection, key.owner_scope, key.digest)


async def _run(call: Call, operation: Operation, key: _Key) -> Answer:
    database = call.resources.database
    try:
        answer = await addressing.answer(call, operation)
    except Exception:
        async with database.acquire() as connection:
            await answers.release(connection, key.owner_scope, key.digest)
        raise
    body = answer.body if answer.kept is None else answer.kept
    async with database.acquire() as connection:
        await answers.keep(connection, key.owner_scope, key.digest, status=answer.status, body=body)
    return answer


def _get_headers(kept: Kept) -> dict[str, str]:
    checksum = kept.body.get("checksum") if isinstance(kept.body, dict) else None
    return {"idempotent-replayed": "true", **({"etag": f'"{checksum}"'} if isinstance(checksum, str) else {})}
