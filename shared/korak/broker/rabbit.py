"""The broker on RabbitMQ: one connection to send by and one to take from."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from korak.broker.consuming import RabbitConsumer
from korak.broker.guarding import Timing
from korak.broker.linking import Link
from korak.broker.messages import Message
from korak.broker.port import ESCALATIONS, Consumer
from korak.broker.publishing import Publisher
from korak.broker.subscribing import RabbitSubscription
from korak.broker.topology import Topology


class RabbitBroker:
    """See `korak.broker.port.Broker`. A server that is short of memory stops reading the senders' connections only."""

    pulls = False

    def __init__(self, url: str, *, prefix: str = "korak", timing: Timing | None = None) -> None:
        topology = Topology(prefix)
        timing = timing or Timing()
        self._sending = Link(url, topology, timing)
        self._taking = Link(url, topology, timing)
        self._publisher = Publisher(self._sending)
        self._consumers: list[RabbitConsumer] = []

    @property
    def is_connected(self) -> bool:
        """Whether sending can succeed now."""
        return self._sending.is_connected

    async def __aenter__(self) -> Self:
        await self._sending.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for consumer in self._consumers:
            await consumer.stop()
        await self._publisher.close()
        await self._taking.close()
        await self._sending.close()

    async def send(self, queue: str, messages: Sequence[Message], *, traceparent: str | None = None) -> None:
        """See `korak.broker.port.Broker`."""
        await self._publisher.send(queue, messages, traceparent)

    def consumer(self, queues: Sequence[str], prefetch: int) -> Consumer:
        """See `korak.broker.port.Broker`."""
        consumer = RabbitConsumer(self._taking, self._publisher, queues, prefetch)
        self._consumers.append(consumer)
        return consumer

    def escalations(self, prefetch: int) -> Consumer:
        """See `korak.broker.port.Broker`."""
        return self.consumer([ESCALATIONS], prefetch)

    async def depth(self, queue: str) -> int:
        """See `korak.broker.port.Broker`."""
        return await self._sending.session().count(queue)

    async def purge(self, queue: str) -> None:
        """See `korak.broker.port.Broker`."""
        await self._sending.session().purge(queue)

    async def publish_ended(self, ulids: Sequence[str]) -> None:
        """See `korak.broker.port.Broker`."""
        await self._publisher.send_ended(ulids)

    def ended(self) -> RabbitSubscription:
        """See `korak.broker.port.Broker`."""
        return RabbitSubscription(self._taking)
