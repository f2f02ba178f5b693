"""Running a service until a signal: what api, engine, waker, escalator, serve and dev share."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import structlog

from korak import logs
from korak.config import Settings, load_settings
from korak.errors import RegistrationError, SchemaError, SettingsError
from korak.service import get_service

log: structlog.stdlib.BoundLogger = structlog.get_logger()

CRASHED = 1
"""The exit code of a service that ended by an error."""

GRACE = 2.0
"""Seconds in which what still runs must let itself be cancelled once a service has ended."""


def read_settings(steps: str | None = None, chains: str | None = None) -> Settings:
    """The settings of this process's environment, with `steps` for KORAK_STEPS and `chains` for KORAK_CHAINS.

    Modules in the directory are found.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    said = {name: modules for name, modules in (("KORAK_STEPS", steps), ("KORAK_CHAINS", chains)) if modules}
    return load_settings({**os.environ, **said})


def run_service(name: str, steps: str | None = None) -> int:
    """Run one service until a signal and tell the exit code. Raises SchemaOlder."""
    from korak import surveying

    settings = read_settings(steps)
    logs.configure(settings.logs)
    service = get_service(name)
    with logs.about(service=name):
        return run(lambda stop: surveying.serve(stop, settings, service))


def run(main: Callable[[asyncio.Event], Awaitable[None]]) -> int:
    """Run `main` on an event loop of its own until it ends; SIGTERM or SIGINT sets its `stop`, a second one exits."""
    with asyncio.Runner(loop_factory=_get_loop_factory()) as runner:
        try:
            runner.run(_supervise(main))
        except (SettingsError, RegistrationError, SchemaError):
            raise
        except Exception:
            log.exception("crashed")
            return CRASHED
    return 0


async def _supervise(main: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            log.warning("exiting_at_once", signal=number.name)
            os._exit(128 + number)
        log.info("stopping", signal=number.name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
    code = CRASHED
    try:
        await main(stop)
        code = 0
    finally:
        await _end_the_rest(code)


async def _end_the_rest(code: int) -> None:
    """Cancel what still runs on the loop. A handler that won't be cancelled doesn't keep its process."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    stubborn = (await asyncio.wait(rest, timeout=GRACE))[1] if rest else set()
    if stubborn:
        log.warning("exiting_at_once", uncancelled=len(stubborn), exc_info=code != 0)
        os._exit(code)


def _get_loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop
