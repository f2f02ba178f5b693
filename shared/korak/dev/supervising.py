"""The parent's end of a tether: keeps a child running, and starts it again when it has died."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import structlog

from korak.clock import Clock
from korak.loop import Backoff, wait

log: structlog.stdlib.BoundLogger = structlog.get_logger()

BACKOFF = Backoff(first=0.2)
STABLE = 10.0
"""Seconds after which a child counts as having run: its death is the first in a row again."""


@dataclass(frozen=True, slots=True)
class Program:
    """A Python module that is run as a child: `python -m module arguments`. `grace`: seconds to end in when asked."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()
    environ: Mapping[str, str] = field(default_factory=dict)
    grace: float = 5.0


class Supervisor:
    """Runs one program until it is stopped. The first restart comes at once, those of a crash loop after a pause."""

    def __init__(
        self,
        program: Program,
        clock: Clock,
        *,
        on_death: Callable[[int], Awaitable[None]] | None = None,
        backoff: Backoff = BACKOFF,
    ) -> None:
        self._program = program
        self._clock = clock
        self._on_death = on_death
        self._backoff = backoff
        self._process: asyncio.subprocess.Process | None = None
        self._clearing: set[asyncio.Task[None]] = set()

    @property
    def program(self) -> Program:
        """What it runs."""
        return self._program

    @property
    def pid(self) -> int | None:
        """The child's; None where there is none just now."""
        return None if self._process is None else self._process.pid

    async def run(self, stop: asyncio.Event) -> None:
        """Keep the child running until `stop` is set, then end it."""
        failures = 0
        while not stop.is_set():
            began = self._clock.monotonic()
            self._process = process = await self._spawn()
            tell = log.warning if failures else log.info
            tell("child_started", child=self._program.name, pid=process.pid)
            code = await self._watch(process, stop)
            self._process = None
            if code is None:
                break
            failures = 1 if self._clock.monotonic() - began >= STABLE else failures + 1
            pause = 0.0 if failures == 1 else self._backoff.after(failures - 1)
            log.warning("child_died", child=self._program.name, pid=process.pid, exit_code=code, restart_in=pause)
            self._clear(process.pid)
            await wait(pause, stop)
        await asyncio.gather(*self._clearing)

    async def _spawn(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "korak.dev.tether", str(os.getpid()), self._program.module, *self._program.arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=sys.stderr.fileno(),
            env={**os.environ, **self._program.environ},
            start_new_session=True,  # a Ctrl-C in the terminal is for the parent, which then stops the child in order
        )

    async def _watch(self, process: asyncio.subprocess.Process, stop: asyncio.Event) -> int | None:
        """The exit code of a child that died by itself; None once it was ended because `stop` is set."""
        dying = asyncio.ensure_future(process.wait())
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait({dying, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not stop.is_set():
                return dying.result()
            await self._end(process, dying)
            return None
        finally:
            stopping.cancel()
            if not dying.done():
                process.kill()
                await dying

    async def _end(self, process: asyncio.subprocess.Process, dying: asyncio.Future[int]) -> None:
        if not dying.done():
            process.terminate()
            await asyncio.wait({dying}, timeout=self._program.grace)
        if not dying.done():
            log.warning("child_killed", child=self._program.name, pid=process.pid, grace=self._program.grace)
            process.kill()
            await dying

    def _clear(self, pid: int) -> None:
        """Clean up behind a dead child while the next one is starting."""
        if self._on_death is not None:
            task = asyncio.ensure_future(_tolerate(self._on_death(pid)))
            self._clearing.add(task)
            task.add_done_callback(self._clearing.discard)


async def _tolerate(duty: Awaitable[None]) -> None:
    try:
        await duty
    except Exception:
        log.exception("clearing_failed")
