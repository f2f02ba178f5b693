"""The two brokers as the conformance suite opens them: each behind a wire that can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import asyncpg

from korak.broker.guarding import Timing
from korak.broker.messages import FireEscalation, Message, ResumeStep, RunStep, pack
from korak.broker.notify import NotifyBroker
from korak.broker.opening import open_broker
from korak.broker.port import Broker, Consumer
from korak.model import SignalKind
from korak.store.channels import Channels
from tests.support.proxies import Proxy

TIMING = Timing(connect=3.0, confirm=2.0, heartbeat=1, first_pause=0.01, longest_pause=0.1)


class Harness(Protocol):
    """What the suite needs of an implementation besides the port."""

    proxy: Proxy
    holds: bool
    """Whether messages stand at the broker itself."""

    def open(self) -> Broker:
        """A broker as one process has it; several may be open."""
        ...

    async def offer(self, broker: Broker, queue: str, messages: Sequence[Message]) -> None:
        """What a sender does after its commit: the steps are ready, and their queue is told."""
        ...

    async def sweep(self, broker: Broker, queue: str) -> None:
        """What a waker does for messages that were taken and not claimed."""
        ...


class RabbitHarness:
    """Messages stand in RabbitMQ, which delivers again by itself what was not acked."""

    holds = True

    def __init__(self, proxy: Proxy, url: str, prefix: str) -> None:
        self.proxy = proxy
        self.prefix = prefix
        self._url = url

    def open(self) -> Broker:
        return open_broker(self._url, prefix=self.prefix, timing=TIMING)

    async def offer(self, broker: Broker, queue: str, messages: Sequence[Message]) -> None:
        await broker.send(queue, messages)

    async def sweep(self, broker: Broker, queue: str) -> None:
        pass


class ReadySteps:
    """A puller on a small table of its own: the release query in miniature."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def create(self) -> None:
        """Makes the table."""
        await self._pool.execute(
            "create table ready (id bigint generated always as identity primary key, queue text not null,"
            " step_run bigint not null, wait bigint, kind text, is_sent boolean not null default false)"
        )

    async def add(self, queue: str, messages: Sequence[Message]) -> None:
        """Makes steps ready."""
        rows: list[tuple[str, int, int | None, str | None]] = []
        for message in messages:
            match message:
                case RunStep():
                    rows += [(queue, step_run, None, None) for step_run in message.step_runs]
                case ResumeStep():
                    rows += [(queue, step_run, wait, kind) for step_run, wait, kind in message.waits]
                case FireEscalation():
                    raise TypeError("an escalation is no step")
        await self._pool.executemany("insert into ready (queue, step_run, wait, kind) values ($1, $2, $3, $4)", rows)

    async def pull(self, queues: Sequence[str], limit: int) -> list[Message]:
        rows = await self._pool.fetch(
            "with taken as (select id from ready where queue = any ($1) and not is_sent order by id limit $2"
            " for update skip locked)"
            " update ready set is_sent = true from taken where ready.id = taken.id returning step_run, wait, kind",
            list(queues),
            limit,
        )
        runs = [row["step_run"] for row in rows if row["kind"] is None]
        waits = [(row["step_run"], row["wait"], SignalKind(row["kind"])) for row in rows if row["kind"] is not None]
        return pack([RunStep(tuple(runs)), ResumeStep(tuple(waits))])

    async def unstamp(self, messages: Sequence[Message]) -> None:
        ids: list[int] = []
        for message in messages:
            match message:
                case RunStep():
                    ids += message.step_runs
                case ResumeStep():
                    ids += [step_run for step_run, _, _ in message.waits]
                case FireEscalation():
                    raise TypeError("an escalation is no step")
        await self._pool.execute("update ready set is_sent = false where step_run = any ($1)", ids)

    async def unstamp_all(self, queue: str) -> None:
        """As the waker does with what was sent and never claimed."""
        await self._pool.execute("update ready set is_sent = false where queue = $1", queue)


class NotifyHarness:
    """Messages stand in a table; the waker readies again what was taken and not claimed."""

    holds = False

    def __init__(self, proxy: Proxy, url: str, steps: ReadySteps) -> None:
        self.proxy = proxy
        self.steps = steps
        self._url = url

    def open(self) -> Broker:
        return OwnChannels(Channels(self._url, "korak", timeout=TIMING.confirm), self.steps)

    async def offer(self, broker: Broker, queue: str, messages: Sequence[Message]) -> None:
        await self.steps.add(queue, messages)
        await broker.send(queue, messages)

    async def sweep(self, broker: Broker, queue: str) -> None:
        await self.steps.unstamp_all(queue)
        await broker.send(queue, [RunStep((1,))])


class OwnChannels(NotifyBroker):
    """A Postgres broker with a connection that begins and ends with it, as in a process of its own."""

    def __init__(self, channels: Channels, steps: ReadySteps) -> None:
        super().__init__(channels, steps)
        self._channels = channels

    async def __aenter__(self) -> OwnChannels:
        await self._channels.__aenter__()
        return await super().__aenter__()

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(None, None, None)
        await self._channels.__aexit__(None, None, None)


@asynccontextmanager
async def ready_steps(url: str) -> AsyncIterator[ReadySteps]:
    """The table, reached by a pool that no proxy stands before."""
    async with asyncpg.create_pool(url, min_size=1, max_size=4) as pool:
        steps = ReadySteps(pool)
        await steps.create()
        yield steps


def ids_of(messages: Sequence[Message]) -> list[int]:
    """Every id of every message, as they come."""
    ids: list[int] = []
    for message in messages:
        match message:
            case RunStep():
                ids += message.step_runs
            case ResumeStep():
                ids += [step_run for step_run, _, _ in message.waits]
            case FireEscalation():
                ids += message.escalations
    return ids


async def drain(consumer: Consumer, wanted: set[int], limit: int = 1000) -> list[int]:
    """Takes and acks until every wanted id has come; all that came."""
    came: list[int] = []
    while not wanted <= set(came):
        for delivery in await consumer.get(limit):
            came += ids_of([delivery.message])
            await delivery.ack()
    return came
