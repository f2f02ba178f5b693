"""What joins runs, seen from outside their locks: who waits is woken, commands go to children page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


async def wake_parents(runner: Runner, ulids: Sequence[str], now: datetime, *, is_sent: bool) -> list[Woken]:
    """Wake the steps that wait for these children, which have ended."""
    return _read(await runner.fetch("children_wake", ulids=list(ulids), now=now, is_sent=is_sent))


async def is_any_waiting(runner: Runner) -> bool:
    """Whether any run waits for others that aren't its children."""
    return bool((await runner.fetch("dependencies_any"))[0]["is_any"])


async def tell_waiters(runner: Runner, awaited: Sequence[int], now: datetime, *, is_sent: bool) -> list[Woken]:
    """Tell those who wait for these runs what has become of them."""
    return _read(await runner.fetch("dependencies_tell", awaited=list(awaited), now=now, is_sent=is_sent))


async def look(runner: Runner, waits: Sequence[int], now: datetime, *, is_sent: bool) -> list[Woken]:
    """Look on behalf of waits that are committed: what has ended is told, and who stands in a round is refused."""
    woken = _read(await runner.fetch("dependencies_look", waits=list(waits), now=now, is_sent=is_sent))
    rounds = _find_rounds(await runner.fetch("dependencies_round", waits=list(waits)))
    if rounds:
        rows = await runner.fetch("dependencies_refuse", refused=list(rounds.items()), now=now, is_sent=is_sent)
        woken += _read(rows)
    return woken


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


async def advance_cascade(runner: Runner, now: datetime, count: int) -> int | None:
    """Bring one run's command to the next page of its children; how many have it now. None where nothing is to do."""
    rows = await runner.fetch("cascades_advance", now=now, count=count)
    return int(rows[0]["count"]) if rows else None


def _read(rows: Sequence[Any]) -> list[Woken]:
    return [Woken(row["id"], row["queue"]) for row in rows]
