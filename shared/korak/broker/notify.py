"""The broker on Postgres: a NOTIFY says only that a queue has work, engines with free slots then pull it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

import structlog

from korak.broker.gathering import Gathering
from korak.broker.messages import (
    MalformedMessage,
    Message,
    decode,
    decode_ended,
    encode,
    encode_ended,
    pack,
)
from korak.broker.port import ESCALATIONS, Consumer, Delivery, Notifier, Puller, Subscription
from korak.broker.shelf import Shelf
from korak.errors import TransientError

log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)

SPACING: Final = 0.005
"""Seconds between two NOTIFYs of one channel: each of their commits takes a lock of the whole cluster."""

POLL: Final = 1.0
"""Seconds after which a consumer looks even where nobody nudged it."""

_ESCALATIONS: Final = "escalations"
_ENDED: Final = "ended"
_NUDGE: Final = ""


class NotifyBroker:
    """See `korak.broker.port.Broker`. Without a puller it sends and tells, but has no consumers of steps."""

    pulls = True

    def __init__(self, notifier: Notifier, puller: Puller | None = None, *, poll: float = POLL) -> None:
        self._notifier = notifier
        self._puller = puller
        self._poll = poll
        self._nudges: Gathering[str, str] = Gathering(self._flush, spacing=SPACING)
        self._consumers: list[PullConsumer | ToldConsumer] = []

    @property
    def is_connected(self) -> bool:
        """Whether notifying can succeed now."""
        return self._notifier.is_connected

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for consumer in self._consumers:
            await consumer.stop()
        await self._nudges.close()

    async def send(self, queue: str, messages: Sequence[Message], *, traceparent: str | None = None) -> None:
        """See `korak.broker.port.Broker`. Only escalations are told by id; steps and resumes nudge their queue."""
        if not messages:
            return
        if queue == ESCALATIONS:
            await self._nudges.add(_ESCALATIONS, [encode(message).decode() for message in pack(messages)])
        else:
            await self._nudges.add(_channel(queue), [_NUDGE])

    def consumer(self, queues: Sequence[str], prefetch: int) -> Consumer:
        """See `korak.broker.port.Broker`; nothing is held before it is asked for, so `prefetch` bounds nothing."""
        if self._puller is None:
            raise RuntimeError("this broker was opened without a puller")
        consumer = PullConsumer(self, self._notifier, self._puller, queues, self._poll)
        self._consumers.append(consumer)
        return consumer

    def escalations(self, prefetch: int) -> Consumer:
        """See `korak.broker.port.Broker`. Every escalator is told of every one; the claim decides."""
        consumer = ToldConsumer(self, self._notifier)
        self._consumers.append(consumer)
        return consumer

    async def depth(self, queue: str) -> int:
        """Nothing stands at this broker."""
        return 0

    async def purge(self, queue: str) -> None:
        """Nothing stands at this broker."""

    async def publish_ended(self, ulids: Sequence[str]) -> None:
        """See `korak.broker.port.Broker`."""
        if ulids:
            await self._nudges.add(_ENDED, ulids)

    def ended(self) -> EndedSubscription:
        """See `korak.broker.port.Broker`."""
        return EndedSubscription(self._notifier.listen([_ENDED]))

    async def _flush(self, channel: str, payloads: list[str]) -> None:
        if channel == _ENDED:
            payloads = [body.decode() for body in encode_ended(payloads)]
        await self._notifier.notify(channel, list(dict.fromkeys(payloads)))


class Pulled:
    """Messages of the database: their claim commits there, so there is nothing to ack."""

    __slots__ = ("_consumer", "_is_settled", "message")

    traceparent: str | None = None

    def __init__(self, consumer: PullConsumer | ToldConsumer, message: Message) -> None:
        self.message: Message = message
        self._consumer = consumer
        self._is_settled = False

    async def ack(self) -> bool:
        """See `korak.broker.port.Delivery`."""
        is_first, self._is_settled = not self._is_settled, True
        return is_first

    async def give_back(self, rest: Message | None = None) -> None:
        """See `korak.broker.port.Delivery`."""
        if await self.ack():
            await self._consumer.take_back([rest or self.message])


class PullConsumer:
    """Pulls ready steps of some queues when asked, and waits for a nudge where there are none."""

    def __init__(
        self, broker: NotifyBroker, notifier: Notifier, puller: Puller, queues: Sequence[str], poll: float
    ) -> None:
        self._broker = broker
        self._puller = puller
        self._queues = tuple(dict.fromkeys(queues))
        self._poll = poll
        self._nudged = asyncio.Event()
        self._is_stopped = False
        self._pulling: asyncio.Task[list[Message]] | None = None
        self._listening = asyncio.create_task(self._listen(notifier))

    async def get(self, limit: int) -> list[Delivery]:
        """See `korak.broker.port.Consumer`."""
        while not self._is_stopped:
            self._nudged.clear()
            try:
                messages = await self._pull(limit)
                if messages and self._is_stopped:
                    await self.take_back(messages)
                    break
            except TransientError as error:
                log.warning("nothing_pulled", why=error.message)
                messages = []
            if messages:
                return [Pulled(self, message) for message in messages]
            await self._wait()
        return []

    async def stop(self) -> None:
        """See `korak.broker.port.Consumer`."""
        if self._is_stopped:
            return
        self._is_stopped = True
        self._nudged.set()
        self._listening.cancel()
        await asyncio.wait({self._listening})
        if self._pulling is not None:
            with suppress(TransientError):
                await self.take_back(await self._pull(1))

    async def take_back(self, messages: Sequence[Message]) -> None:
        """Makes steps ready again, and nudges who else could take them."""
        if not messages:
            return
        await self._puller.unstamp(messages)
        for queue in self._queues:
            with suppress(TransientError):
                await self._broker.send(queue, messages)

    async def _pull(self, limit: int) -> list[Message]:
        """What a cancelled `get` left behind, else what stands ready now."""
        if self._pulling is None:
            self._pulling = asyncio.create_task(self._puller.pull(self._queues, limit))
        await asyncio.wait({self._pulling})
        pulling, self._pulling = self._pulling, None
        return pulling.result() if pulling is not None else []

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._poll):
                await self._nudged.wait()

    async def _listen(self, notifier: Notifier) -> None:
        async with notifier.listen([_channel(queue) for queue in self._queues]) as nudges:
            async for _ in nudges:
                self._nudged.set()


class ToldConsumer:
    """Takes escalations from the notifications that carry their ids."""

    def __init__(self, broker: NotifyBroker, notifier: Notifier) -> None:
        self._broker = broker
        self._shelf: Shelf[Pulled] = Shelf()
        self._listening = asyncio.create_task(self._listen(notifier))

    async def get(self, limit: int) -> list[Delivery]:
        """See `korak.broker.port.Consumer`."""
        return await self._shelf.take(limit)

    async def stop(self) -> None:
        """See `korak.broker.port.Consumer`."""
        if not self._shelf.stop():
            return
        self._listening.cancel()
        await asyncio.wait({self._listening})
        with suppress(TransientError):
            await self.take_back([delivery.message for delivery in self._shelf.clear()])

    async def take_back(self, messages: Sequence[Message]) -> None:
        """Tells them again, to whoever listens now."""
        await self._broker.send(ESCALATIONS, messages)

    async def _listen(self, notifier: Notifier) -> None:
        async with notifier.listen([_ESCALATIONS]) as told:
            async for _, payload in told:
                if payload != _NUDGE:
                    self._keep(payload)

    def _keep(self, payload: str) -> None:
        try:
            message = decode(payload)
        except MalformedMessage as malformed:
            log.error("message_malformed", queue=ESCALATIONS, why=malformed.why, size=len(payload))
            return
        self._shelf.put(Pulled(self, message))


class EndedSubscription:
    """The ended instances, from their channel."""

    def __init__(self, told: Subscription[tuple[str, str]]) -> None:
        self._told = told

    async def __aenter__(self) -> Self:
        await self._told.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._told.__aexit__(kind, error, trace)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[str]:
        while True:
            _, payload = await anext(self._told)
            ulids = decode_ended(payload)
            if ulids:
                return ulids


def _channel(queue: str) -> str:
    return f"steps.{queue}"
