"""The client on an API in this process, on a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from korak.client import AsyncKorak
from korak_api.app import make_app
from tests.support.apis import URL, Api


@pytest.fixture
def door(api: Api) -> httpx.ASGITransport:
    """The way to the API without a network."""
    return httpx.ASGITransport(make_app(api.resources))


@pytest.fixture
async def korak(api: Api, door: httpx.ASGITransport) -> AsyncIterator[AsyncKorak]:
    async with AsyncKorak(URL, api.admin, transport=door) as korak:
        yield korak
