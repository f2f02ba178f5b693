"""What is told to everybody: kept for one subscriber, the oldest dropped when it doesn't keep up."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from aiormq.abc import AbstractChannel, DeliveredMessage

from korak.broker.guarding import guard
from korak.broker.linking import Link, Session, Upkeep
from korak.broker.messages import decode_ended

T = TypeVar("T")

MAX_KEPT: Final = 10_000
"""How many bodies wait for a subscriber that doesn't keep up."""


class Mailbox(Generic[T]):
    """Holds what was told until it is taken."""

    def __init__(self) -> None:
        self._kept: deque[T] = deque(maxlen=MAX_KEPT)
        self._arrived = asyncio.Event()

    def put(self, told: T) -> None:
        """Keeps it, and drops the oldest where there are too many."""
        self._kept.append(told)
        self._arrived.set()

    async def take(self) -> T:
        """The oldest; waits for one."""
        while not self._kept:
            self._arrived.clear()
            await self._arrived.wait()
        return self._kept.popleft()


class RabbitSubscription:
    """The ended instances, from a queue that only this connection reads, made again with every connection."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._mailbox: Mailbox[list[str]] = Mailbox()
        self._upkeep = Upkeep(link, self)

    async def __aenter__(self) -> Self:
        self._upkeep.start()
        await self._upkeep.wait(self._link.timing.connect)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        channel = await self._upkeep.stop()
        if channel is not None:
            await guard(channel.close(), self._link.timing.confirm)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[str]:
        return await self._mailbox.take()

    async def set_up(self, session: Session, channel: AbstractChannel) -> None:
        """Consumes a queue of its own on a new channel."""
        timeout = self._link.timing.confirm
        name = await guard(self._link.topology.declare_subscription(channel), timeout)
        await guard(channel.basic_consume(name, self._receive, no_ack=True), timeout)

    def lose(self) -> None:
        """What was told meanwhile is missed."""

    async def _receive(self, delivered: DeliveredMessage) -> None:
        self._mailbox.put(decode_ended(delivered.body))
