"""A service looks at the schema as soon as its database answers, and not only at its start."""

from __future__ import annotations

import asyncio

import pytest

from korak import surveying
from korak.config import Settings
from korak.errors import SchemaOlder
from tests.support.apis import get_settings
from tests.support.proxies import proxied
from tests.support.waiting import eventually


class Waiting:
    """A service that waits for its stop."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self, stop: asyncio.Event, settings: Settings) -> None:
        self.begun.set()
        await stop.wait()


async def test_an_older_schema_is_seen_once_the_database_is_back(empty_database_url: str) -> None:
    service, stop = Waiting(), asyncio.Event()
    async with proxied(empty_database_url) as (proxy, url):
        proxy.cut()
        running = asyncio.create_task(surveying.serve(stop, get_settings(url), service))
        await eventually(service.begun.is_set, 10)
        assert not running.done()

        proxy.mend()

        with pytest.raises(SchemaOlder):
            await asyncio.wait_for(running, 10)


async def test_nothing_begins_on_an_older_schema(empty_database_url: str) -> None:
    service = Waiting()
    with pytest.raises(SchemaOlder, match="run korak migrate"):
        await surveying.serve(asyncio.Event(), get_settings(empty_database_url), service)
    assert not service.begun.is_set()


async def test_a_service_ends_when_it_is_told_to(database_url: str) -> None:
    service, stop = Waiting(), asyncio.Event()
    running = asyncio.create_task(surveying.serve(stop, get_settings(database_url), service))
    await eventually(service.begun.is_set, 10)
    stop.set()
    await asyncio.wait_for(running, 10)
