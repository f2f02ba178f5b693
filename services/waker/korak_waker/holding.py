"""Holds that are over: what they kept goes on, in pages."""

from __future__ import annotations

from korak.store import holds
from korak.store.holds import Ended
from korak_waker.passing import Pass

LATE = 30.0
"""Seconds for which an engine may still park steps for a hold that is over: it hears of that when it looks next."""


async def release(current: Pass) -> None:
    """Let go what holds that are over have kept; one is forgotten when nothing more can come after it."""
    for hold in await holds.list_ended(current.runner, current.now, current.limits.batch):
        is_clear = await _let_go(current, hold)
        if is_clear and hold.released_at <= current.ago(LATE):
            await holds.forget(current.runner, [hold.id])


async def _let_go(current: Pass, hold: Ended) -> bool:
    """Whether there was nothing left. What others hold just now is there in the next pass."""
    count = 0
    while True:
        queues = await holds.unpark(current.runner, hold, current.now, current.limits.batch)
        current.queues.update(queues)
        count += len(queues)
        if len(queues) < current.limits.batch:
            current.report.unheld += count
            return count == 0
