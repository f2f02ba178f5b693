"""Stage 4: nudges that were lost, and steps that waited for an engine with their type."""

from __future__ import annotations

import structlog

from korak.errors import TransientError
from korak.store import waking
from korak.store.waking import Holder
from korak_waker.passing import Pass

log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)


async def resend(current: Pass) -> None:
    """Make ready again what was sent and nobody claimed, probes too (JB-10), and what nothing told of its due time.

    Only unsent here: the release sends it, in its turn.
    """
    limits = current.limits
    while True:
        woken = await waking.repeat_waits(current.runner, current.now, limits.batch, after=limits.requeue_after)
        current.queues.update(woken)
        current.report.requeued += len(woken)
        if len(woken) < limits.batch:
            break
    for queue in await waking.list_sent(current.runner, current.now, after=limits.requeue_after):
        await _resend(current, queue)


async def _resend(current: Pass, queue: str) -> None:
    limits, is_empty = current.limits, await _is_empty(current, queue)
    while True:
        count = await waking.repeat_steps(
            current.runner, queue, current.now, limits.batch, after=limits.requeue_after, is_empty=is_empty
        )
        current.report.requeued += count
        if count:
            current.queues.add(queue)
        if count < limits.batch:
            return


async def _is_empty(current: Pass, queue: str) -> bool:
    """Whether the broker holds nothing of the queue, so that what was sent is lost."""
    try:
        return await current.tools.broker.depth(queue) == 0
    except TransientError as error:
        log.warning("queue_unseen", queue=queue, why=error.message)
        return False


async def unpark(current: Pass) -> None:
    """Let steps go that no engine could run, where one announces their type now."""
    parked = await waking.list_parked_types(current.runner)
    if not parked:
        return
    engines = await waking.list_live(current.runner)
    for key in parked:
        offers = _list_offers(engines, key)
        while offers:
            freed = await waking.unpark(current.runner, key, offers, current.now, current.limits.batch)
            current.queues.update(freed)
            current.report.requeued += len(freed)
            if len(freed) < current.limits.batch:
                break


def _list_offers(engines: list[Holder], key: str) -> set[tuple[int, str]]:
    """Which versions of a type are run, and from which queues."""
    offers = set()
    for engine in engines:
        for announced in engine.types:
            name, _, version = announced.rpartition("@")
            if name == key and version.isdecimal():
                offers |= {(int(version), queue) for queue in engine.queues}
    return offers
