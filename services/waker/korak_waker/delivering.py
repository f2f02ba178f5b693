"""Stages 1 and 2: deliveries that nobody took, and events that nobody matched."""

from __future__ import annotations

from korak.core.facts import Delivered
from korak.model import DeliveryKind
from korak.store import waking
from korak.store.transacting import Ask
from korak.store.waking import Untaken
from korak_waker.passing import Pass

WAKING = (DeliveryKind.SIGNAL, DeliveryKind.EVENT)


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
    instances = dict.fromkeys(signal.instance_id for signal in untaken if signal.id not in woken)
    current.report.deliveries += await current.answer([Ask(instance, Delivered()) for instance in instances])
