"""Consuming from RabbitMQ: deliveries are kept here until they are taken, and handed back when they aren't."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import structlog
from aiormq.abc import AbstractChannel, DeliveredMessage

from korak.broker.guarding import FAULTS, guard
from korak.broker.linking import Link, Session, Upkeep
from korak.broker.messages import MalformedMessage, Message, decode
from korak.broker.port import Delivery
from korak.broker.publishing import Publisher
from korak.broker.shelf import Shelf
from korak.errors import TransientError

log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)


class Incoming:
    """One delivery of one channel. It ends with the channel: the server delivers it again on another."""

    __slots__ = ("_channel", "_consumer", "_is_settled", "_tag", "message", "queue", "traceparent")

    def __init__(self, consumer: RabbitConsumer, delivered: DeliveredMessage, message: Message, *, queue: str) -> None:
        headers = delivered.header.properties.headers or {}
        traceparent = headers.get("traceparent")
        self.message: Message = message
        self.queue: str = queue
        self.traceparent: str | None = traceparent if isinstance(traceparent, str) else None
        self._consumer = consumer
        self._channel = delivered.channel
        self._tag = delivered.delivery_tag or 0
        self._is_settled = False

    async def ack(self) -> bool:
        """See `korak.broker.port.Delivery`."""
        return await self._settle(partial(self._channel.basic_ack, self._tag, wait=False))

    async def give_back(self, rest: Message | None = None) -> None:
        """See `korak.broker.port.Delivery`."""
        if self._is_settled:
            return
        try:
            await self._consumer.publisher.send(self.queue, [rest or self.message], self.traceparent)
        except TransientError:
            await self.reject()
            raise
        await self.ack()

    async def reject(self) -> bool:
        """Back to where it stood in the queue."""
        return await self._settle(partial(self._channel.basic_nack, self._tag, requeue=True, wait=False))

    async def _settle(self, tell: Callable[[], Awaitable[None]]) -> bool:
        if self._is_settled or self._channel.is_closed:
            return False
        self._is_settled = True
        try:
            async with asyncio.timeout(self._consumer.timeout):
                await tell()
        except FAULTS:
            return False
        self._consumer.settle(self, self._channel)
        return True


class RabbitConsumer:
    """Consumes some queues on a channel of its own, which is set up again whenever it is lost."""

    def __init__(self, link: Link, publisher: Publisher, queues: Sequence[str], prefetch: int) -> None:
        self.publisher = publisher
        self.timeout: float = link.timing.confirm
        self._link = link
        self._queues = tuple(dict.fromkeys(queues))
        self._prefetch = prefetch
        self._shelf: Shelf[Incoming] = Shelf()
        self._unsettled: set[Incoming] = set()
        self._tags: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._upkeep = Upkeep(link, self)
        self._upkeep.start()

    async def get(self, limit: int) -> list[Delivery]:
        """See `korak.broker.port.Consumer`."""
        return await self._shelf.take(limit)

    async def stop(self) -> None:
        """See `korak.broker.port.Consumer`."""
        if not self._shelf.stop():
            return
        channel = await self._upkeep.stop()
        if channel is None:
            return
        for tag in self._tags:
            with suppress(TransientError):
                await guard(channel.basic_cancel(tag), self.timeout)
        if self._tasks:
            await asyncio.wait(self._tasks)
        for delivery in self._shelf.clear():
            await delivery.reject()
        await self._close_if_done(channel)

    def settle(self, delivery: Incoming, channel: AbstractChannel) -> None:
        """One delivery less to wait for; the last one after a stop closes the channel."""
        self._unsettled.discard(delivery)
        if self._shelf.is_stopped and not self._unsettled:
            self._spawn(self._close_if_done(channel))

    async def set_up(self, session: Session, channel: AbstractChannel) -> None:
        """Consumes every queue on a new channel."""
        await guard(channel.basic_qos(prefetch_count=self._prefetch), self.timeout)
        for queue in self._queues:
            session.forget(queue)
            await session.declare(queue)
            name = self._link.topology.queue(queue)
            consume = channel.basic_consume(name, partial(self._receive, queue))
            answer = await guard(consume, self.timeout)
            self._tags.append(answer.consumer_tag or "")

    def lose(self) -> None:
        """The channel is gone: the server delivers again what was not acked."""
        self._shelf.clear()
        self._tags.clear()
        self._unsettled.clear()

    async def _receive(self, queue: str, delivered: DeliveredMessage) -> None:
        try:
            message = decode(delivered.body)
        except MalformedMessage as malformed:
            self._spawn(self._bury(queue, delivered, malformed))
            return
        incoming = Incoming(self, delivered, message, queue=queue)
        self._unsettled.add(incoming)
        if self._shelf.is_stopped:
            await incoming.reject()
            return
        self._shelf.put(incoming)

    async def _bury(self, queue: str, delivered: DeliveredMessage, malformed: MalformedMessage) -> None:
        log.error("message_malformed", queue=queue, why=malformed.why, size=len(delivered.body))
        tag = delivered.delivery_tag or 0
        with suppress(*FAULTS):
            try:
                await self.publisher.bury(delivered.body, queue=queue, why=malformed.why)
            except TransientError:
                await delivered.channel.basic_nack(tag, requeue=True, wait=False)
            else:
                await delivered.channel.basic_ack(tag, wait=False)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close_if_done(self, channel: AbstractChannel) -> None:
        if not self._unsettled and not channel.is_closed:
            with suppress(TransientError):
                await guard(channel.close(), self.timeout)
