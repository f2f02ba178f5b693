"""Publishing to RabbitMQ: many messages in flight, all of them confirmed, or a TransientError in bounded time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from aio_pika.exceptions import PublishError
from aiormq.abc import AbstractChannel
from pamqp.commands import Basic

from korak.broker.gathering import Gathering
from korak.broker.guarding import guard, pause, unreachable
from korak.broker.linking import Link, Session
from korak.broker.messages import Message, encode, encode_ended, pack
from korak.broker.port import DEAD

GATHER: Final = 0.001
"""Seconds between two flushes of one lane: what is sent meanwhile goes together, what comes alone goes at once."""

IN_FLIGHT: Final = 500
"""How many messages are published before their confirms are awaited."""

PERSISTENT: Final = 2
TRANSIENT: Final = 1

_Lane: TypeAlias = tuple[str, str | None]
"""What may share a message: the queue, and the trace where it is sampled."""


@dataclass(frozen=True, slots=True)
class _Letter:
    body: bytes
    queue: str | None
    """The queue that it must reach; None for who listens to the ended."""
    headers: dict[str, str] | None = None


class Publisher:
    """Gathers, packs and publishes on one channel of a link."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._messages: Gathering[_Lane, Message] = Gathering(self._flush, spacing=GATHER)
        self._ulids: Gathering[None, str] = Gathering(self._flush_ended, spacing=GATHER)
        self._opening = asyncio.Lock()
        self._session: Session | None = None
        self._channel: AbstractChannel | None = None

    async def send(self, queue: str, messages: Sequence[Message], traceparent: str | None) -> None:
        """Returns when the server has confirmed all of them."""
        if not messages:
            return
        self._link.session()
        await self._messages.add((queue, traceparent if _is_sampled(traceparent) else None), messages)

    async def send_ended(self, ulids: Sequence[str]) -> None:
        """Tells who listens now."""
        if not ulids:
            return
        self._link.session()
        await self._ulids.add(None, ulids)

    async def bury(self, body: bytes, *, queue: str, why: str) -> None:
        """Sends what can't be parsed to the dead letters, with the reason in its headers."""
        await self._publish([_Letter(body, DEAD, {"reason": why, "queue": queue})])

    async def close(self) -> None:
        """Sends what was gathered."""
        await self._messages.close()
        await self._ulids.close()

    async def _flush(self, lane: _Lane, messages: list[Message]) -> None:
        queue, traceparent = lane
        headers = {"traceparent": traceparent} if traceparent else None
        await self._publish([_Letter(encode(message), queue, headers) for message in pack(messages)])

    async def _flush_ended(self, _: None, ulids: list[str]) -> None:
        await self._publish([_Letter(body, None) for body in encode_ended(ulids)])

    async def _publish(self, letters: list[_Letter]) -> None:
        for start in range(0, len(letters), IN_FLIGHT):
            returned = await self._publish_page(letters[start : start + IN_FLIGHT])
            if returned:
                await self._publish_again(returned)

    async def _publish_again(self, letters: list[_Letter]) -> None:
        """What the server returned. A quorum queue made again before its end was told loses its consumers unheard."""
        await pause(self._link.session().lost, self._link.timing.settle)
        if await self._publish_page(letters):
            raise unreachable("the server returned what was sent: its queue is gone")

    async def _publish_page(self, letters: list[_Letter]) -> list[_Letter]:
        """Publishes and awaits every confirm; those that the server returned because their queue is gone."""
        session = self._link.session()
        for queue in {letter.queue for letter in letters if letter.queue is not None}:
            await session.declare(queue)
        channel = await self._open(session)
        timeout = self._link.timing.confirm
        outcomes = await guard(_gather([self._put(channel, letter) for letter in letters]), timeout)
        returned = []
        for letter, outcome in zip(letters, outcomes, strict=True):
            if outcome is None:
                continue
            session.forget(letter.queue)
            if not isinstance(outcome, PublishError):
                raise unreachable(str(outcome) or type(outcome).__name__) from outcome
            returned.append(letter)
        return returned

    async def _put(self, channel: AbstractChannel, letter: _Letter) -> None:
        topology = self._link.topology
        is_work = letter.queue is not None
        await channel.basic_publish(
            letter.body,
            exchange=topology.work if is_work else topology.ended,
            routing_key="" if letter.queue is None else topology.routing_key(letter.queue),
            properties=Basic.Properties(
                content_type="application/json",
                delivery_mode=PERSISTENT if is_work else TRANSIENT,
                headers=dict(letter.headers) if letter.headers else None,
            ),
            mandatory=is_work,
        )

    async def _open(self, session: Session) -> AbstractChannel:
        async with self._opening:
            if self._channel is None or self._channel.is_closed or self._session is not session:
                channel = await session.channel(confirms=True)
                await guard(self._link.topology.declare_ended(channel), self._link.timing.confirm)
                self._channel, self._session = channel, session
            return self._channel


async def _gather(puts: Sequence[Coroutine[None, None, None]]) -> list[BaseException | None]:
    return await asyncio.gather(*puts, return_exceptions=True)


def _is_sampled(traceparent: str | None) -> bool:
    """Whether the trace is worth a message of its own: the last flag of a W3C traceparent."""
    return traceparent is not None and traceparent[-1:] in tuple("13579bdf")
