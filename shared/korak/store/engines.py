"""The fleet's rows: an engine registers, renews its lease and closes; whoever finds its row closed holds nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from korak.store.database import Runner


@dataclass(frozen=True, slots=True)
class Announcement:
    """What an engine says of itself: where it runs, which queues it serves, which types ("key@version") it has."""

    ulid: str
    host: str
    pid: int
    build: str
    queues: Sequence[str]
    types: Sequence[str]


async def register(runner: Runner, engine: Announcement, now: datetime, lease: timedelta) -> int:
    """A new engine's id, under a lease."""
    rows = await runner.fetch(
        "engines_register",
        ulid=engine.ulid,
        host=engine.host,
        pid=engine.pid,
        build=engine.build,
        said=[(list(engine.queues), list(engine.types))],
        lease_until=now + lease,
        now=now,
    )
    return int(rows[0]["id"])


async def renew(runner: Runner, engine_id: int, now: datetime, lease: timedelta, held_since: datetime) -> bool:
    """Extend the lease; False where somebody closed the row. `held_since` is when the oldest held step was claimed."""
    rows = await runner.fetch("engines_renew", id=engine_id, now=now, lease_until=now + lease, held_since=held_since)
    return bool(rows)


async def close(runner: Runner, engine_id: int, now: datetime, reason: str) -> None:
    """The engine is gone: what it still holds is taken over at once."""
    await runner.fetch("engines_close", id=engine_id, now=now, reason=reason)


async def list_held(runner: Runner, tokens: Sequence[tuple[int, str]]) -> set[int]:
    """Which of these (step, token) still hold: running, and under that token."""
    rows = await runner.fetch("steps_held", held=list(tokens))
    return {row["id"] for row in rows}


async def list_unserved(runner: Runner, queues: Sequence[str], now: datetime) -> frozenset[str]:
    """Which of these queues no live engine serves."""
    rows = await runner.fetch("queues_unserved", queues=list(queues), now=now)
    return frozenset(row["queue"] for row in rows)
