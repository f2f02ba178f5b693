"""What else has the database of a test open."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from korak.store.single import Single
from tests.support.flows import Flows, open_flows


@pytest.fixture
async def rival(database_url: str) -> AsyncIterator[Flows]:
    """A second process on the same database."""
    async with open_flows(database_url) as flows:
        yield flows


@pytest.fixture
async def runner(flows: Flows) -> AsyncIterator[Single]:
    """A connection that runs one statement at a time."""
    runner = Single(flows.database)
    yield runner
    await runner.close()
