"""What joins runs, seen from outside their locks: who waits is woken, commands go to children page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from korak.store.database import Runner

START = (0, -1)
"""The place before all dependencies."""


@dataclass(frozen=True, slots=True)
class Woken:
    """A waiting step that is ready now, and its queue."""

    step: int
    queue: str


@dataclass(slots=True)
class Told:
    """What became of telling: steps that woke, and runs whose step didn't since somebody is at work on it.

    Such a run is to look at what lies there once more, under its lock.
    """

    woken: list[Woken] = field(default_factory=list)
    missed: set[int] = field(default_factory=set)

    def add(self, other: Told) -> None:
        """These too."""
        self.woken += other.woken
        self.missed |= other.missed


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a run's command has come: the children that have it since, and whether they were the last of them."""

    instance: int
    seq: int
    children: tuple[int, ...]
    is_over: bool


async def wake_parents(runner: Runner, ulids: Sequence[str], now: datetime, *, is_sent: bool) -> Told:
    """Wake the steps that wait for these children, which have ended."""
    return _read(await runner.fetch("children_wake", ulids=list(ulids), now=now, is_sent=is_sent))


async def tell(
    runner: Runner, now: datetime, *, is_sent: bool, waits: Sequence[int] = (), awaited: Sequence[int] = ()
) -> Told:
    """Tell what has ended: these waits, after they were committed, and whoever waits for these runs.

    Where one of these waits stands in a round, it is refused.
    """
    given = {"waits": list(waits), "awaited": list(awaited)}
    told = _read(await runner.fetch("dependencies_tell", **given, now=now, is_sent=is_sent))
    rounds = _find_rounds(await runner.fetch("dependencies_round", waits=list(waits))) if waits else {}
    if rounds:
        rows = await runner.fetch("dependencies_refuse", refused=list(rounds.items()), now=now, is_sent=is_sent)
        told.add(_read(rows))
    return told


def _find_rounds(rows: Sequence[Any]) -> dict[int, list[str]]:
    """For each wait the way that leads back to its own run: every place of it has been reached from one before."""
    before: dict[int, dict[str, str]] = {}
    starts: dict[int, str] = {}
    for row in rows:
        starts[row["wait_id"]] = row["start"]
        before.setdefault(row["wait_id"], {}).setdefault(row["place"], row["via"])
    rounds: dict[int, list[str]] = {}
    for wait_id, start in starts.items():
        way, place = [start], before[wait_id][start]
        while place != start and place not in way:
            way.append(place)
            place = before[wait_id][place]
        rounds[wait_id] = [start, *reversed(way)]
    return rounds


async def list_waits(runner: Runner, after: tuple[int, int], count: int) -> list[tuple[int, int]]:
    """A page of what is waited for, as (wait, place), behind a place."""
    rows = await runner.fetch("dependencies_list", wait=after[0], place=after[1], count=count)
    return [(row["wait_id"], row["place"]) for row in rows]


async def advance_cascades(
    runner: Runner, now: datetime, count: int, instances: Sequence[int] | None = None
) -> list[Advance]:
    """Bring commands to the next `count` children: those of these runs (None: of any). Empty where nothing is to do.

    One statement goes on with `count / 10` commands at the most.
    """
    rows = await runner.fetch("cascades_advance", now=now, count=count, instances=instances)
    return [Advance(row["instance_id"], row["seq"], tuple(row["children"]), row["is_over"]) for row in rows]


async def find_runs(runner: Runner, ulids: Sequence[str]) -> list[int]:
    """The ids of runs that are known by their ULID."""
    return [row["id"] for row in await runner.fetch("instances_find", ulids=list(ulids))]


def _read(rows: Sequence[Any]) -> Told:
    woken = [Woken(row["id"], row["queue"]) for row in rows if row["id"] is not None]
    return Told(woken, {row["instance_id"] for row in rows if row["id"] is None})
