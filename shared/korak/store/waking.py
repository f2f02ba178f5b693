"""What a wake pass looks for. Stamps are written by id with SKIP LOCKED: a waker never waits for a row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from korak.model import DeliveryKind, WaitKind
from korak.store.database import Runner

Expiring = Literal["emits_expire", "keys_expire", "answers_expire", "flow_expire"]
EXPIRING: tuple[Expiring, ...] = ("emits_expire", "keys_expire", "answers_expire", "flow_expire")
"""The statements that delete what has had its time, a batch a call."""


@dataclass(frozen=True, slots=True)
class Due:
    """A wait that was due and is now stamped; the queue of its step."""

    kind: WaitKind
    due_at: datetime
    queue: str


@dataclass(frozen=True, slots=True)
class Untaken:
    """A delivery that nobody took, stamped again. `sends` is how often it had been sent before."""

    id: int
    instance_id: int
    step_run_id: int | None
    kind: DeliveryKind
    name: str | None
    sends: int


@dataclass(frozen=True, slots=True)
class Holder:
    """An engine that may hold steps, claimed since then. `types` are "key@version"."""

    id: int
    held_since: datetime
    closed_at: datetime | None = None
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """Steps that were claimed from `since` until before `until`, behind the one with the id `after`."""

    since: datetime
    until: datetime
    after: int = 0


@dataclass(frozen=True, slots=True)
class LostStep:
    """A step whose holder is gone, and its place in the order of claims."""

    id: int
    instance_id: int
    claim_token: str
    claimed_at: datetime


@dataclass(frozen=True, slots=True)
class Overdue:
    """An open instance whose deadline is over."""

    id: int
    deadline_at: datetime


async def stamp_due(runner: Runner, now: datetime, count: int, *, conditions: bool) -> list[Due]:
    """Due waits, stamped, their steps ready: conditions, or all others."""
    rows = await runner.fetch("waits_due", now=now, count=count, is_condition=conditions)
    return [Due(WaitKind(row["kind"]), row["due_at"], row["queue"]) for row in rows]


async def repeat_waits(runner: Runner, now: datetime, count: int, *, after: float) -> list[str]:
    """Make steps ready again whose due wait was stamped and lost; the queue of each."""
    return [row["queue"] for row in await runner.fetch("waits_repeat", now=now, count=count, after=after)]


async def repeat_signals(runner: Runner, now: datetime, count: int, *, soon: float, after: float) -> list[Untaken]:
    """Deliveries that nobody took for `after` seconds (commands: `soon`), stamped."""
    rows = await runner.fetch("signals_repeat", now=now, count=count, soon=soon, after=after)
    return [
        Untaken(row["id"], row["instance_id"], row["step_run_id"], DeliveryKind(row["kind"]), row["name"], row["sends"])
        for row in rows
    ]


async def wake_steps(runner: Runner, signals: Sequence[Untaken], now: datetime) -> dict[int, str]:
    """Make the steps ready that wait for these; the queue of each signal that has one, by the signal's id."""
    told = [(signal.id, signal.instance_id, signal.step_run_id, signal.name) for signal in signals]
    return {row["signal"]: row["queue"] for row in await runner.fetch("signals_wake", signal=told, now=now)}


async def expire_engines(runner: Runner, now: datetime) -> list[int]:
    """Close the engines whose lease is over; their ids."""
    return [row["id"] for row in await runner.fetch("engines_expire", now=now)]


async def list_closed(runner: Runner) -> list[Holder]:
    """Closed engines that may still hold steps."""
    rows = await runner.fetch("engines_closed")
    return [Holder(row["id"], row["held_since"], row["closed_at"]) for row in rows]


async def list_live(runner: Runner) -> list[Holder]:
    """The engines that aren't closed."""
    rows = await runner.fetch("engines_live")
    return [
        Holder(row["id"], row["held_since"], queues=tuple(row["queues"]), types=tuple(row["types"])) for row in rows
    ]


async def settle_engine(runner: Runner, engine_id: int) -> None:
    """Nothing is left of this closed engine: look at it no more."""
    await runner.fetch("engines_settle", id=engine_id)


async def list_lost(runner: Runner, engine: Holder, span: Span, now: datetime, count: int) -> list[LostStep]:
    """Steps of the engine that are lost: all of a closed one's, else those whose own lease is over."""
    rows = await runner.fetch(
        "steps_lost",
        engine=engine.id,
        since=span.since,
        until=span.until,
        after=span.after,
        is_closed=engine.closed_at is not None,
        now=now,
        count=count,
    )
    return [LostStep(row["id"], row["instance_id"], row["claim_token"], row["claimed_at"]) for row in rows]


async def list_sent(runner: Runner, now: datetime, *, after: float) -> list[str]:
    """The queues with steps that were sent `after` seconds ago or earlier."""
    return [row["queue"] for row in await runner.fetch("queues_sent", now=now, after=after)]


async def repeat_steps(runner: Runner, queue: str, now: datetime, count: int, *, after: float, is_empty: bool) -> int:
    """Make steps unsent that nobody claimed: all where the broker's queue is empty, else at growing distance."""
    rows = await runner.fetch("steps_repeat", queue=queue, now=now, count=count, after=after, is_empty=is_empty)
    return len(rows)


async def list_parked_types(runner: Runner) -> list[str]:
    """The types of steps that wait for an engine with it."""
    return [row["node_type"] for row in await runner.fetch("types_parked")]


async def unpark(runner: Runner, key: str, offers: Collection[tuple[int, str]], now: datetime, count: int) -> list[str]:
    """Make parked steps of a type ready where an engine offers it, as (version, queue); the queue of each."""
    versions = sorted({version for version, _ in offers})
    rows = await runner.fetch("steps_unpark", type=key, versions=versions, offer=sorted(offers), now=now, count=count)
    return [row["queue"] for row in rows]


async def list_overdue(runner: Runner, now: datetime, behind: Overdue, count: int) -> list[Overdue]:
    """Instances whose deadline is over, in order, behind one of them."""
    rows = await runner.fetch("deadlines_due", now=now, since=behind.deadline_at, after=behind.id, count=count)
    return [Overdue(row["id"], row["deadline_at"]) for row in rows]


async def expire(runner: Runner, what: Expiring, now: datetime, count: int) -> int:
    """Delete what has had its time; how many rows that were."""
    return len(await runner.fetch(what, now=now, count=count))


async def get_next_due(runner: Runner, now: datetime) -> datetime | None:
    """When something is due next, after now."""
    due: datetime | None = (await runner.fetch("due_next", now=now))[0]["due_at"]
    return due
