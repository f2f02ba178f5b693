"""What joins runs: commands on their way to children, and waits for other runs that nobody told."""

from __future__ import annotations

from typing import Final

from korak.core.facts import Delivered
from korak.store import kin
from korak.store.transacting import Ask
from korak_waker.passing import Pass

PAGES: Final = 20
"""How many pages of children one pass brings a command to."""

PAGE: Final = 2_000
"""How many runs that are waited for are looked at in one pass."""


class Kin:
    """Goes through all that is waited for, a page a pass."""

    def __init__(self) -> None:
        self._after = kin.START

    async def cascade(self, current: Pass) -> None:
        """Bring commands to the next children, and have them obey."""
        for _ in range(PAGES):
            advanced = await kin.advance_cascades(current.runner, current.now, current.limits.batch)
            if not advanced:
                return
            children = [child for advance in advanced for child in advance.children]
            current.report.cascaded += len(children)
            await current.answer([Ask(child, Delivered()) for child in children])

    async def look(self, current: Pass) -> None:
        """Look on behalf of those who wait: one who was to be told may have gone with whoever was to tell."""
        page = await kin.list_waits(current.runner, self._after, PAGE)
        self._after = page[-1] if len(page) == PAGE else kin.START
        waits = sorted({wait for wait, _ in page})
        if waits:
            told = await kin.tell(current.runner, current.now, is_sent=False, waits=waits)
            current.queues.update(each.queue for each in told.woken)
            current.report.requeued += len(told.woken)
            await current.answer([Ask(run, Delivered()) for run in sorted(told.missed)])
