"""Holds as rows: put and released by hand, over by time, and let go in pages by a waker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from korak.core.holds import NO_HOLDS, Holds
from korak.model import HoldKind, JsonObject
from korak.store.database import Runner

DEFAULT_QUEUE = "default"
MOST = 10_000
"""How far steps of a queue are counted."""


@dataclass(frozen=True, slots=True)
class Hold:
    """What is held, whose, why and until when; `released_at` once it is over."""

    owner_scope: str
    kind: HoldKind
    name: str
    held_at: datetime
    reason: str | None = None
    until: datetime | None = None
    held_by: JsonObject | None = None
    released_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A hold that is over, and since when."""

    id: int
    owner_scope: str
    kind: HoldKind
    name: str
    released_at: datetime


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: how many ids its broker may hold, what of it waits (counted up to `MOST`), who serves it.

    `backlog` is ready and not sent, `sent` is sent and not claimed, `held` is what holds keep. `hold` is its own.
    """

    name: str
    bound: int
    backlog: int
    sent: int
    held: int
    consumers: int
    hold: Hold | None = None


@dataclass(slots=True)
class View:
    """The holds as one process knows them. What it doesn't know yet costs it a decision that doesn't count."""

    known: Holds = NO_HOLDS

    async def refresh(self, runner: Runner, now: datetime) -> None:
        """Look again."""
        self.known = await load(runner, now)


async def load(runner: Runner, now: datetime) -> Holds:
    """The holds in force, with their version."""
    rows = await runner.fetch("holds_load", now=now)
    held = [(row["owner_scope"], HoldKind(row["kind"]), row["name"]) for row in rows if row["kind"] is not None]
    return Holds(frozenset(held), rows[0]["version"])


async def is_known(runner: Runner, owner_scope: str, kind: HoldKind, name: str) -> bool:
    """Whether there is a step type or queue of that name, as far as engines and published versions have told."""
    if kind is HoldKind.QUEUE and name == DEFAULT_QUEUE:
        return True
    [row] = await runner.fetch("holds_known", owner=owner_scope, kind=kind, name=name)
    return bool(row["is_known"])


async def put(runner: Runner, hold: Hold) -> Hold:
    """Hold it; one that is held already is held for this reason and time from now on."""
    [row] = await runner.fetch(
        "holds_put",
        owner=hold.owner_scope,
        kind=hold.kind,
        name=hold.name,
        reason=hold.reason,
        until=hold.until,
        actor=hold.held_by,
        now=hold.held_at,
    )
    return _read(row)


async def release(runner: Runner, owner_scope: str, kind: HoldKind, name: str, now: datetime) -> Hold | None:
    """Release it; None where it isn't held."""
    rows = await runner.fetch("holds_release", owner=owner_scope, kind=kind, name=name, now=now)
    return _read(rows[0]) if rows else None


async def list_ended(runner: Runner, now: datetime, count: int) -> list[Ended]:
    """Holds that are over and whose steps may still be parked."""
    rows = await runner.fetch("holds_over", now=now, count=count)
    return [
        Ended(row["id"], row["owner_scope"], HoldKind(row["kind"]), row["name"], row["released_at"]) for row in rows
    ]


async def unpark(runner: Runner, hold: Ended, now: datetime, count: int) -> list[str]:
    """Let a page of its steps go that no other hold keeps; the queue of each."""
    rows = await runner.fetch(
        "holds_unpark", owner=hold.owner_scope, kind=hold.kind, name=hold.name, now=now, count=count
    )
    return [row["queue"] for row in rows]


async def forget(runner: Runner, hold: Ended, now: datetime) -> None:
    """Look at it no more if it keeps nothing any more. For a hold that nobody can park a step for any longer."""
    await runner.fetch("holds_forget", id=hold.id, owner=hold.owner_scope, kind=hold.kind, name=hold.name, now=now)


async def list_queues(runner: Runner, now: datetime, *, owner: str | None) -> list[Queue]:
    """Every queue with what of one owner's, or of everybody's (None), stands in it."""
    rows = await runner.fetch("queues_list", now=now, owner=owner, most=MOST)
    return [
        Queue(
            row["name"],
            row["bound"],
            row["backlog"],
            row["sent"],
            row["held"],
            row["consumers"],
            None
            if row["held_at"] is None
            else Hold(row["held_for"], HoldKind.QUEUE, row["name"], row["held_at"], row["reason"], row["until"]),
        )
        for row in rows
    ]


def _read(row: Mapping[str, Any]) -> Hold:
    return Hold(
        row["owner_scope"],
        HoldKind(row["kind"]),
        row["name"],
        row["held_at"],
        row["reason"],
        row["until"],
        row["held_by"],
        row["released_at"],
    )
