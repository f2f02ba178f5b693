"""The one loop behind every periodic duty: do it once, wait, and never end by an error."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import structlog

from korak.errors import TransientError

R = TypeVar("R")

log: structlog.stdlib.BoundLogger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Backoff:
    """The pause after an error: `first` seconds, doubled by each error in a row, `most` at most."""

    first: float = 0.1
    most: float = 10.0

    def after(self, failures: int) -> float:
        """The pause after so many errors in a row."""
        return min(self.most, self.first * 2.0 ** min(failures - 1, 60))


async def wait(seconds: float | None, *events: asyncio.Event) -> bool:
    """Wait until one of the events is set, at most so many seconds (None: without end); tells whether one is."""
    if not any(event.is_set() for event in events):
        waiters = [asyncio.ensure_future(event.wait()) for event in events or (asyncio.Event(),)]
        try:
            await asyncio.wait(waiters, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for waiter in waiters:
                waiter.cancel()
    return any(event.is_set() for event in events)


async def run_every(
    stop: asyncio.Event,
    run_once: Callable[[], Awaitable[R]],
    pause: Callable[[R], float],
    *,
    wake: asyncio.Event | None = None,
    backoff: Backoff = Backoff(),
    on_error: Callable[[Exception], None] | None = None,
) -> None:
    """Call `run_once` until `stop` is set, with the pause that `pause` reads from its answer; `wake` cuts it short.

    An error is logged, one that passes by itself without its trace, told to `on_error` and followed by a back-off,
    which only `stop` cuts short. It never ends the loop.
    """
    failures = 0
    events = (stop,) if wake is None else (stop, wake)
    while not stop.is_set():
        if wake is not None:
            wake.clear()
        try:
            seconds = pause(await run_once())
            failures = 0
        except Exception as error:
            failures += 1
            _tell(getattr(run_once, "__qualname__", repr(run_once)), error, failures)
            if on_error is not None:
                on_error(error)
            await wait(backoff.after(failures), stop)
        else:
            await wait(max(0.0, seconds), *events)


def _tell(duty: str, error: Exception, failures: int) -> None:
    if isinstance(error, TransientError):
        log.warning("loop_interrupted", duty=duty, failures=failures, why=error.message)
    else:
        log.error("loop_failed", duty=duty, failures=failures, exc_info=error)
