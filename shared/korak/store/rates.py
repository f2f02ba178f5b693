"""Limits on starts: who may start under the counters of its definition, decided under their lock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from korak.core.opening import Opening
from korak.core.rates import Window
from korak.store.database import Runner


@dataclass(frozen=True, slots=True)
class Refusal:
    """A start that its definition's limit forbids now, and in how many seconds it may come again."""

    limit: int
    retry_after: int


async def count(
    runner: Runner, openings: Iterable[Opening], limits: Mapping[int, int], now: datetime
) -> dict[str, Refusal]:
    """Count new starts against the limits of their definitions (by id, starts a minute); the refused ones by ULID.

    A repeat of a start that stands isn't counted, and neither is a refused one (LM-10). Locks the counters until the
    end of the caller's transaction.
    """
    limited = [opening for opening in openings if opening.version.definition_id in limits]
    if not limited:
        return {}
    windows = await _lock(runner, {_get_key(opening.version.definition_id) for opening in limited}, now)
    digests = [opening.digest for opening in limited if opening.digest]
    rows = await runner.fetch("starts_known", keys=digests, now=now) if digests else []
    known = {row["key"] for row in rows}
    refused: dict[str, Refusal] = {}
    for opening in limited:
        limit = limits[opening.version.definition_id]
        _, window = windows[_get_key(opening.version.definition_id)]
        if opening.digest not in known and not window.take(limit):
            refused[opening.ulid] = Refusal(limit, window.get_pause(limit))
    for row_id, window in windows.values():
        await runner.fetch("rates_count", id=row_id, counters=window.counters, counted_at=window.counted_at)
    return refused


async def _lock(runner: Runner, keys: set[str], now: datetime) -> dict[str, tuple[int, Window]]:
    """Open what is missing before any is locked: whoever waits for another's new counter holds no old one."""
    missing = keys - {row["key"] for row in await runner.fetch("rates_find", keys=sorted(keys))}
    if missing:
        await runner.fetch("rates_open", wanted=[(key,) for key in sorted(missing)])
    rows = await runner.fetch("rates_lock", keys=sorted(keys))
    windows = {row["key"]: (row["id"], Window(list(row["counters"]), row["counted_at"])) for row in rows}
    for _, window in windows.values():
        window.advance(now)
    return windows


def _get_key(definition_id: int) -> str:
    return f"definition:{definition_id}"
