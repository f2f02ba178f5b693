"""Nudges that nobody waits for: sent after a commit while its answer is on its way already."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Self

from korak.core.changes import Changes, spread
from korak.dispatch import Dispatcher


class Sender:
    """Sends through a dispatcher. An async context manager: leaving it waits for what is on its way."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._sending: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sending:
            await asyncio.wait(self._sending)

    def send(self, batch: Sequence[Changes]) -> None:
        """Nudge for what these changes made ready, and tell whom they concern besides. They are committed."""
        if any(changes.ready or changes.is_ended or changes.outward for changes in spread(batch)):
            task = asyncio.create_task(self._dispatcher.send(batch))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)
