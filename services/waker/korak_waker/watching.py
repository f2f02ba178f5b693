"""Watching for what is stuck: the gauge, and attempts that nobody holds any more though no engine was seen to end."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from korak.broker.port import DEAD
from korak.core.facts import Lost
from korak.model import InstanceStatus
from korak.store.stuck import Stuck, StuckReason, list_late, look_at
from korak.store.transacting import Ask
from korak_waker.passing import Pass

EVERY = 30.0
"""Seconds between two looks."""

COUNTED = 100_000
"""How many open instances are counted at most."""

PAGES = 10
"""How many pages of open instances one look goes through. What it found counts until it comes by there again."""


class Watch:
    """One waker's watch. Very many open instances are looked at over several looks, so that a look stays cheap."""

    def __init__(self) -> None:
        self._next: datetime | None = None
        self._after = 0
        self._found: dict[int, Stuck] = {}

    async def watch(self, current: Pass) -> None:
        """Count what is stuck, where it is time, and answer attempts past their lease that the reclaimer can't see."""
        if self._next is not None and self._next - timedelta(seconds=EVERY) <= current.now < self._next:
            return
        self._next = current.now + timedelta(seconds=EVERY)
        late = await list_late(current.runner, current.now)
        for _ in range(PAGES):
            if not await self._look(current):
                break
        instances = {(stuck.instance_id, stuck.reason) for stuck in (*late, *self._found.values())}
        counts = Counter(reason for _, reason in instances)
        for reason in StuckReason:
            current.tools.metrics.instances_stuck.labels(reason).set(counts[reason])
        await self._count(current)

    async def _count(self, current: Pass) -> None:
        """Show how many instances are open, and how many messages nobody could read."""
        rows = await current.runner.fetch("instances_count", most=COUNTED)
        found = {row["status"]: row["count"] for row in rows}
        for status in (InstanceStatus.RUNNING, InstanceStatus.WAITING, "paused"):
            current.tools.metrics.instances.labels(status).set(found.get(status, 0))
        current.tools.metrics.dead_letters.set(await current.tools.broker.depth(DEAD))

    async def _look(self, current: Pass) -> bool:
        """Look at the next page; False once the last one was seen."""
        page = await look_at(current.runner, current.now, after=self._after)
        last = page.last
        self._found = {
            instance: stuck
            for instance, stuck in self._found.items()
            if instance <= self._after or (last is not None and instance > last)
        }
        self._found |= {stuck.instance_id: stuck for stuck in page.stuck}
        self._after = last or 0
        await _answer_lost(current, page.stuck)
        return last is not None


async def _answer_lost(current: Pass, found: list[Stuck]) -> None:
    asks = [
        Ask(stuck.instance_id, Lost(stuck.step_run_id, stuck.claim_token), stuck.step_run_id)
        for stuck in found
        if stuck.reason is StuckReason.LEASE_EXPIRED and stuck.step_run_id is not None and stuck.claim_token is not None
    ]
    current.report.reclaimed += await current.answer(asks)
