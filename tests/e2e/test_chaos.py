"""Thousands of instances while processes are killed and connections cut at random: all end, each effect once."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support import load
from tests.support.chaos import Chaos
from tests.support.proxies import Proxy, proxied
from tests.support.stage import staged

INSTANCES = int(os.environ.get("KORAK_TEST_CHAOS", "300"))
SEED = int(os.environ.get("KORAK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
FEW = 300
"""How many at most on the Postgres broker: the engines and the waker are the same, and one long run is enough."""


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_every_instance_ends_and_each_effect_is_taken_once(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """DESIGN 12: SIGKILL of engines, waker and api, and cut connections, at random."""
    count = INSTANCES if broker_url is not None else min(INSTANCES, FEW)
    acts = 8 if count < 1_000 else 24
    sys.stdout.write(f"KORAK_TEST_SEED={SEED} KORAK_TEST_CHAOS={count}\n")
    async with wired(broker_url) as (wire, amqp), staged(tmp_path, database_url, amqp) as stage:
        await stage.calls.publish(load.GRAPH)
        chaos = Chaos(stage, random.Random(SEED), wire)
        await asyncio.gather(load.run(stage, count), chaos.run(acts, stride=count * 5 // acts))

        await load.assert_done(stage, count)


@asynccontextmanager
async def wired(amqp: str | None) -> AsyncIterator[tuple[Proxy | None, str | None]]:
    """A wire to the broker that can be cut."""
    if amqp is None:
        yield None, None
        return
    async with proxied(amqp) as (wire, url):
        yield wire, url
