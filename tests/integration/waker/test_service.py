"""The waker as a service: it sleeps until something is due, keeps queues filled, and stops when it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from korak.broker.opening import open_broker
from korak.clock import Clock
from korak.config import Settings, load_settings
from korak_waker import service
from korak_waker.report import Report
from tests.support.flows import Flows, chain, pausing, work
from tests.support.waiting import eventually


def make_settings(database_url: str, **more: str) -> Settings:
    return load_settings({"KORAK_DATABASE__URL": database_url, **more})


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[None]:
    """The service, which must end by itself once it is told to."""
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(service.run(stop, settings))
        yield
        stop.set()
        async with asyncio.timeout(10):
            await task


async def test_a_timer_is_woken_when_it_is_due(flows: Flows, database_url: str) -> None:
    now = Clock().now()
    [instance] = await flows.start(await flows.publish(chain(pausing(**{"for": "PT1S"}))), now=now)

    async def get_ready() -> object:
        return (await flows.get_step(instance))["ready_at"]

    async with running(make_settings(database_url, KORAK_WAKE__INTERVAL="60")):
        ready_at = await eventually(get_ready)
    assert now + timedelta(seconds=1) <= ready_at < now + timedelta(seconds=3)  # type: ignore[operator]  # a datetime


async def test_what_a_user_s_transaction_asks_for_is_made_between_passes(flows: Flows, database_url: str) -> None:
    """The inbox is looked into every 200 ms, however long a pass sleeps."""
    version = await flows.publish(chain(pausing()))
    await flows.get(
        "update workflow_definitions set status = 'active', current_version_id = $2 where id = $1",
        version.definition_id,
        version.version_id,
    )
    settings = make_settings(database_url, KORAK_WAKE__INTERVAL="60")
    async with running(settings):
        for count in (1, 2):
            await flows.get("insert into workflow_inbox (kind, name) values ('start', 'flow')")
            await eventually(_count_is(flows, count), 5)


def _count_is(flows: Flows, count: int) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return bool(await flows.get("select count(*) = $1 from workflow_instances", count))

    return look


async def test_a_drained_queue_is_filled_again_between_passes(flows: Flows, database_url: str, amqp_url: str) -> None:
    await flows.get("insert into queues (name, bound, created_at) values ('default', 10, now())")
    await flows.start(await flows.publish(chain(work())), 100)
    settings = make_settings(database_url, KORAK_BROKER__URL=amqp_url, KORAK_WAKE__INTERVAL="60")
    seen: set[int] = set()
    async with running(settings), open_broker(amqp_url) as broker:
        consumer = broker.consumer(["default"], prefetch=10)
        while len(seen) < 100:
            for delivery in await consumer.get(10):
                ids = delivery.message.step_runs  # type: ignore[union-attr]  # nothing waits here
                seen.update(ids)
                await flows.get(
                    "update workflow_step_runs set status = 'completed', ready_at = null, sent_at = null,"
                    " finished_at = now() where id = any($1)",
                    list(ids),
                )
                await delivery.ack()
        await consumer.stop()


async def test_one_pass_by_hand_does_everything_now_wk_5(flows: Flows, database_url: str) -> None:
    now = Clock().now()
    await flows.start(await flows.publish(chain(pausing())), now=now - timedelta(hours=2))
    assert await service.wake_once(make_settings(database_url)) == Report(timers=1)


async def test_a_stop_before_the_start_ends_it_at_once(database_url: str) -> None:
    stop = asyncio.Event()
    stop.set()
    await service.run(stop, make_settings(database_url))


async def test_a_database_that_is_not_there_yet_is_waited_for(flows: Flows, database_url: str) -> None:
    await flows.get("alter schema korak rename to hidden")
    now = Clock().now()
    async with running(make_settings(database_url, KORAK_WAKE__INTERVAL="0.05")):
        await flows.get("select pg_sleep(0)")
        await flows.get("alter schema hidden rename to korak")
        [instance] = await flows.start(await flows.publish(chain(pausing())), now=now - timedelta(hours=2))
        await eventually(lambda: _is_ready(flows, instance))


async def _is_ready(flows: Flows, instance: int) -> bool:
    return (await flows.get_step(instance))["ready_at"] is not None
