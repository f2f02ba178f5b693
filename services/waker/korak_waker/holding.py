"""Holds that are over: what they kept goes on, in pages."""

from __future__ import annotations

from korak.store import holds
from korak.store.holds import Ended
from korak.store.settling import settle
from korak_waker.passing import Pass

PATIENCE = 1.0
"""Seconds for which a pass waits for who may still park a step for a hold that is over; the next pass does so again."""


async def release(current: Pass) -> None:
    """Let go what holds that are over have kept; one is forgotten when nothing is left and nothing can come."""
    ended = await holds.list_ended(current.runner, current.now, current.limits.batch)
    if not ended:
        return
    is_settled = await settle(current.runner, patience=PATIENCE)
    for hold in ended:
        await _let_go(current, hold)
        if is_settled:
            await holds.forget(current.runner, hold, current.now)


async def _let_go(current: Pass, hold: Ended) -> None:
    """What others have locked just now is there in the next pass."""
    is_full = True
    while is_full:
        queues = await holds.unpark(current.runner, hold, current.now, current.limits.batch)
        current.queues.update(queues)
        current.report.unheld += len(queues)
        is_full = len(queues) == current.limits.batch
