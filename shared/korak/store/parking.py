"""Why parked steps don't go on: the key that is full, or the hold that keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from operator import itemgetter

import asyncpg

from korak.core.rows import StepRun
from korak.model import FlowKind, ParkedFor
from korak.store.database import Connection, Session


@dataclass(frozen=True, slots=True)
class Reason:
    """What a parked step waits for: names of keys or of what is held, and when it may go on, where that is known."""

    names: tuple[str, ...]
    until: datetime | None = None
    told: str | None = None
    """What the holds say for themselves."""


async def list_reasons(connection: Connection, steps: Iterable[StepRun]) -> Mapping[int, Reason]:
    """The reasons of those that a limit or a hold has parked, by step. Asks nothing where there are none."""
    ids = [step.id for step in steps if step.parked_for in (ParkedFor.LIMIT, ParkedFor.HOLD)]
    if not ids:
        return {}
    session = Session(connection)
    found = {
        row["id"]: Reason((_get_name(row["kind"], row["key"]),), row["limit_until"])
        for row in await session.fetch("parked_limits", ids=ids)
    }
    for step_id, holds in groupby(await session.fetch("parked_holds", ids=ids), itemgetter("id")):
        found[step_id] = _read_holds(list(holds))
    return found


def _read_holds(holds: Sequence[asyncpg.Record]) -> Reason:
    """Of the holds of one step: it goes on once the last of them is over, which is known where it is of each."""
    ends = [hold["until"] for hold in holds]
    return Reason(
        tuple(f"{hold['kind']} {hold['name']}" for hold in holds),
        None if None in ends else max(ends),
        "; ".join(hold["reason"] for hold in holds if hold["reason"]) or None,
    )


def _get_name(kind: str, key: str) -> str:
    """A key as its author knows it: a rate's stands behind its span."""
    return key.partition(" ")[2] if kind == FlowKind.RATE else key
