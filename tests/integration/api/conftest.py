"""The API on a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.apis import Api, open_api


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[Api]:
    async with open_api(database_url) as api:
        yield api
