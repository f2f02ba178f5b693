"""Why parked steps don't go on: the key that is full, or the hold that keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

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
    for row in await session.fetch("parked_holds", ids=ids):
        before = found.get(row["id"], Reason(()))
        told = "; ".join(text for text in (before.told, row["reason"]) if text) or None
        found[row["id"]] = Reason((*before.names, f"{row['kind']} {row['name']}"), row["until"] or before.until, told)
    return found


def _get_name(kind: str, key: str) -> str:
    """A key as its author knows it: a rate's stands behind its span."""
    return key.partition(" ")[2] if kind == FlowKind.RATE else key
