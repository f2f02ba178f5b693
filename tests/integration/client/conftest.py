"""The client on an API in this process, on a database of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest

from korak.client import AsyncKorak, Korak
from korak_api.app import make_app
from tests.support.apis import URL, Api


class Crossing(httpx.BaseTransport):
    """Takes the requests of another thread to the loop on which the API runs."""

    def __init__(self, door: httpx.AsyncBaseTransport, loop: asyncio.AbstractEventLoop) -> None:
        self.door = door
        self.loop = loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return asyncio.run_coroutine_threadsafe(self._pass_on(request), self.loop).result(30)

    async def _pass_on(self, request: httpx.Request) -> httpx.Response:
        response = await self.door.handle_async_request(request)
        content = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=content)


@pytest.fixture
def door(api: Api) -> httpx.ASGITransport:
    """The way to the API without a network."""
    return httpx.ASGITransport(make_app(api.resources))


@pytest.fixture
async def korak(api: Api, door: httpx.ASGITransport) -> AsyncIterator[AsyncKorak]:
    async with AsyncKorak(URL, api.admin, transport=door) as korak:
        yield korak


@pytest.fixture
async def blocking(api: Api, door: httpx.ASGITransport) -> AsyncIterator[Korak]:
    """The blocking client, to be called on another thread."""
    with Korak(URL, api.admin, transport=Crossing(door, asyncio.get_running_loop())) as korak:
        yield korak
