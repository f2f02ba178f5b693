"""Starts under an id that come upon an open run: asked again until that run has ended, or can be told."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from korak.core.facts import Delivered
from korak.core.identity import Run
from korak.errors import Conflict, Unavailable
from korak.loop import wait
from korak.starting import Started, Wish
from korak_api.operations import Call

PATIENCE: Final = 10.0
"""Seconds for which a start waits for the run that it replaces or greets. What cancels that run stays."""

LOOK: Final = 0.05
LONGEST: Final = 0.4
"""Seconds between two looks: twice as many each time, so that many who want one run don't keep each other from it."""


async def settle(call: Call, wish: Wish) -> Started:
    """Start what is wished for. No transaction waits for the open run: the start is asked again once that has moved.

    Raises Conflict (`id_in_use`) where the run that it replaces doesn't end in time, Unavailable where the one that it
    greets is held all that time.
    """
    clock = call.resources.clock
    deadline = clock.monotonic() + PATIENCE
    pause = LOOK
    while True:
        started = await call.resources.starts.start(wish)
        held = started.start.held
        if held is None:
            return started
        assert wish.identity is not None
        if clock.monotonic() >= deadline:
            if wish.greeting is not None:
                raise Unavailable(what="The instance")
            raise Conflict("id_in_use", id=wish.identity.id, instance=held.ulid)
        if wish.greeting is None:
            wish = replace(wish, identity=replace(wish.identity, replaces=held.ulid))
        if not await _has_moved(call, held):
            await wait(pause)
            pause = min(2 * pause, LONGEST)


async def _has_moved(call: Call, run: Run) -> bool:
    """Have the run obey what lies in front of it, under its lock; False where somebody else holds it."""
    changes = await call.resources.commander.answer(run.id, Delivered())
    return changes is not None and changes.instance.is_ended
