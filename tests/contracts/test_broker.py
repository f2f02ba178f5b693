"""What every broker does: the conformance suite of the port, run over RabbitMQ and over Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from korak.broker.messages import FireEscalation, ResumeStep, RunStep
from korak.broker.port import ESCALATIONS, Broker, Delivery
from korak.errors import TransientError
from korak.model import SignalKind
from tests.contracts.brokers import Harness, NotifyHarness, RabbitHarness, drain, ids_of, ready_steps
from tests.support import eventually
from tests.support.databases import own_name
from tests.support.proxies import proxied

QUEUE = "default"


@pytest.fixture(params=["rabbit", "postgres"])
async def harness(request: pytest.FixtureRequest) -> AsyncIterator[Harness]:
    if request.param == "rabbit":
        async with proxied(request.getfixturevalue("amqp_url")) as (proxy, url):
            yield RabbitHarness(proxy, url, own_name())
    else:
        own = request.getfixturevalue("empty_database_url")
        async with proxied(own) as (proxy, url), ready_steps(own) as steps:
            yield NotifyHarness(proxy, url, steps)


@pytest.fixture
async def broker(harness: Harness) -> AsyncIterator[Broker]:
    async with harness.open() as broker:
        yield broker


async def test_what_is_sent_is_taken_and_acked(harness: Harness, broker: Broker) -> None:
    consumer = broker.consumer([QUEUE], prefetch=10)
    await harness.offer(broker, QUEUE, [RunStep((1, 2, 3))])
    (delivery,) = await consumer.get(10)
    assert delivery.message == RunStep((1, 2, 3))
    assert await delivery.ack()
    assert not await delivery.ack()


async def test_resumes_carry_their_wait_and_its_kind(harness: Harness, broker: Broker) -> None:
    """JB-11: a probe has no wait."""
    message = ResumeStep(((1, 10, SignalKind.EVENT), (2, None, SignalKind.PROBE)))
    await harness.offer(broker, QUEUE, [message])
    (delivery,) = await broker.consumer([QUEUE], prefetch=10).get(10)
    assert delivery.message == message


async def test_a_queue_without_consumers_accepts(harness: Harness, broker: Broker) -> None:
    await harness.offer(broker, "nobody", [RunStep((5,))])
    assert await drain(broker.consumer(["nobody"], prefetch=1), {5}) == [5]


async def test_a_consumer_takes_its_queues_and_no_others(harness: Harness, broker: Broker) -> None:
    await harness.offer(broker, "a", [RunStep((1,))])
    await harness.offer(broker, "b", [RunStep((2,))])
    await harness.offer(broker, "other", [RunStep((3,))])
    assert sorted(await drain(broker.consumer(["a", "b"], prefetch=10), {1, 2})) == [1, 2]


async def test_get_takes_about_the_limit(harness: Harness, broker: Broker) -> None:
    await harness.offer(broker, QUEUE, [RunStep(tuple(range(1, 321)))])
    consumer = broker.consumer([QUEUE], prefetch=100)
    for _ in range(5):
        taken = await consumer.get(64)
        assert 0 < len(ids_of([delivery.message for delivery in taken])) < 64 + 32


async def test_many_ids_are_sent_in_few_messages(harness: Harness, broker: Broker) -> None:
    """JB-2: ids alone travel, 32 a body."""
    wanted = set(range(1, 5001))
    async with asyncio.timeout(10):
        await harness.offer(broker, QUEUE, [RunStep(tuple(wanted))])
        if harness.holds:
            await eventually(lambda: _has_depth(broker, QUEUE, -(-5000 // 32)))
        came = await drain(broker.consumer([QUEUE], prefetch=50), wanted)
    assert len(came) == len(wanted)


async def test_many_senders_at_once_are_all_confirmed(harness: Harness, broker: Broker) -> None:
    async with asyncio.timeout(10), asyncio.TaskGroup() as senders:
        for number in range(1, 201):
            senders.create_task(harness.offer(broker, QUEUE, [RunStep((number,))]))
    assert set(await drain(broker.consumer([QUEUE], prefetch=50), set(range(1, 201)))) == set(range(1, 201))


async def test_doubled_messages_do_no_harm(harness: Harness, broker: Broker) -> None:
    """JB-9: at the broker they are only delivered."""
    for _ in range(2):
        await harness.offer(broker, QUEUE, [RunStep((1,))])
    consumer = broker.consumer([QUEUE], prefetch=10)
    assert set(await drain(consumer, {1})) == {1}
    await harness.offer(broker, QUEUE, [RunStep((2,))])
    assert {1, 2} >= set(await drain(consumer, {2}))


async def test_what_was_not_acked_comes_again(harness: Harness, broker: Broker) -> None:
    """JB-10, JB-13: a consumer that dies with its process loses nothing."""
    async with harness.open() as dying:
        await harness.offer(broker, QUEUE, [RunStep((1, 2))])
        (delivery,) = await dying.consumer([QUEUE], prefetch=10).get(10)
        assert delivery.message == RunStep((1, 2))
    await harness.sweep(broker, QUEUE)
    assert sorted(await drain(broker.consumer([QUEUE], prefetch=10), {1, 2})) == [1, 2]


async def test_what_was_given_back_comes_again_and_the_rest_does_not(harness: Harness, broker: Broker) -> None:
    consumer = broker.consumer([QUEUE], prefetch=10)
    await harness.offer(broker, QUEUE, [RunStep((1, 2, 3, 4))])
    (delivery,) = await consumer.get(10)
    await delivery.give_back(RunStep((3, 4)))
    await delivery.give_back(RunStep((3, 4)))
    assert sorted(await drain(consumer, {3, 4})) == [3, 4]
    await harness.offer(broker, QUEUE, [RunStep((5,))])
    assert await drain(consumer, {5}) == [5]


async def test_all_of_a_delivery_can_be_given_back_to_another_consumer(harness: Harness, broker: Broker) -> None:
    async with harness.open() as other:
        full = other.consumer([QUEUE], prefetch=10)
        await harness.offer(broker, QUEUE, [RunStep((1, 2))])
        (delivery,) = await full.get(10)
        await delivery.give_back(None)
        await full.stop()
        assert sorted(await drain(broker.consumer([QUEUE], prefetch=10), {1, 2})) == [1, 2]


async def test_stop_hands_back_what_was_not_taken(harness: Harness, broker: Broker) -> None:
    for number in (1, 2, 3):
        await harness.offer(broker, QUEUE, [RunStep((number,))])
    stopping = broker.consumer([QUEUE], prefetch=10)
    (taken,) = await stopping.get(1)
    await stopping.stop()
    assert await stopping.get(10) == []
    rest = {1, 2, 3} - set(ids_of([taken.message]))
    assert set(await drain(broker.consumer([QUEUE], prefetch=10), rest)) == rest
    assert await taken.ack()


async def test_stop_ends_a_get_that_waits(harness: Harness, broker: Broker) -> None:
    consumer = broker.consumer([QUEUE], prefetch=10)
    waiting = asyncio.create_task(consumer.get(10))
    await harness.offer(broker, "other", [RunStep((1,))])
    await consumer.stop()
    assert await waiting == []
    await consumer.stop()


async def test_a_cancelled_get_loses_nothing(harness: Harness, broker: Broker) -> None:
    consumer = broker.consumer([QUEUE], prefetch=10)
    for number in range(1, 21):
        waiting = asyncio.create_task(consumer.get(1))
        await harness.offer(broker, QUEUE, [RunStep((number,))])
        waiting.cancel()
        await asyncio.wait({waiting})
        if waiting.cancelled():
            assert await drain(consumer, {number}, limit=1) == [number]
        else:
            (delivery,) = waiting.result()
            assert delivery.message == RunStep((number,))
            await delivery.ack()


async def test_consuming_goes_on_after_the_connection_was_reset(harness: Harness, broker: Broker) -> None:
    consumer = broker.consumer([QUEUE], prefetch=10)
    await harness.offer(broker, QUEUE, [RunStep((1,))])
    (before,) = await consumer.get(10)
    harness.proxy.cut(refuse=False)
    await eventually(lambda: _sent(harness, broker, RunStep((2,))))
    await harness.sweep(broker, QUEUE)
    assert set(await drain(consumer, {1, 2})) == {1, 2}
    assert await before.ack() is not harness.holds


async def test_senders_hear_of_an_outage_and_go_on_after_it(harness: Harness, broker: Broker) -> None:
    consumer = broker.consumer([QUEUE], prefetch=10)
    await harness.offer(broker, QUEUE, [RunStep((1,))])
    assert await drain(consumer, {1}) == [1]
    harness.proxy.cut()
    async with asyncio.timeout(5):
        with pytest.raises(TransientError):
            await broker.send(QUEUE, [RunStep((2,))])
    await eventually(lambda: not broker.is_connected)
    with pytest.raises(TransientError):
        await broker.send(QUEUE, [RunStep((2,))])
    harness.proxy.mend()
    await eventually(lambda: broker.is_connected)
    await eventually(lambda: _sent(harness, broker, RunStep((3,))))
    assert 3 in await drain(consumer, {3})


async def test_a_server_that_does_not_answer_does_not_hold_senders(harness: Harness, broker: Broker) -> None:
    await harness.offer(broker, QUEUE, [RunStep((1,))])
    harness.proxy.freeze()
    async with asyncio.timeout(8):
        with pytest.raises(TransientError):
            await broker.send(QUEUE, [RunStep((2,))])
    harness.proxy.mend()
    harness.proxy.cut(refuse=False)
    await eventually(lambda: _sent(harness, broker, RunStep((3,))))


async def test_a_process_may_start_before_its_server(harness: Harness) -> None:
    harness.proxy.cut()
    opened = harness.open()
    entering = asyncio.create_task(opened.__aenter__())
    await eventually(lambda: not opened.is_connected)
    harness.proxy.mend()
    broker = await entering
    try:
        await eventually(lambda: broker.is_connected)
        await harness.offer(broker, QUEUE, [RunStep((1,))])
        assert await drain(broker.consumer([QUEUE], prefetch=10), {1}) == [1]
    finally:
        await opened.__aexit__(None, None, None)


async def test_escalations_have_a_queue_of_their_own(harness: Harness, broker: Broker) -> None:
    async with harness.open() as other:
        consumer = broker.escalations(prefetch=10)
        getting = asyncio.create_task(consumer.get(10))
        await eventually(lambda: _escalates(other, getting))
        delivery = getting.result()[0]
        assert delivery.message == FireEscalation((7, 8))
        await delivery.give_back(FireEscalation((8,)))
        given_back = None
        while given_back != FireEscalation((8,)):
            for again in await consumer.get(10):
                given_back = again.message
                await again.ack()


async def test_the_ended_are_told_to_every_subscriber(harness: Harness, broker: Broker) -> None:
    async with harness.open() as other, broker.ended() as here, other.ended() as there:
        await broker.publish_ended(["01A", "01B"])
        assert await anext(here) == ["01A", "01B"]
        assert await anext(there) == ["01A", "01B"]


async def test_many_ended_are_told_in_parts(harness: Harness, broker: Broker) -> None:
    ulids = [f"01{number:024}" for number in range(1000)]
    async with broker.ended() as ended:
        await broker.publish_ended(ulids)
        told: list[str] = []
        while len(told) < len(ulids):
            told += await anext(ended)
    assert told == ulids


async def test_a_subscription_goes_on_after_a_reconnect(harness: Harness, broker: Broker) -> None:
    async with broker.ended() as ended:
        harness.proxy.cut(refuse=False)
        told = asyncio.create_task(anext(ended))
        await eventually(lambda: _tells(broker, told))
        assert told.result() == ["01A"]


async def test_depth_counts_what_stands_ready_at_the_broker(harness: Harness, broker: Broker) -> None:
    assert await broker.depth(QUEUE) == 0
    for number in (1, 2, 3):
        await harness.offer(broker, QUEUE, [RunStep((number,))])
    if harness.holds:
        await eventually(lambda: _has_depth(broker, QUEUE, 3))
        await broker.purge(QUEUE)
    await eventually(lambda: _has_depth(broker, QUEUE, 0))


async def test_sending_nothing_is_nothing(harness: Harness, broker: Broker) -> None:
    await broker.send(QUEUE, [])
    await broker.publish_ended([])


async def _has_depth(broker: Broker, queue: str, depth: int) -> bool:
    return await broker.depth(queue) == depth


async def _sent(harness: Harness, broker: Broker, message: RunStep) -> bool:
    try:
        await harness.offer(broker, QUEUE, [message])
    except TransientError:
        return False
    return True


async def _escalates(broker: Broker, getting: asyncio.Task[list[Delivery]]) -> bool:
    if not getting.done():
        await broker.send(ESCALATIONS, [FireEscalation((7, 8))])
    return getting.done()


async def _tells(broker: Broker, told: asyncio.Task[list[str]]) -> bool:
    try:
        await broker.publish_ended(["01A"])
    except TransientError:
        return False
    return told.done()
