"""LISTEN and NOTIFY on a connection of its own, which is made again whenever it is lost."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

import asyncpg
import structlog

from korak.errors import TransientError
from korak.store.urls import plain

log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)

TIMEOUT: Final = 5.0
"""Seconds for a connection or an answer."""

HEARTBEAT: Final = 15.0
"""Seconds between two looks whether the server still answers."""

FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0

MAX_KEPT: Final = 10_000
"""How many notifications wait for a listener that doesn't keep up; the oldest go."""

MAX_PAYLOAD: Final = 7999
"""Bytes of a payload: Postgres takes less than 8000."""

_NOTIFY: Final = "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload"
_FAULTS: Final = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


def channel_name(schema: str, channel: str) -> str:
    """The channel's name at the server: readable, within 63 bytes, and never that of another schema or channel."""
    digest = hashlib.sha256(f"{schema}\0{channel}".encode()).hexdigest()[:16]
    readable = re.sub(r"[^a-z0-9]+", "_", f"{schema}_{channel}".lower())[:38].strip("_")
    return f"korak_{readable}_{digest}"


class Listening:
    """The notifications of some channels, from `async with` on; an async iterator of channel and payload.

    After a reconnect each channel gives one empty payload, since some may have been missed.
    """

    def __init__(self, channels: Channels, names: Sequence[str]) -> None:
        self.names: tuple[str, ...] = tuple(names)
        self._channels = channels
        self._kept: deque[tuple[str, str]] = deque(maxlen=MAX_KEPT)
        self._arrived = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._channels.join(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._channels.leave(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[str, str]:
        while not self._kept:
            self._arrived.clear()
            await self._arrived.wait()
        return self._kept.popleft()

    def tell(self, channel: str, payload: str) -> None:
        """Keeps a notification until it is taken."""
        self._kept.append((channel, payload))
        self._arrived.set()


class Channels:
    """The notifier of the Postgres broker (`korak.broker.port.Notifier`): an async context manager."""

    def __init__(self, url: str, schema: str, *, timeout: float = TIMEOUT) -> None:
        self._url = plain(url)
        self._timeout = timeout
        self._schema = schema
        self._connection: asyncpg.Connection | None = None
        self._lost = asyncio.Event()
        self._stop = asyncio.Event()
        self._busy = asyncio.Lock()
        self._listeners: set[Listening] = set()
        self._names: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None
        self._connected = asyncio.Event()

    @property
    def is_connected(self) -> bool:
        """Whether notifying can succeed now."""
        return self._connection is not None and not self._lost.is_set()

    async def __aenter__(self) -> Self:
        """Begins, and waits for the connection, but no longer than the timeout."""
        self._task = asyncio.create_task(self._run())
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                await self._connected.wait()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._lost.set()
        if self._task is not None:
            await self._task

    async def notify(self, channel: str, payloads: Sequence[str]) -> None:
        """One transaction with nothing but these. TransientError where the server doesn't take it in time."""
        if any(len(payload.encode()) > MAX_PAYLOAD for payload in payloads):
            raise ValueError(f"a payload has at most {MAX_PAYLOAD} bytes")
        connection = self._connection
        if connection is None or self._lost.is_set():
            raise TransientError("broker_unavailable", why="not connected")
        try:
            async with asyncio.timeout(self._timeout), self._busy:
                await connection.execute(_NOTIFY, channel_name(self._schema, channel), list(payloads))
        except _FAULTS as error:
            if isinstance(error, TimeoutError):
                self._lost.set()
            raise TransientError("broker_unavailable", why=str(error) or type(error).__name__) from error

    def listen(self, channels: Sequence[str]) -> Listening:
        """Channel and payload of every notification of these channels."""
        return Listening(self, channels)

    async def join(self, listener: Listening) -> None:
        """Tells the listener from now on, or from the next connection on where there is none."""
        self._listeners.add(listener)
        connection = self._connection
        if connection is None:
            return
        try:
            await self._subscribe(connection, listener)
        except _FAULTS:
            self._lost.set()

    async def leave(self, listener: Listening) -> None:
        """Tells the listener no more, and the server where nobody else listens."""
        self._listeners.discard(listener)
        connection = self._connection
        if connection is None:
            return
        unheard = set(listener.names) - {name for other in self._listeners for name in other.names}
        with suppress(*_FAULTS):
            async with asyncio.timeout(self._timeout), self._busy:
                for name in unheard:
                    await connection.remove_listener(channel_name(self._schema, name), self._hear)

    async def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            self._lost.clear()
            try:
                connection = await asyncpg.connect(self._url, timeout=self._timeout, command_timeout=self._timeout)
            except _FAULTS as error:
                failures += 1
                log.warning("channels_unreachable", failures=failures, error=str(error))
                await self._pause(failures)
                continue
            try:
                await self._hold(connection)
                failures = 1
            except _FAULTS as error:
                failures += 1
                log.warning("channels_failed", failures=failures, error=str(error))
            await self._pause(failures)

    async def _hold(self, connection: asyncpg.Connection) -> None:
        connection.add_termination_listener(self._terminate)
        self._connection = connection
        try:
            for listener in list(self._listeners):
                await self._subscribe(connection, listener)
                for name in listener.names:
                    listener.tell(name, "")
            self._connected.set()
            while not self._lost.is_set():
                await self._beat(connection)
            if not self._stop.is_set():
                log.warning("channels_lost")
        finally:
            self._connection = None
            self._connected.clear()
            with suppress(*_FAULTS):
                connection.remove_termination_listener(self._terminate)
                await connection.close(timeout=self._timeout)

    async def _beat(self, connection: asyncpg.Connection) -> None:
        try:
            async with asyncio.timeout(HEARTBEAT):
                await self._lost.wait()
        except TimeoutError:
            async with asyncio.timeout(self._timeout), self._busy:
                await connection.execute("SELECT 1")

    async def _subscribe(self, connection: asyncpg.Connection, listener: Listening) -> None:
        async with asyncio.timeout(self._timeout), self._busy:
            for name in listener.names:
                physical = channel_name(self._schema, name)
                self._names[physical] = name
                await connection.add_listener(physical, self._hear)

    def _hear(self, _connection: Any, _pid: int, physical: str, payload: Any) -> None:
        name = self._names[physical]
        for listener in self._listeners:
            if name in listener.names:
                listener.tell(name, payload)

    def _terminate(self, _connection: Any) -> None:
        self._lost.set()

    async def _pause(self, failures: int) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(failures - 1, 16))):
                await self._stop.wait()
