"""Following instances live: history and chunks as they come, with one look at the database for all who are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import orjson

from korak.clock import Clock
from korak.errors import TransientError
from korak.graphs.plans import Plan
from korak.loop import wait
from korak.store import chunks, details, instances
from korak.store.database import Connection, Database, Session
from korak.store.plans import Plans
from korak_api.rendering import show_chunk, show_event
from korak_api.waiting import Waiter

EVENTS: Final = 500
CHUNKS: Final = 100
"""Lines of history, and chunks, of one look."""

QUICK, SLOW = 0.2, 1.0
"""Seconds between two looks while something happens, and when nothing has for a while."""

ALIVE: Final = 15.0
"""Seconds without anything to tell after which a follower is told just that."""

KNOWN: Final = 1_000
"""Visits of which a follower remembers what it has seen, the newest ones."""

BEGIN: Final = b"retry: 2000\n\n"
COMMENT: Final = b": alive\n\n"


@dataclass(frozen=True, slots=True)
class Place:
    """How far a follower is: the last line of history, and the last chunk of each visit."""

    seq: int
    seen: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """What stands behind a place, as it is sent. `end` is what is sent last, once the instance has cleaned up."""

    place: Place
    frames: bytes
    is_whole: bool
    end: bytes | None


class Feed:
    """What the followers of one instance share: whoever is at the same place gets the same look of this turn."""

    def __init__(self, instance_id: int, database: Database, plans: Plans | None = None) -> None:
        self.followers = 0
        self.turn = asyncio.Event()
        self._instance_id = instance_id
        self._database = database
        self._plans = plans or Plans()
        self._plan: Plan | None = None
        self._looks: dict[Place, asyncio.Task[Page]] = {}
        self._has_moved = True

    async def look(self, place: Place) -> Page:
        """What stands behind a place in this turn. Raises TransientError."""
        task = self._looks.get(place)
        if task is None:
            task = self._looks[place] = asyncio.create_task(self._load(place))
            task.add_done_callback(_note)
        return await asyncio.shield(task)

    async def run(self, waiter: Waiter, ulid: str) -> None:
        """Begin one turn after the other, quickly while there is something to tell."""
        pause, has_ended = QUICK, False
        with waiter.watch(ulid) as watch:
            while True:
                await wait(pause, *(() if has_ended else (watch.ended,)))
                self._has_moved = self._has_moved or watch.ended.is_set() is not has_ended
                has_ended = watch.ended.is_set()
                pause = QUICK if self._has_moved else min(SLOW, pause * 1.5)
                self._has_moved = False
                self._looks.clear()
                before, self.turn = self.turn, asyncio.Event()
                before.set()

    async def _load(self, place: Place) -> Page:
        """The status first: where it says that the instance has ended and cleaned up, history is complete."""
        async with self._database.acquire() as connection:
            status = await instances.get_end(connection, self._instance_id)
            lines = await details.list_events(connection, self._instance_id, after=place.seq, limit=EVENTS)
            seen = dict(place.seen)
            plan = await self._get_plan(connection) if lines else None
            new = await chunks.follow(connection, self._instance_id, seen, limit=CHUNKS)
        self._has_moved = self._has_moved or bool(lines or new)
        told = [write("history", show_event(line, plan), seq=line["seq"]) for line in lines]
        told += [write("chunk", show_chunk(chunk)) for chunk in new]
        seen.update((chunk["execution_id"], chunk["index"]) for chunk in new)
        after = Place(lines[-1]["seq"] if lines else place.seq, tuple(sorted(seen.items())[-KNOWN:]))
        is_whole = len(lines) < EVENTS and len(new) < CHUNKS
        return Page(after, b"".join(told), is_whole, None if status is None else write("end", {"status": status}))

    async def _get_plan(self, connection: Connection) -> Plan | None:
        """The graph of the instance, which tells what its steps wrote; it never changes."""
        if self._plan is None:
            version_id = await instances.get_version_id(connection, self._instance_id)
            found = {} if version_id is None else await self._plans.get(Session(connection), [version_id])
            self._plan = next(iter(found.values()), None)
        return self._plan


class Feeds:
    """The feeds of one process, each as long as somebody follows it."""

    def __init__(self, database: Database, waiter: Waiter, clock: Clock, plans: Plans) -> None:
        self._database = database
        self._plans = plans
        self._waiter = waiter
        self._clock = clock
        self._feeds: dict[int, tuple[Feed, asyncio.Task[None]]] = {}

    @property
    def followers(self) -> int:
        """How many follow an instance here."""
        return sum(feed.followers for feed, _ in self._feeds.values())

    async def follow(self, instance_id: int, ulid: str, after: int) -> AsyncIterator[bytes]:
        """Server-sent events: history after a number and the chunks that are stored, then both as they come.

        It ends with the instance, once that has cleaned up, or with the service.
        """
        stop, place, told_at = self._waiter.stop, Place(after), self._clock.monotonic()
        yield BEGIN
        with self._join(instance_id, ulid) as feed:
            while not stop.is_set():
                turn = feed.turn
                page = await _look(feed, place)
                if page is not None and page.frames:
                    place, told_at = page.place, self._clock.monotonic()
                    yield page.frames
                if page is not None and page.is_whole and page.end is not None:
                    yield page.end
                    return
                if page is None or page.is_whole:
                    await wait(ALIVE, turn, stop)
                if self._clock.monotonic() - told_at >= ALIVE:
                    told_at = self._clock.monotonic()
                    yield COMMENT

    @contextmanager
    def _join(self, instance_id: int, ulid: str) -> Iterator[Feed]:
        if instance_id not in self._feeds:
            made = Feed(instance_id, self._database, self._plans)
            self._feeds[instance_id] = made, asyncio.create_task(made.run(self._waiter, ulid))
        feed, task = self._feeds[instance_id]
        feed.followers += 1
        try:
            yield feed
        finally:
            feed.followers -= 1
            if not feed.followers:
                task.cancel()
                del self._feeds[instance_id]


def write(name: str, data: Mapping[str, Any], *, seq: int | None = None) -> bytes:
    """One server-sent event. Only history is numbered: a follower goes on behind it."""
    head = b"" if seq is None else f"id: {seq}\n".encode()
    return head + f"event: {name}\ndata: ".encode() + orjson.dumps(data) + b"\n\n"


async def _look(feed: Feed, place: Place) -> Page | None:
    """None while the database can't be asked: the next turn asks again."""
    try:
        return await feed.look(place)
    except TransientError:
        return None


def _note(task: asyncio.Task[Page]) -> None:
    """An error is the followers'; where none is left it is nobody's."""
    if not task.cancelled():
        task.exception()
