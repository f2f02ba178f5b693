"""Events that were emitted: kept once, delivered to the waits that they fit, page by page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from korak.core.matching import list_digests
from korak.model import Json, JsonObject
from korak.store.database import Runner

PAGE: Final = 500
"""Waits that one transaction delivers to."""


@dataclass(frozen=True, slots=True)
class Emit:
    """An event as it was emitted. `source_id` is the emitter's own id of it, or one that was made for it."""

    owner_scope: str
    name: str
    payload: JsonObject
    source_id: str
    created_at: datetime
    expires_at: datetime
    sender: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """The row of an event. `matched_at` is None until every wait that it fits has it."""

    id: int
    is_new: bool
    matched: int = 0
    matched_at: datetime | None = None
    is_kept: bool = True


@dataclass(slots=True)
class Page:
    """What one transaction has delivered: to how many waits, which steps are ready by queue, and where to go on.

    A ready step is its id, its wait's, and whether it counts as sent.

    `missed` are instances whose step others held: they have their delivery, and nobody has been told.
    """

    matched: int = 0
    last: int = 0
    is_last: bool = True
    roused: dict[str, list[tuple[int, int, bool]]] = field(default_factory=dict)
    missed: set[int] = field(default_factory=set)


async def keep(runner: Runner, emit: Emit) -> Kept:
    """Keep an event, or find it where the owner has emitted one of that name and id before."""
    rows = await runner.fetch(
        "emits_keep",
        owner_scope=emit.owner_scope,
        name=emit.name,
        payload=emit.payload,
        source_id=emit.source_id,
        sender=emit.sender,
        expires_at=emit.expires_at,
        created_at=emit.created_at,
    )
    if rows:
        return Kept(rows[0]["id"], True)
    [row] = await runner.fetch("emits_find", owner_scope=emit.owner_scope, name=emit.name, source_id=emit.source_id)
    is_kept = row["expires_at"] > row["created_at"]
    return Kept(row["id"], False, row["matched"], row["matched_at"], is_kept)


async def list_open(runner: Runner, before: datetime, count: int, *, after: int = 0) -> list[int]:
    """Events that were accepted before that time and aren't matched: whoever was at it is gone. From behind `after`."""
    return [row["id"] for row in await runner.fetch("emits_open", before=before, count=count, after=after)]


async def match_page(
    runner: Runner, emit_id: int, after: int, now: datetime, *, may_send: Callable[[str], bool], size: int = PAGE
) -> Page:
    """Deliver an event to the next waits that it fits, and make their steps ready. In a transaction of the caller's.

    Waits of a paused instance get it too, for when it goes on. `may_send` tells whether a step of that queue is sent
    right after the commit. Nothing where the event is matched, or somebody else is at it.
    """
    rows = await runner.fetch("emits_take", id=emit_id)
    if not rows:
        return Page()
    emit = rows[0]
    owner_scope, name, payload = emit["owner_scope"], emit["name"], emit["payload"]
    digests = await _list_digests(runner, owner_scope, name, payload)
    fits = await runner.fetch(
        "emits_match",
        digests=digests,
        after=after,
        count=size,
        owner_scope=owner_scope,
        name=name,
        payload=payload,
        source_id=emit["source_id"],
        sender=emit["sender"],
        now=now,
    )
    told = [fit for fit in fits if fit["is_told"]]
    page = Page(len(told), fits[-1]["id"] if fits else after, len(fits) < size)
    waiting = {fit["step_run_id"]: (fit["id"], fit["instance_id"]) for fit in told if fit["is_pending"]}
    await _rouse(runner, page, waiting, now, may_send)
    await runner.fetch("emits_count", id=emit_id, told=len(told), is_done=page.is_last, now=now)
    return page


async def _list_digests(runner: Runner, owner_scope: str, name: str, payload: Json) -> list[str]:
    shapes = await runner.fetch("shapes_list", owner_scope=owner_scope, name=name)
    return list(list_digests(owner_scope, name, payload, (row["paths"] for row in shapes)))


async def _rouse(
    runner: Runner, page: Page, waiting: dict[int, tuple[int, int]], now: datetime, may_send: Callable[[str], bool]
) -> None:
    """Make the steps ready (each with its wait and its instance) that nobody holds."""
    if not waiting:
        return
    idle = await runner.fetch("steps_rouse", ids=sorted(waiting))
    ready: list[tuple[int, datetime | None]] = []
    for row in idle:
        is_sent = may_send(row["queue"])
        ready.append((row["id"], now if is_sent else None))
        page.roused.setdefault(row["queue"], []).append((row["id"], waiting[row["id"]][0], is_sent))
    if ready:
        await runner.fetch("steps_ready", step=ready, now=now)
    roused = {row["id"] for row in idle}
    page.missed = {instance_id for step_id, (_, instance_id) in waiting.items() if step_id not in roused}
