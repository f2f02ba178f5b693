"""Stages 5 and 6: timers, retries and time limits that are due, then condition checks; and deadlines."""

from __future__ import annotations

from datetime import UTC, datetime

from korak.core.facts import DeadlinePassed
from korak.model import WaitKind
from korak.store import waking
from korak.store.transacting import Ask
from korak.store.waking import Due, Overdue
from korak_waker.passing import Pass

COUNTERS = {WaitKind.RETRY: "retries", WaitKind.TIMEOUT: "timeouts", WaitKind.CONDITION: "polls"}
"""What a kind of wait counts as; every other one is a timer."""

BEGINNING = Overdue(0, datetime.min.replace(tzinfo=UTC))


async def wake(current: Pass) -> None:
    """Make the steps ready whose timer, retry or time limit is due (WT-1, WT-4, WT-5)."""
    await _wake(current, conditions=False)


async def poll(current: Pass) -> None:
    """Make the steps ready whose condition is to be looked at again (WT-3)."""
    await _wake(current, conditions=True)


async def _wake(current: Pass, *, conditions: bool) -> None:
    while True:
        due = await waking.stamp_due(current.runner, current.now, current.limits.batch, conditions=conditions)
        for wait in due:
            _count(current, wait)
        if len(due) < current.limits.batch:
            return


def _count(current: Pass, wait: Due) -> None:
    report, metrics = current.report, current.tools.metrics
    counter = COUNTERS.get(wait.kind, "timers")
    setattr(report, counter, getattr(report, counter) + 1)
    current.queues.add(wait.queue)
    metrics.wake_lag_seconds.labels(wait.kind).observe((current.now - wait.due_at).total_seconds())


async def expire(current: Pass) -> None:
    """End the instances whose deadline is over."""
    behind = BEGINNING
    while True:
        overdue = await waking.list_overdue(current.runner, current.now, behind, current.limits.batch)
        current.report.deadlines += await current.answer([Ask(run.id, DeadlinePassed()) for run in overdue])
        for run in overdue:
            lag = (current.now - run.deadline_at).total_seconds()
            current.tools.metrics.wake_lag_seconds.labels("deadline").observe(lag)
        if len(overdue) < current.limits.batch:
            return
        behind = overdue[-1]
