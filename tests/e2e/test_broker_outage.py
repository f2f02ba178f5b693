"""RabbitMQ goes away, comes back, and has lost what it held: everything finishes by itself."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import load
from tests.support.outages import OwnRabbit, own_rabbit
from tests.support.stage import staged
from tests.support.waiting import eventually

INSTANCES = 200

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("rabbitmq-server") is None, reason="no rabbitmq-server is installed"),
]


@pytest.fixture
def rabbit() -> Iterator[OwnRabbit]:
    """A RabbitMQ of the test's own."""
    with own_rabbit() as rabbit:
        yield rabbit


async def test_a_broker_that_is_restarted_and_purged_costs_time_and_no_step(
    tmp_path: Path, database_url: str, rabbit: OwnRabbit
) -> None:
    """DESIGN 1.1: a message is a nudge. Starts are accepted while there is no broker."""
    async with staged(tmp_path, database_url, rabbit.broker.url) as stage:
        await stage.calls.publish(load.GRAPH)
        working = asyncio.create_task(load.run(stage, INSTANCES))
        await load.wait_for_steps(stage, INSTANCES // 2)
        await asyncio.to_thread(rabbit.stop)
        await stage.calls.start("chaos", {"n": INSTANCES, "kind": "none"})
        await asyncio.to_thread(rabbit.start)
        await eventually(stage.engine.is_ready, 30)
        await load.wait_for_steps(stage, INSTANCES)
        await asyncio.to_thread(rabbit.purge)
        await working

        await load.assert_done(stage, INSTANCES + 1)


async def test_messages_that_are_purged_are_sent_again(tmp_path: Path, database_url: str, rabbit: OwnRabbit) -> None:
    """JB-10: what was sent and is nowhere any more is sent again, once `requeue_after` is over."""
    async with staged(tmp_path, database_url, rabbit.broker.url) as stage:
        await stage.calls.publish(load.GRAPH)
        stage.engine.kill()
        instance = (await stage.calls.start("chaos", {"n": 0, "kind": "none"}))["id"]
        sent = "select count(*) from workflow_step_runs where sent_at is not null"
        await eventually(lambda: stage.connection.fetchval(sent))
        await asyncio.to_thread(rabbit.purge)
        await stage.fleet.start_ready("engine")

        assert (await stage.calls.wait_for_end(instance))["status"] == "completed"
        await load.assert_done(stage, 1)
