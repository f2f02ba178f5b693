"""The API, and what goes through the store, on a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.apis import Api, open_api
from tests.support.children import Families
from tests.support.flows import Flows, open_flows


@pytest.fixture
async def api(database_url: str) -> AsyncIterator[Api]:
    async with open_api(database_url) as api:
        yield api


@pytest.fixture
async def flows(database_url: str) -> AsyncIterator[Flows]:
    async with open_flows(database_url) as flows:
        yield flows


@pytest.fixture
async def families(flows: Flows) -> Families:
    return await Families.make(flows)
