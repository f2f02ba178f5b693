"""Steps that are parked for a limit: whose time has come, or whom nobody told that there is room."""

from __future__ import annotations

from korak.core.rows import StepRun
from korak.dispatch import get_messages
from korak.errors import TransientError
from korak.store.rooms import rouse_waiting
from korak_waker.passing import Pass, log

PAGE = 100
"""Keys that one transaction looks at."""


async def rouse(current: Pass) -> None:
    """Look at every key that steps are parked for, page by page. One without room costs a look."""
    after = 0
    while True:
        async with current.tools.hot.transaction() as runner:
            steps, after = await rouse_waiting(runner, after, PAGE, current.now, current.tools.dispatcher)
        current.report.roused += len(steps)
        await _send(current, steps)
        if after == 0:
            return


async def _send(current: Pass, steps: list[StepRun]) -> None:
    """What was marked as sent; engines that pull are told of the queue."""
    current.queues.update(step.queue for step in steps)
    if current.tools.broker.pulls:
        return
    sent: dict[str, list[StepRun]] = {}
    for step in steps:
        if step.sent_at is not None:
            sent.setdefault(step.queue, []).append(step)
    try:
        for queue, marked in sent.items():
            await current.tools.broker.send(queue, get_messages(marked))
    except TransientError as error:
        log.warning("nudge_lost", why=error.message)
