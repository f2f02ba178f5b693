"""Calls into the AMQP client that can neither hang nor pass a lost connection off as a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from aio_pika.exceptions import CONNECTION_EXCEPTIONS

from korak.errors import TransientError

T = TypeVar("T")

FAULTS: Final = (*CONNECTION_EXCEPTIONS, TimeoutError)
"""What the client raises for a connection, a channel or a server that is gone or doesn't answer."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How long to wait for the server, in seconds."""

    connect: float = 5.0
    """For a connection, and at entry before going on without one."""
    confirm: float = 5.0
    """For the confirm of what was sent, and for any other answer."""
    heartbeat: int = 10
    """Between heartbeats; three that are missed end the connection."""
    settle: float = 0.5
    """Before a queue that was deleted under us is made again: the server must have told its consumers first."""
    first_pause: float = 0.1
    longest_pause: float = 5.0

    def pause(self, failures: int) -> float:
        """How long to wait after so many failures in a row."""
        return min(self.longest_pause, self.first_pause * 2.0 ** min(failures - 1, 16))


async def guard(call: Coroutine[Any, Any, T], timeout: float) -> T:
    """The result of `call`; TransientError where the connection fails it or it takes longer than `timeout`.

    It runs as a task of its own, since the client cancels what still waits when a connection closes: seen from here
    that would look like the caller's own cancellation.
    """
    task = asyncio.ensure_future(call)
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout)
    finally:
        if not task.done():
            task.add_done_callback(_forget)
            task.cancel()
    if not done:
        raise unreachable(f"no answer within {timeout:g} s")
    if task.cancelled():
        raise unreachable("the connection was lost")
    error = task.exception()
    if error is None:
        return task.result()
    if isinstance(error, FAULTS):
        raise unreachable(str(error) or type(error).__name__) from error
    raise error


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Waits for `seconds`, or until `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return


def unreachable(why: str) -> TransientError:
    """What a caller gets while the broker can't take or confirm anything."""
    return TransientError("broker_unavailable", why=why)


def _forget(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
