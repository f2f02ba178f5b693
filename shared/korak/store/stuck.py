"""What is stuck, in the one meaning that the gauge, the alert, doctor and the API share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from korak.store.database import Runner

UNCLAIMED = 600.0
OVERDUE = 300.0
UNSERVED = 60.0
"""Seconds after which a ready step that nobody claims, a wait or lease that is over, and a parked step are stuck."""

PAGE = 1_000
MOST = 10_000
"""How many open instances one statement looks at, and how many one call of `list_stuck` unless it is told to go on."""


class StuckReason(StrEnum):
    """Why nothing will move an instance."""

    ORPHANED = "orphaned"
    UNCLAIMED = "unclaimed"
    LEASE_EXPIRED = "lease_expired"
    WAIT_OVERDUE = "wait_overdue"
    NO_ENGINE_FOR_TYPE = "no_engine_for_type"


@dataclass(frozen=True, slots=True)
class Stuck:
    """An instance that stands still, why, since when, and the step that it is about, if it is about one."""

    instance_id: int
    ulid: str
    owner_scope: str
    definition: str
    reason: StuckReason
    since: datetime
    step_run_id: int | None = None
    node: str | None = None
    type: str | None = None
    claim_token: str | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What one look at some open instances found, and the last of them; None where there are no more."""

    stuck: list[Stuck]
    last: int | None


async def list_late(runner: Runner, now: datetime, *, owner: str | None = None, count: int = MOST) -> list[Stuck]:
    """Steps and waits that should have moved long ago, oldest first. Costs what is ready or overdue."""
    rows = await runner.fetch(
        "stuck_rows",
        now=now,
        owner=owner,
        unclaimed=UNCLAIMED,
        unserved=UNSERVED,
        overdue=OVERDUE,
        count=count,
    )
    return [_read(row) for row in rows]


async def look_at(
    runner: Runner, now: datetime, *, after: int = 0, owner: str | None = None, count: int = PAGE
) -> Page:
    """Open instances behind `after` that nothing will move. Costs a look at each."""
    rows = await runner.fetch("stuck_instances", now=now, after=after, owner=owner, overdue=OVERDUE, count=count)
    last = next(row["id"] for row in rows if row["reason"] is None)
    return Page([_read(row) for row in rows if row["reason"] is not None], last)


async def list_stuck(
    runner: Runner, now: datetime, limit: int | None = None, *, owner: str | None = None, most: int | None = MOST
) -> list[Stuck]:
    """The stuck instances with each reason, the longest stuck first; `limit` of them at most.

    Of the open instances the first `most` are looked at, or all of them: with a million that takes half a minute.
    """
    found = await list_late(runner, now, owner=owner)
    async for page in _look_through(runner, now, owner, most):
        found += page.stuck
    return sorted(found, key=lambda stuck: stuck.since)[:limit]


async def _look_through(runner: Runner, now: datetime, owner: str | None, most: int | None) -> AsyncIterator[Page]:
    after, looked = 0, 0
    while most is None or looked < most:
        page = await look_at(runner, now, after=after, owner=owner)
        if page.last is None:
            return
        yield page
        after, looked = page.last, looked + PAGE


def _read(row: Mapping[str, Any]) -> Stuck:
    return Stuck(
        row["id"],
        row["ulid"],
        row["owner_scope"],
        row["definition"],
        StuckReason(row["reason"]),
        row["since"],
        row["step_run_id"],
        row["node_id"],
        row["node_type"],
        row.get("claim_token"),
    )
