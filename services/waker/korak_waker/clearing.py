"""What has had its time: kept events, keys of starts, answers to requests."""

from __future__ import annotations

from korak.store import waking
from korak_waker.passing import Pass


async def clear(current: Pass) -> None:
    """Delete what has expired, in batches."""
    for what in waking.EXPIRING:
        while True:
            count = await waking.expire(current.runner, what, current.now, current.limits.batch)
            current.report.expired += count
            if count < current.limits.batch:
                break
