"""The API for a module, and runs of the API's own time."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.apis import Api, open_api
from tests.support.children import Families
from tests.support.clones import Clones
from tests.support.flows import Flows


@pytest.fixture(scope="module")
async def shared_api(clones: Clones) -> AsyncIterator[Api]:
    """One for the tests of a module that leave nothing behind."""
    with clones.lend() as url:
        async with open_api(url) as api:
            yield api


@pytest.fixture
async def families(api: Api, flows: Flows) -> Families:
    """At the time of the API."""
    families = await Families.make(flows)
    families.now = api.resources.clock.now()
    families.engine = await flows.register(families.now)
    return families
