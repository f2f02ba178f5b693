"""A broker that counts what it carries: messages by queue, sent and taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeAlias

from korak.broker.messages import Message
from korak.broker.port import ESCALATIONS, Broker, Consumer, Delivery, Subscription

Count: TypeAlias = Callable[[str, str, int], None]
"""Told the queue, the way (`sent` or `taken`) and how many messages."""


class CountingBroker:
    """See `korak.broker.port.Broker`: another one, counted."""

    def __init__(self, broker: Broker, count: Count) -> None:
        self._broker = broker
        self._count = count

    @property
    def pulls(self) -> bool:
        """See `korak.broker.port.Broker`."""
        return self._broker.pulls

    @property
    def is_connected(self) -> bool:
        """See `korak.broker.port.Broker`."""
        return self._broker.is_connected

    async def __aenter__(self) -> Self:
        await self._broker.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._broker.__aexit__(kind, error, trace)

    async def send(self, queue: str, messages: Sequence[Message], *, traceparent: str | None = None) -> None:
        """See `korak.broker.port.Broker`. What couldn't be confirmed isn't counted."""
        await self._broker.send(queue, messages, traceparent=traceparent)
        self._count(queue, "sent", len(messages))

    def consumer(self, queues: Sequence[str], prefetch: int) -> Consumer:
        """See `korak.broker.port.Broker`."""
        return _CountingConsumer(self._broker.consumer(queues, prefetch), ",".join(queues), self._count)

    def escalations(self, prefetch: int) -> Consumer:
        """See `korak.broker.port.Broker`."""
        return _CountingConsumer(self._broker.escalations(prefetch), ESCALATIONS, self._count)

    async def depth(self, queue: str) -> int:
        """See `korak.broker.port.Broker`."""
        return await self._broker.depth(queue)

    async def purge(self, queue: str) -> None:
        """See `korak.broker.port.Broker`."""
        await self._broker.purge(queue)

    async def publish_ended(self, ulids: Sequence[str]) -> None:
        """See `korak.broker.port.Broker`."""
        await self._broker.publish_ended(ulids)

    def ended(self) -> Subscription[list[str]]:
        """See `korak.broker.port.Broker`."""
        return self._broker.ended()


class _CountingConsumer:
    def __init__(self, consumer: Consumer, queue: str, count: Count) -> None:
        self._consumer = consumer
        self._queue = queue
        self._count = count

    async def get(self, limit: int) -> list[Delivery]:
        deliveries = await self._consumer.get(limit)
        self._count(self._queue, "taken", len(deliveries))
        return deliveries

    async def stop(self) -> None:
        await self._consumer.stop()
