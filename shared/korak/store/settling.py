"""A change of what is held, in force everywhere: nobody goes by what was held before, however late it commits."""

from __future__ import annotations

from collections.abc import Sequence

from korak.loop import Backoff, wait
from korak.store.database import Runner

PATIENCE = 5.0
"""Seconds for which a transaction that hangs is waited for."""


async def settle(runner: Runner, *, patience: float = PATIENCE) -> bool:
    """Wait, after the commit of a change, until every transaction has ended that may have looked before it.

    False where one of them takes longer than `patience` seconds. Those that look later see the change, and aren't
    waited for. `runner` commits each statement alone.
    """
    readers = await _list_readers(runner, None)
    pauses = Backoff(first=0.001, most=0.05)
    waited, looks = 0.0, 0
    while readers and waited < patience:
        looks += 1
        pause = pauses.after(looks)
        await wait(pause)
        waited += pause
        readers = await _list_readers(runner, readers)
    return not readers


async def _list_readers(runner: Runner, known: Sequence[str] | None) -> list[str]:
    return [row["reader"] for row in await runner.fetch("holds_readers", readers=known)]
