"""The pause before a request is sent again, for both faces of the client."""

from __future__ import annotations

from threading import Event

from korak.loop import wait


async def rest_async(seconds: float) -> None:
    """Let others run for so many seconds."""
    await wait(seconds)


def rest(seconds: float) -> None:
    """Block for so many seconds."""
    Event().wait(seconds)
