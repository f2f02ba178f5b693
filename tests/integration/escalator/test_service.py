"""The escalator starts, takes what comes, and stops."""

from __future__ import annotations

import asyncio

from structlog.testing import capture_logs
from structlog.typing import EventDict

from korak.broker.messages import FireEscalation
from korak.broker.opening import open_broker
from korak.broker.port import ESCALATIONS, Broker
from korak.config import Settings, load_settings
from korak.store.channels import Channels
from korak_escalator import service
from tests.support.waiting import eventually


def make_settings(database_url: str, amqp_url: str | None = None) -> Settings:
    given = {"KORAK_DATABASE__URL": database_url}
    return load_settings(given if amqp_url is None else given | {"KORAK_BROKER__URL": amqp_url})


async def test_what_comes_is_taken_from_rabbitmq(database_url: str, amqp_url: str) -> None:
    stop = asyncio.Event()
    async with open_broker(amqp_url) as broker, asyncio.TaskGroup() as tasks:
        running = tasks.create_task(service.run(stop, make_settings(database_url, amqp_url)))
        await broker.send(ESCALATIONS, [FireEscalation((1, 2))])
        await eventually(lambda: _is_empty(broker), message="the message is taken")
        stop.set()
        await running
        assert await broker.depth(ESCALATIONS) == 0


async def _is_empty(broker: Broker) -> bool:
    return await broker.depth(ESCALATIONS) == 0


async def test_what_comes_is_taken_from_postgres(database_url: str) -> None:
    stop = asyncio.Event()
    with capture_logs() as told:
        await _tell_until(database_url, stop, told)
    assert told[0]["escalations"] == (7,)


async def _tell_until(database_url: str, stop: asyncio.Event, told: list[EventDict]) -> None:
    async with Channels(database_url, "korak") as channels, open_broker(None, notifier=channels) as broker:
        running = asyncio.create_task(service.run(stop, make_settings(database_url)))

        async def is_told() -> bool:
            await broker.send(ESCALATIONS, [FireEscalation((7,))])
            return bool(told)

        await eventually(is_told)
        stop.set()
        await running


async def test_a_stop_before_the_start_ends_it_at_once(database_url: str) -> None:
    stop = asyncio.Event()
    stop.set()
    await service.run(stop, make_settings(database_url))
