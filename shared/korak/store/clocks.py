"""Measuring how far the database's clock is from this process's, by the one statement that asks the server."""

from __future__ import annotations

from korak.clock import Clock
from korak.store.database import Runner


async def measure(runner: Runner, clock: Clock) -> None:
    """Correct the clock to the database's: its time less the middle of the question."""
    before = clock.now()
    rows = await runner.fetch("clock_read")
    after = clock.now()
    clock.adjust(rows[0]["now"] - (before + (after - before) / 2))
