"""The API on a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.apis import Api, open_api
from tests.support.clones import Clones


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[Api]:
    async with open_api(database_url) as api:
        yield api


@pytest.fixture(scope="module")
async def shared_api(clones: Clones) -> AsyncIterator[Api]:
    """One for the tests of a module that leave nothing behind."""
    with clones.lend() as url:
        async with open_api(url) as api:
            yield api
