"""The shallow broker: a queue at RabbitMQ holds a bounded number of ids, filled from the backlog by one releaser."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from korak.broker.messages import RunStep
from korak.broker.opening import open_broker
from korak.broker.port import Broker
from korak.metrics import Metrics
from korak.releasing import Releaser
from korak_waker.report import Report
from tests.support.flows import NOW, Flows, chain, owner, work
from tests.support.waiting import eventually
from tests.support.wakers import Wakers


@pytest.fixture
async def broker(amqp_url: str) -> AsyncIterator[Broker]:
    async with open_broker(amqp_url) as broker:
        await eventually(lambda: broker.is_connected)
        yield broker


@pytest.fixture
async def rabbits(flows: Flows, database_url: str, metrics: Metrics, broker: Broker) -> AsyncIterator[Wakers]:
    """Makes wakers on RabbitMQ."""
    async with AsyncExitStack() as stack:
        yield Wakers(stack, flows, database_url, metrics, broker)


@asynccontextmanager
async def open_releaser(flows: Flows, broker: Broker, batch: int = 100) -> AsyncIterator[Releaser]:
    releaser = Releaser(flows.database, broker, batch)
    yield releaser
    await releaser.close()


async def take(broker: Broker, queue: str, count: int) -> list[int]:
    """The next so many ids of a queue, acked."""
    consumer = broker.consumer([queue], prefetch=10)
    taken: list[int] = []
    while len(taken) < count:
        for delivery in await consumer.get(count - len(taken)):
            assert isinstance(delivery.message, RunStep)
            taken += delivery.message.step_runs
            await delivery.ack()
    await consumer.stop()
    return taken


async def bound(flows: Flows, queue: str, count: int) -> None:
    await flows.get("insert into queues (name, bound, created_at) values ($1, $2, $3)", queue, count, NOW)


async def count_sent(flows: Flows) -> int:
    return int(await flows.get("select count(*) from workflow_step_runs where sent_at is not null"))


async def test_a_queue_holds_no_more_than_its_bound(flows: Flows, broker: Broker) -> None:
    await bound(flows, "default", 50)
    await flows.start(await flows.publish(chain(work())), 120)
    async with open_releaser(flows, broker) as releaser:
        assert await releaser.run_once(NOW) == 50
        assert await releaser.run_once(NOW) == 0
        assert releaser.has_backlog
        taken = await take(broker, "default", 50)
        assert await count_sent(flows) == len(set(taken)) == 50


async def test_what_was_claimed_makes_room(flows: Flows, broker: Broker) -> None:
    await bound(flows, "default", 10)
    instances = await flows.start(await flows.publish(chain(work())), 15)
    engine = await flows.register()
    async with open_releaser(flows, broker) as releaser:
        await releaser.run_once(NOW)
        for instance in instances[:3]:
            await flows.claim(instance, engine)
        assert await releaser.run_once(NOW) == 3


async def test_priority_and_fair_turns_reach_the_broker(flows: Flows, broker: Broker) -> None:
    version = await flows.publish(chain(work()))
    await flows.start(version, 4, owner=owner("team:a"))
    await flows.start(version, 2, owner=owner("team:b"))
    await flows.start(version, 1, owner=owner("team:c"), priority=3)
    async with open_releaser(flows, broker) as releaser:
        await releaser.run_once(NOW)
    rows = await flows.fetch("select id, owner_scope from workflow_step_runs")
    owners = {row["id"]: row["owner_scope"] for row in rows}
    order = [owners[step] for step in await take(broker, "default", 7)]
    assert order == [f"team:{name}" for name in "cababaa"]


async def test_many_releasers_send_nothing_twice(flows: Flows, broker: Broker) -> None:
    await bound(flows, "default", 400)
    await flows.start(await flows.publish(chain(work())), 300)
    async with AsyncExitStack() as stack:
        releasers = [await stack.enter_async_context(open_releaser(flows, broker, 20)) for _ in range(4)]
        rounds = [sum(await asyncio.gather(*(releaser.run_once(NOW) for releaser in releasers))) for _ in range(20)]
    assert sum(rounds) == 300
    assert sorted(await take(broker, "default", 300)) == sorted(
        row["id"] for row in await flows.fetch("select id from workflow_step_runs")
    )


async def test_a_pass_sends_what_it_has_made_ready(flows: Flows, rabbits: Wakers, broker: Broker) -> None:
    await flows.start(await flows.publish(chain(work())), 3)
    assert await rabbits.run(0) == Report(released=3)
    assert len(await take(broker, "default", 3)) == 3


async def test_lost_messages_go_again_at_once_where_the_queue_is_empty_jb_10(
    flows: Flows, rabbits: Wakers, broker: Broker
) -> None:
    await flows.start(await flows.publish(chain(work())), 3)
    await rabbits.run(0)
    await broker.purge("default")
    assert await rabbits.run(29) == Report()
    assert await rabbits.run(30) == Report(requeued=3, released=3)
    assert len(await take(broker, "default", 3)) == 3


async def test_a_slow_queue_is_not_filled_with_copies(flows: Flows, rabbits: Wakers, broker: Broker) -> None:
    await flows.start(await flows.publish(chain(work())), 3)
    await rabbits.run(0)
    await eventually(lambda: _holds_something(broker))
    sent = [second for second in range(30, 700, 30) if (await rabbits.run(second)).requeued]
    assert sent == [60, 180, 420]


async def _holds_something(broker: Broker) -> bool:
    return await broker.depth("default") > 0


async def test_nothing_is_stamped_while_the_broker_is_away(flows: Flows, rabbits: Wakers, amqp_url: str) -> None:
    await flows.start(await flows.publish(chain(work())), 3)
    async with open_broker("amqp://guest:guest@127.0.0.1:1/") as away:
        rabbits.broker = away
        report = await rabbits.run(0)
        assert (report.released, report.errors, report.interrupted) == (0, 0, 0)
    assert await count_sent(flows) == 0
