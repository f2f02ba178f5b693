"""What is stuck, by its exact meaning: the one query that everybody who tells it asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal

from korak.store.database import Runner

Reason = Literal["lease_expired", "unclaimed", "no_engine_for_type", "wait_overdue", "orphaned"]

REASONS: Final[Sequence[Reason]] = ("lease_expired", "unclaimed", "no_engine_for_type", "wait_overdue", "orphaned")

LATE: Final = timedelta(minutes=5)
"""What is that long over its time isn't merely slow."""

PARKED: Final = timedelta(minutes=1)
"""How long a type may be without any engine."""


@dataclass(frozen=True, slots=True)
class Stuck:
    """One open instance that nothing will move, at which node if that is known, why, and since when."""

    ulid: str
    definition: str
    node: str | None
    reason: Reason
    since: datetime


async def list_stuck(runner: Runner, now: datetime, limit: int = 100) -> list[Stuck]:
    """The stuck instances, the longest stuck first.

    `lease_expired`: a step runs on an engine that is gone; `unclaimed`: a step is ready and no engine takes it;
    `no_engine_for_type`: no engine has its type; `wait_overdue`: a wait is past its time; `orphaned`: no step, no wait.
    """
    rows = await runner.fetch("stuck_list", late=now - LATE, parked=now - PARKED, most=limit)
    return [Stuck(row["ulid"], row["definition"], row["node_id"], row["reason"], row["since"]) for row in rows]
