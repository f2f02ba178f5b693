"""What RabbitMQ alone does: its topology, dead letters, and queues that are deleted under us."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel
from aio_pika.exceptions import ChannelPreconditionFailed

from korak.broker.messages import RunStep
from korak.broker.opening import open_broker
from korak.broker.port import DEAD, ESCALATIONS, Broker
from korak.errors import TransientError
from tests.contracts.brokers import TIMING, drain
from tests.support import eventually
from tests.support.databases import own_name

SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


@dataclass(frozen=True, slots=True)
class Rabbit:
    """A broker, and a channel that looks at the server past it."""

    broker: Broker
    channel: AbstractChannel
    prefix: str


@pytest.fixture
async def rabbit(amqp_url: str) -> AsyncIterator[Rabbit]:
    prefix = own_name()
    async with open_broker(amqp_url, prefix=prefix, timing=TIMING) as broker:
        connection = await aio_pika.connect(amqp_url)
        async with connection:
            yield Rabbit(broker, await connection.channel(), prefix)


async def test_queues_are_durable_and_quorum_and_messages_persist(rabbit: Rabbit) -> None:
    """DESIGN section 9."""
    await rabbit.broker.send("default", [RunStep((1,))])
    queue = await rabbit.channel.declare_queue(
        f"{rabbit.prefix}.steps.default", durable=True, arguments={"x-queue-type": "quorum"}
    )
    message = await queue.get()
    assert message is not None
    assert (message.body, message.exchange) == (b'{"kind":"RunStep","step_runs":[1]}', f"{rabbit.prefix}.work")
    assert message.delivery_mode == aio_pika.DeliveryMode.PERSISTENT
    await message.ack()
    with pytest.raises(ChannelPreconditionFailed):
        await rabbit.channel.declare_queue(f"{rabbit.prefix}.steps.default", durable=True)


async def test_what_cannot_be_parsed_goes_to_the_dead_letters_with_the_reason(rabbit: Rabbit) -> None:
    consumer = rabbit.broker.consumer(["default"], prefetch=2)
    await rabbit.broker.send("default", [RunStep((1,))])
    exchange = await rabbit.channel.get_exchange(f"{rabbit.prefix}.work")
    for body in (b"{", b"\x00" * 9000, b'{"kind": "Dance"}'):
        await exchange.publish(aio_pika.Message(body), "steps.default")
    await rabbit.broker.send("default", [RunStep((2,))])
    assert await drain(consumer, {1, 2}) == [1, 2]
    await eventually(lambda: _has_depth(rabbit.broker, DEAD, 3))
    await eventually(lambda: _has_depth(rabbit.broker, "default", 0))
    queue = await rabbit.channel.get_queue(f"{rabbit.prefix}.dead")
    dead = await queue.get()
    assert dead is not None
    assert dead.headers["queue"] == "default"
    assert dead.headers["reason"]


async def test_a_queue_that_is_deleted_comes_back_for_senders_and_consumers(rabbit: Rabbit) -> None:
    consumer = rabbit.broker.consumer(["default"], prefetch=10)
    await rabbit.broker.send("default", [RunStep((1,))])
    assert await drain(consumer, {1}) == [1]
    await rabbit.channel.queue_delete(f"{rabbit.prefix}.steps.default")
    await rabbit.broker.send("default", [RunStep((2,))])
    assert 2 in await drain(consumer, {2})


async def test_an_exchange_that_is_deleted_comes_back(rabbit: Rabbit) -> None:
    await rabbit.broker.send("default", [RunStep((1,))])
    await rabbit.channel.exchange_delete(f"{rabbit.prefix}.work")
    with pytest.raises(TransientError):
        await rabbit.broker.send("default", [RunStep((2,))])
    await rabbit.broker.send("default", [RunStep((3,))])
    assert {1, 3} <= set(await drain(rabbit.broker.consumer(["default"], prefetch=10), {1, 3}))


async def test_a_queue_of_another_kind_fails_its_senders_and_no_others(rabbit: Rabbit) -> None:
    await rabbit.channel.declare_queue(f"{rabbit.prefix}.steps.classic", durable=True)
    with pytest.raises(TransientError):
        await rabbit.broker.send("classic", [RunStep((1,))])
    await rabbit.broker.send("default", [RunStep((2,))])
    assert await drain(rabbit.broker.consumer(["default"], prefetch=10), {2}) == [2]


async def test_what_is_sent_within_a_millisecond_shares_messages(rabbit: Rabbit) -> None:
    await asyncio.gather(*(rabbit.broker.send("default", [RunStep((number,))]) for number in range(1, 65)))
    await eventually(lambda: _has_depth(rabbit.broker, "default", 2))


async def test_a_sampled_trace_travels_with_its_message(rabbit: Rabbit) -> None:
    consumer = rabbit.broker.consumer(["default"], prefetch=10)
    for number, traceparent in ((1, SAMPLED), (2, UNSAMPLED), (3, None)):
        await rabbit.broker.send("default", [RunStep((number,))], traceparent=traceparent)
        (delivery,) = await consumer.get(1)
        assert delivery.traceparent == (SAMPLED if number == 1 else None)
        await delivery.ack()


async def test_a_wrong_queue_name_is_the_callers_mistake(rabbit: Rabbit) -> None:
    for name in ("", "x" * 201):
        with pytest.raises(ValueError, match="bytes"):
            await rabbit.broker.send(name, [RunStep((1,))])


async def test_escalations_stand_in_their_own_queue(rabbit: Rabbit) -> None:
    assert await rabbit.broker.depth(ESCALATIONS) == 0
    queue = await rabbit.channel.get_queue(f"{rabbit.prefix}.escalations")
    assert queue.declaration_result.consumer_count == 0


async def test_nothing_is_left_running_after_the_end(amqp_url: str) -> None:
    before = asyncio.all_tasks()
    async with open_broker(amqp_url, prefix=own_name(), timing=TIMING) as broker, broker.ended():
        broker.consumer(["default"], prefetch=1)
        await broker.send("default", [RunStep((1,))])
    await eventually(lambda: asyncio.all_tasks() <= before)


async def _has_depth(broker: Broker, queue: str, depth: int) -> bool:
    return await broker.depth(queue) == depth
