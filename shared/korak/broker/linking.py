"""A connection to RabbitMQ that is made again whenever it is lost, and channels that are set up again with it.

aio-pika's robust connection isn't used: its publish waits as long as the server is away, it restores channels one by
one while callers already use them, and connections that were found stuck have come back without their consumers. Here
a lost connection is thrown away whole, and everybody sets up afresh what they need on the next one.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol, Self

import aio_pika
import structlog
from aio_pika.abc import AbstractConnection, UnderlayConnection
from aiormq.abc import AbstractChannel

from korak.broker.guarding import FAULTS, Timing, guard, pause, unreachable
from korak.broker.topology import Topology
from korak.errors import TransientError

log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)


class Session:
    """One life of a connection: its channels, and the queues that were declared in it."""

    def __init__(
        self, connection: AbstractConnection, transport: UnderlayConnection, topology: Topology, timing: Timing
    ) -> None:
        self.lost: asyncio.Event = asyncio.Event()
        self._connection = connection
        self._transport = transport.connection
        self._transport.closing.add_done_callback(lambda _: self.lost.set())
        self._topology = topology
        self._timing = timing
        self._control: AbstractChannel | None = None
        self._control_lock = asyncio.Lock()
        self._declared: set[str] = set()

    @classmethod
    async def open(cls, url: str, topology: Topology, timing: Timing) -> Self:
        """Connects. TransientError where that isn't done within `timing.connect`."""
        if "heartbeat=" not in url:
            url += f"{'&' if '?' in url else '?'}heartbeat={timing.heartbeat}"
        connection = await guard(
            aio_pika.connect(url, client_properties={"connection_name": topology.prefix}), timing.connect
        )
        if connection.transport is None:
            raise unreachable("the connection was lost")
        return cls(connection, connection.transport, topology, timing)

    async def close(self) -> None:
        """Ends the connection, which may be dead, and everything on it."""
        with suppress(TransientError):
            await guard(self._connection.close(), self._timing.confirm)

    async def channel(self, *, confirms: bool = False) -> AbstractChannel:
        """A new channel; with `confirms` it publishes."""
        opening = self._transport.channel(publisher_confirms=confirms, on_return_raises=confirms)
        return await guard(opening, self._timing.confirm)

    async def declare(self, queue: str) -> None:
        """Declares a queue, once a session."""
        if queue not in self._declared:
            async with self._control_lock:
                await self._declare(queue)

    def forget(self, queue: str | None) -> None:
        """The queue, or the way to it, may be gone: the next `declare` makes it again."""
        self._declared.discard(queue or "")

    async def count(self, queue: str) -> int:
        """How many messages stand ready in the queue."""
        async with self._control_lock:
            await self._declare(queue)
            return await guard(self._topology.count(await self._controlling(), queue), self._timing.confirm)

    async def purge(self, queue: str) -> None:
        """Drops what stands ready in the queue."""
        async with self._control_lock:
            await self._declare(queue)
            channel = await self._controlling()
            await guard(channel.queue_purge(self._topology.queue(queue)), self._timing.confirm)

    async def _declare(self, queue: str) -> None:
        if queue in self._declared:
            return
        await guard(self._topology.declare_queue(await self._controlling(), queue), self._timing.confirm)
        self._declared.add(queue)

    async def _controlling(self) -> AbstractChannel:
        if self._control is None or self._control.is_closed:
            self._control = await self.channel()
        return self._control


class Link:
    """Keeps one session open, for as long as it takes."""

    def __init__(self, url: str, topology: Topology, timing: Timing) -> None:
        self.topology = topology
        self.timing = timing
        self._url = url
        self._session: Session | None = None
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def is_connected(self) -> bool:
        """Whether there is a session now."""
        return self._session is not None and not self._session.lost.is_set()

    async def open(self) -> None:
        """Begins, and waits for the first session, but no longer than `timing.connect`."""
        self.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.timing.connect):
                await self.wait()

    def start(self) -> None:
        """Begins without waiting; nothing where it has begun."""
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Ends the session and makes no other."""
        self._stop.set()
        if self._session is not None:
            self._session.lost.set()
        if self._task is not None:
            await self._task

    def session(self) -> Session:
        """The session; TransientError at once where there is none."""
        if self._session is None or self._session.lost.is_set():
            raise unreachable("not connected")
        return self._session

    async def wait(self) -> Session:
        """The session, as soon as there is one."""
        while not self.is_connected:
            self._changed.clear()
            await self._changed.wait()
        return self.session()

    async def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                session = await Session.open(self._url, self.topology, self.timing)
            except Exception as error:
                failures += 1
                log.warning("broker_unreachable", failures=failures, error=str(error))
                await pause(self._stop, self.timing.pause(failures))
                continue
            failures = 0
            await self._hold(session)

    async def _hold(self, session: Session) -> None:
        self._session = session
        if self._stop.is_set():
            session.lost.set()
        self._changed.set()
        try:
            await session.lost.wait()
        finally:
            self._session = None
            if not self._stop.is_set():
                log.warning("broker_connection_lost")
            await session.close()


class Kept(Protocol):
    """Who needs a channel kept."""

    async def set_up(self, session: Session, channel: AbstractChannel) -> None:
        """Makes a new channel what is needed."""
        ...

    def lose(self) -> None:
        """The channel has ended, and nobody asked for it."""
        ...


class Upkeep:
    """Keeps one channel set up, on one connection after the other."""

    def __init__(self, link: Link, kept: Kept) -> None:
        self._link = link
        self._kept = kept
        self._stop = asyncio.Event()
        self._ready = asyncio.Event()
        self._ended = asyncio.Event()
        self._channel: AbstractChannel | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins; nothing where it has begun."""
        if self._task is None:
            self._link.start()
            self._task = asyncio.create_task(self._run())

    async def wait(self, timeout: float) -> None:
        """Waits until the channel is set up, but no longer than `timeout`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._ready.wait()

    async def stop(self) -> AbstractChannel | None:
        """Sets up no more. The channel, where one is open: it is the caller's to close."""
        self._stop.set()
        self._ended.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        channel, self._channel = self._channel, None
        return channel if channel is not None and not channel.is_closed else None

    async def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            session = await self._link.wait()
            try:
                await self._keep(session)
                failures = 1
            except Exception as error:
                failures += 1
                log.warning("broker_channel_failed", failures=failures, error=str(error))
            await pause(self._stop, self._link.timing.pause(failures))

    async def _keep(self, session: Session) -> None:
        channel = self._channel = await session.channel()
        self._ended.clear()
        channel.closing.add_done_callback(lambda _: self._ended.set())
        channel.on_consumer_cancel_callbacks.add(lambda _: self._ended.set())
        try:
            await self._kept.set_up(session, channel)
            self._ready.set()
            await self._ended.wait()
        finally:
            if not self._stop.is_set():
                self._ready.clear()
                self._kept.lose()
                await _close(channel, self._link.timing)


async def _close(channel: AbstractChannel, timing: Timing) -> None:
    with suppress(TransientError, *FAULTS):
        await guard(channel.close(), timing.confirm)
