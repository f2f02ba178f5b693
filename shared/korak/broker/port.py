"""The broker port, and the ports that the Postgres broker stands on."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

from korak.broker.messages import Message

ESCALATIONS: Final = "*escalations"
"""The name, for `send`, `depth` and `purge`, of the one queue that FireEscalation goes to."""

DEAD: Final = "*dead"
"""The name, for `depth` and `purge`, of the queue of what couldn't be parsed."""

T_co = TypeVar("T_co", covariant=True)


class Delivery(Protocol):
    """One message that was taken and is not yet acked."""

    @property
    def message(self) -> Message:
        """What it carries."""
        ...

    @property
    def traceparent(self) -> str | None:
        """The trace that its sender belonged to."""
        ...

    async def ack(self) -> bool:
        """Done, once its claim has committed. False where the broker took it back meanwhile: it comes again."""
        ...

    async def give_back(self, rest: Message | None = None) -> None:
        """Not taken: `rest` (None: all of it) goes again to the queue's end, confirmed, and the delivery is acked.

        TransientError when that can't be confirmed; the whole message is then delivered again.
        """
        ...


class Consumer(Protocol):
    """Takes the messages of some queues, and keeps doing so through reconnects."""

    async def get(self, limit: int) -> list[Delivery]:
        """Waits until there is something. At least one message, then as long as `limit` ids aren't reached.

        Empty only after `stop`. May be cancelled without loss.
        """
        ...

    async def stop(self) -> None:
        """Takes no more. What was not taken goes back to the broker; what was taken can still be acked."""
        ...


class Subscription(Protocol[T_co]):
    """What is told from the moment of `async with` on; an async iterator that goes on through reconnects."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> T_co: ...


class Broker(Protocol):
    """Carries nudges between the services. Any of them may be lost, doubled, late or out of order.

    An async context manager. Entering it connects, or begins to where the server can't be reached yet.
    """

    @property
    def pulls(self) -> bool:
        """True where engines pull ready steps from the database: senders stamp nothing as sent, `send` only nudges."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether sending can succeed now."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def send(self, queue: str, messages: Sequence[Message], *, traceparent: str | None = None) -> None:
        """Sends, packed and gathered with what others send in the same millisecond; returns when it is confirmed.

        TransientError when it can't be confirmed within the timeout: it may or may not have been sent.
        """
        ...

    def consumer(self, queues: Sequence[str], prefetch: int) -> Consumer:
        """A consumer of RunStep and ResumeStep; `prefetch` bounds the messages of each queue that it holds unacked."""
        ...

    def escalations(self, prefetch: int) -> Consumer:
        """A consumer of FireEscalation."""
        ...

    async def depth(self, queue: str) -> int:
        """How many messages stand ready at the broker; 0 where they are pulled from the database."""
        ...

    async def purge(self, queue: str) -> None:
        """Drops what stands ready."""
        ...

    async def publish_ended(self, ulids: Sequence[str]) -> None:
        """Tells every subscriber that these instances have ended. Lost where nobody listens."""
        ...

    def ended(self) -> Subscription[list[str]]:
        """What `publish_ended` of any process tells."""
        ...


class Notifier(Protocol):
    """LISTEN and NOTIFY on a connection of its own; `korak.store` has the real one."""

    @property
    def is_connected(self) -> bool:
        """Whether notifying can succeed now."""
        ...

    async def notify(self, channel: str, payloads: Sequence[str]) -> None:
        """Notifies, in a transaction that does nothing else. TransientError when it can't be done in time."""
        ...

    def listen(self, channels: Sequence[str]) -> Subscription[tuple[str, str]]:
        """Channel and payload of every notification; after a reconnect once (channel, "") for each of `channels`."""
        ...


class Puller(Protocol):
    """The release query of `korak.store`, as the Postgres broker needs it."""

    async def pull(self, queues: Sequence[str], limit: int) -> list[Message]:
        """Ready steps of these queues, best first, `limit` ids at most, already stamped as sent."""
        ...

    async def unstamp(self, messages: Sequence[Message]) -> None:
        """These were not taken: they stand ready again."""
        ...
