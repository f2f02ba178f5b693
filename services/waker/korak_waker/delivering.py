"""Stages 1 and 2: events that nobody matched to their end, and deliveries that nobody took."""

from __future__ import annotations

from collections.abc import Iterable

from korak.core.facts import Delivered
from korak.model import DeliveryKind
from korak.store import emits, waking
from korak.store.transacting import Ask
from korak.store.waking import Untaken
from korak_waker.passing import Pass

WAKING = (DeliveryKind.SIGNAL, DeliveryKind.EVENT)


async def match(current: Pass) -> None:
    """Match the events whose emitter is gone: it took the event, and ended before every wait had it."""
    limits, after = current.limits, 0
    while True:
        left = await emits.list_open(current.runner, current.ago(limits.unmatched), limits.batch, after=after)
        for emit in left:
            match = await current.tools.matcher.match(emit, current.now)
            current.report.matched += match.matched
            await _decide(current, match.missed)
        if len(left) < limits.batch:
            return
        after = left[-1]


async def deliver(current: Pass) -> None:
    """Send deliveries again: what somebody waits for wakes its step, all else is decided here (WT-8, WT-16)."""
    limits = current.limits
    while True:
        untaken = await waking.repeat_signals(
            current.runner, current.now, limits.batch, soon=limits.soon, after=limits.requeue_after
        )
        await _hand_on(current, untaken)
        if len(untaken) < limits.batch:
            return


async def _hand_on(current: Pass, untaken: list[Untaken]) -> None:
    """The first time a delivery wakes the step that waits for it; where that didn't help, the core decides about it."""
    told = [signal for signal in untaken if signal.kind in WAKING and signal.sends == 0]
    woken = await waking.wake_steps(current.runner, told, current.now) if told else {}
    current.queues.update(woken.values())
    current.report.requeued += len(woken)
    current.report.deliveries += await _decide(
        current, [signal.instance_id for signal in untaken if signal.id not in woken]
    )


async def _decide(current: Pass, instances: Iterable[int]) -> int:
    return await current.answer([Ask(instance, Delivered()) for instance in dict.fromkeys(instances)])
