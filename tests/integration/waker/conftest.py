"""Wakers over a database of the test's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from korak.metrics import Metrics
from tests.support.flows import Flows
from tests.support.wakers import Wakers


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
async def wakers(flows: Flows, database_url: str, metrics: Metrics) -> AsyncIterator[Wakers]:
    """Makes wakers on the Postgres broker."""
    async with AsyncExitStack() as stack:
        yield await Wakers.open(stack, flows, database_url, metrics)
