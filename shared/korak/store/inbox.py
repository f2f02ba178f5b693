"""The inbox: starts and emits that a waker makes, debounced ones and those that users write in their transactions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from korak.model import InboxKind, JsonObject
from korak.store.database import Runner


@dataclass(frozen=True, slots=True)
class Window:
    """A debounced start as the newest call wants it: `due_at` unless another call comes, `latest_at` in any case."""

    owner_scope: str
    name: str
    key: str
    body: JsonObject
    due_at: datetime
    latest_at: datetime | None
    fingerprint: str
    digest: str | None = None
    starter_id: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One row that is due. `body` is its JSON as it was written, `name` a definition's key or an event's name."""

    id: int
    kind: InboxKind
    owner_scope: str
    name: str
    body: str
    starter_id: str | None
    debounce_key: str | None
    digest: str | None
    fingerprint: str | None
    replaces: str | None


Postponed: TypeAlias = tuple[int, datetime, str | None]
"""A row, when it is due next, and the ULID of the run that it replaces."""


async def debounce(runner: Runner, window: Window, now: datetime) -> datetime:
    """Open a window, or push the open one; when it starts, unless it is pushed again. A statement on its own."""
    [row] = await runner.fetch(
        "inbox_debounce",
        owner_scope=window.owner_scope,
        name=window.name,
        body=window.body,
        starter_id=window.starter_id,
        key=window.key,
        due_at=window.due_at,
        now=now,
        latest_at=window.latest_at,
        digest=window.digest,
        fingerprint=window.fingerprint,
    )
    due_at: datetime = row["due_at"]
    return due_at


async def take(runner: Runner, now: datetime, count: int, *, only: int | None = None) -> list[Entry]:
    """What is due, held until the end of the caller's transaction; one row where its id is given."""
    rows = await runner.fetch("inbox_take", now=now, count=count, only=only)
    return [
        Entry(
            row["id"],
            InboxKind(row["kind"]),
            row["owner_scope"],
            row["name"],
            row["body"],
            row["starter_id"],
            row["debounce_key"],
            row["idempotency_digest"],
            row["fingerprint"],
            row["replaces"],
        )
        for row in rows
    ]


async def list_due(runner: Runner, now: datetime, count: int) -> list[int]:
    """The ids of the rows that are due."""
    return [row["id"] for row in await runner.fetch("inbox_list", now=now, count=count)]


async def drop(runner: Runner, ids: Sequence[int]) -> None:
    """These are done."""
    if ids:
        await runner.fetch("inbox_drop", ids=ids)


async def fail(runner: Runner, wrong: Sequence[tuple[int, JsonObject]], now: datetime) -> None:
    """Keep these with what is wrong with them; nothing looks at them again."""
    if wrong:
        await runner.fetch("inbox_fail", row=wrong, now=now)


async def postpone(runner: Runner, postponed: Sequence[Postponed]) -> None:
    """Look at these later."""
    if postponed:
        await runner.fetch("inbox_postpone", row=postponed)
