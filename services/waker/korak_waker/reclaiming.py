"""Stage 3: engines whose lease is over, and the attempts that they or their own time have lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from korak.core.facts import Lost
from korak.store import waking
from korak.store.transacting import Ask
from korak.store.waking import Holder, LostStep, Span
from korak_waker.passing import Pass

FOREVER = datetime.max.replace(tzinfo=UTC)


class Reclaimer:
    """Takes steps over from engines that are gone. It remembers when to look at each of the others again.

    A closed engine may still commit a claim that was under way: it is looked at until two leases after its end.
    """

    def __init__(self) -> None:
        self._closed: dict[int, datetime] = {}
        self._live: dict[int, datetime] = {}

    async def reclaim(self, current: Pass) -> None:
        """Close what is over, then take over what closed engines and overdue attempts have left (JB-12, WK-11)."""
        if current.may_reclaim:
            await waking.expire_engines(current.runner, current.now)
        closed, live = await waking.list_closed(current.runner), await waking.list_live(current.runner)
        for engine in _pick(closed, self._closed, current.now):
            if await self._take_over(current, engine):
                self._closed[engine.id] = current.now + timedelta(seconds=current.limits.lease / 4)
        for engine in _pick(live, self._live, current.now):
            await _answer_lost(current, engine, current.ago(current.limits.grace))
            self._live[engine.id] = current.now + timedelta(seconds=current.limits.grace)

    async def _take_over(self, current: Pass, engine: Holder) -> bool:
        """Take over all that the closed engine holds; whether nothing of it was left to other's locks."""
        is_clear = await _answer_lost(current, engine, FOREVER)
        if is_clear and engine.closed_at is not None and engine.closed_at <= current.ago(2 * current.limits.lease):
            await waking.settle_engine(current.runner, engine.id)
        return is_clear


def _pick(engines: list[Holder], look_at: dict[int, datetime], now: datetime) -> list[Holder]:
    """The engines whose time it is; those that aren't there any more are forgotten."""
    for gone in look_at.keys() - {engine.id for engine in engines}:
        del look_at[gone]
    return [engine for engine in engines if look_at.get(engine.id, now) <= now]


async def _answer_lost(current: Pass, engine: Holder, until: datetime) -> bool:
    """Answer every lost step of the engine that was claimed before `until`; whether each of them could be."""
    span = Span(engine.held_since, until)
    found = changed = 0
    while True:
        lost = await waking.list_lost(current.runner, engine, span, current.now, current.limits.batch)
        found += len(lost)
        changed += await _answer(current, lost)
        if len(lost) < current.limits.batch:
            return found == changed
        span = Span(lost[-1].claimed_at, until, lost[-1].id)


async def _answer(current: Pass, lost: list[LostStep]) -> int:
    changed = await current.answer([Ask(step.instance_id, Lost(step.id, step.claim_token), step.id) for step in lost])
    current.report.reclaimed += changed
    current.tools.metrics.leases_expired.inc(changed)
    return changed
