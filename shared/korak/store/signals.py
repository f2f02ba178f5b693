"""What is addressed to one instance from outside: signals, and commands left for the next holder of its lock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert

from korak.model import DeliveryKind, Json, JsonObject
from korak.store.database import Connection, Runner
from korak.store.querying import fetch_one
from korak.store.tables import workflow_signals as signals


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of what was sent: whether it was taken, is kept for a wait that comes later, or came to nothing."""

    is_taken: bool = False
    is_buffered: bool = False
    is_discarded: bool = False


@dataclass(frozen=True, slots=True)
class Sending:
    """A row for an instance. `source_id` is the sender's own id of it: the same twice is one delivery.

    `step_run_id` is an attempt of the visit that a signal is for alone, if it is for one.
    """

    instance_id: int
    owner_scope: str
    kind: DeliveryKind
    source_id: str
    name: str | None = None
    payload: Json = None
    sender: JsonObject | None = None
    step_run_id: int | None = None


async def send(connection: Connection, sending: Sending, *, now: datetime) -> bool:
    """Address something to an instance; False where the same was sent before. It is taken under the lock only."""
    query = (
        insert(signals)
        .values(
            instance_id=sending.instance_id,
            step_run_id=sending.step_run_id,
            owner_scope=sending.owner_scope,
            kind=sending.kind,
            name=sending.name,
            payload=sending.payload,
            source_id=sending.source_id,
            sender=sending.sender,
            created_at=now,
        )
        .on_conflict_do_nothing(constraint="wsig_source_unique")
        .returning(signals.c.id)
    )
    return await fetch_one(connection, query) is not None


async def get(connection: Connection, instance_id: int, source_id: str) -> Sent | None:
    """What became of what was sent to an instance under that id."""
    query = select(signals.c.taken_at, signals.c.buffered_at, signals.c.discarded_at).where(
        signals.c.instance_id == instance_id, signals.c.wait_id.is_(None), signals.c.source_id == source_id
    )
    row = await fetch_one(connection, query)
    if row is None:
        return None
    is_discarded = row["discarded_at"] is not None
    return Sent(row["taken_at"] is not None and not is_discarded, row["buffered_at"] is not None, is_discarded)


async def find_waiting(runner: Runner, instance_id: int, execution_id: str, name: str) -> int | None:
    """The attempt at which a visit waits for a signal of that name; None where it doesn't, or doesn't any more."""
    rows = await runner.fetch("waits_find", instance=instance_id, execution=execution_id, name=name)
    return rows[0]["step_run_id"] if rows else None
