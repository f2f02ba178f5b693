"""The exchanges and queues at RabbitMQ: their names, kinds and declarations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from aiormq.abc import AbstractChannel

from korak.broker.port import DEAD, ESCALATIONS

MAX_QUEUE_NAME: Final = 200
"""Bytes of a queue's name; AMQP ends at 255, the prefix goes before it."""

_QUORUM: Final = {"x-queue-type": "quorum"}


@dataclass(frozen=True, slots=True)
class Topology:
    """The names under one prefix. Several Koraks on one server need several prefixes, or several virtual hosts."""

    prefix: str = "korak"

    @property
    def work(self) -> str:
        """The exchange of all messages."""
        return f"{self.prefix}.work"

    @property
    def ended(self) -> str:
        """The exchange that tells everybody which instances have ended."""
        return f"{self.prefix}.ended"

    def queue(self, queue: str) -> str:
        """The server's name of a queue."""
        return f"{self.prefix}.{self.routing_key(queue)}"

    def routing_key(self, queue: str) -> str:
        """What leads a message from the exchange into a queue."""
        if queue == ESCALATIONS:
            return "escalations"
        if queue == DEAD:
            return "dead"
        if not queue or len(queue.encode()) > MAX_QUEUE_NAME:
            raise ValueError(f"a queue's name has 1 to {MAX_QUEUE_NAME} bytes, not {queue!r}")
        return f"steps.{queue}"

    async def declare_queue(self, channel: AbstractChannel, queue: str) -> None:
        """The exchange, the queue and the way between them; nothing changes where they are there."""
        name = self.queue(queue)
        await channel.exchange_declare(self.work, exchange_type="direct", durable=True)
        await channel.queue_declare(name, durable=True, arguments=dict(_QUORUM))
        await channel.queue_bind(name, self.work, self.routing_key(queue))

    async def count(self, channel: AbstractChannel, queue: str) -> int:
        """How many messages stand ready in a queue that is declared."""
        answer = await channel.queue_declare(self.queue(queue), durable=True, arguments=dict(_QUORUM))
        return answer.message_count or 0

    async def declare_ended(self, channel: AbstractChannel) -> None:
        """The exchange of the ended; it forgets, and so does the server when it restarts."""
        await channel.exchange_declare(self.ended, exchange_type="fanout", durable=False)

    async def declare_subscription(self, channel: AbstractChannel) -> str:
        """A queue that only this connection reads, gone with it; its name."""
        await self.declare_ended(channel)
        answer = await channel.queue_declare(exclusive=True, auto_delete=True)
        name = answer.queue or ""
        await channel.queue_bind(name, self.ended)
        return name
