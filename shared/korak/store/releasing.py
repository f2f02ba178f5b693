"""The release query: which ready steps of a queue go next, and how many its broker may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from korak.model import Probe, StepStatus
from korak.store.database import Runner

MOST_OWNERS = 500
"""How many owners have their turn in one call; the next call goes on behind the last of them."""


@dataclass(frozen=True, slots=True)
class Released:
    """A step that was ready and is now sent."""

    id: int
    status: StepStatus
    probe: Probe | None


class Turns:
    """The release query of one queue, with its place among the owners where there are very many."""

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self._after = ""

    async def release(self, runner: Runner, count: int, now: datetime) -> list[Released]:
        """Stamp at most `count` ready steps as sent: by priority, then in turns between owners."""
        rows = await runner.fetch("steps_release", queue=self.queue, after=self._after, count=count, now=now)
        if not rows and self._after:
            self._after = ""
            rows = await runner.fetch("steps_release", queue=self.queue, after="", count=count, now=now)
        if rows:
            self._after = rows[0]["last_owner"] if rows[0]["owners"] >= MOST_OWNERS else ""
        return [
            Released(row["id"], StepStatus(row["status"]), None if row["probe"] is None else Probe(row["probe"]))
            for row in rows
        ]


async def unstamp(runner: Runner, ids: Sequence[int]) -> int:
    """These were sent and not taken: they stand ready again. How many did."""
    return len(await runner.fetch("steps_unstamp", ids=sorted(ids)))


async def list_backlogs(runner: Runner) -> list[str]:
    """The queues in which something ready waits to be sent."""
    return [row["queue"] for row in await runner.fetch("queues_backlog")]


async def lock_queue(runner: Runner, queue: str) -> bool:
    """Be the one releaser of the queue until the transaction ends. False where another is."""
    return bool((await runner.fetch("queues_lock", queue=queue))[0]["is_locked"])


async def get_room(runner: Runner, queue: str) -> int:
    """How many more ids the queue's broker may hold."""
    return int((await runner.fetch("queues_outstanding", queue=queue))[0]["room"])
