"""RabbitMQ goes away, comes back, and has lost what it held: everything finishes by itself."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import load
from tests.support.servers import Broker, free_port, own_rabbitmq
from tests.support.stage import Stage, staged
from tests.support.waiting import eventually

INSTANCES = 200
ENDED = "select count(*) from workflow_step_runs where finished_at is not null"
PURGE = "rabbitmqctl --silent purge_queue korak.steps.default"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("rabbitmq-server") is None, reason="no rabbitmq-server is installed"),
]


class Node:
    """A RabbitMQ of this test's own, which keeps its port and what it has stored while it is stopped."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._port = free_port()
        self._running = ExitStack()
        self.broker: Broker

    def start(self) -> None:
        """Start it."""
        self.broker = self._running.enter_context(own_rabbitmq(self._directory, self._port))

    def stop(self) -> None:
        """Stop it; what is durable stays."""
        self._running.close()

    def purge(self) -> None:
        """Drop all steps that stand in their queue."""
        assert self.broker.shell is not None
        self.broker.shell(PURGE)


@pytest.fixture
def rabbit() -> Iterator[Node]:
    """A node that runs."""
    with tempfile.TemporaryDirectory(prefix="korak-rabbitmq-") as directory:
        node = Node(Path(directory))
        node.start()
        yield node
        node.stop()


async def wait_for_steps(stage: Stage, count: int) -> None:
    """Until so many attempts have ended."""

    async def look() -> bool:
        return int(await stage.connection.fetchval(ENDED)) >= count

    await eventually(look, 60, message=f"{count} attempts don't end")


async def test_a_broker_that_is_restarted_and_purged_costs_time_and_no_step(
    tmp_path: Path, database_url: str, rabbit: Node
) -> None:
    """DESIGN 1.1: a message is a nudge. Starts are accepted while there is no broker."""
    async with staged(tmp_path, database_url, rabbit.broker.url) as stage:
        await stage.calls.publish(load.GRAPH)
        working = asyncio.create_task(load.run(stage, INSTANCES))
        await wait_for_steps(stage, INSTANCES // 2)
        await asyncio.to_thread(rabbit.stop)
        await stage.calls.start("chaos", {"n": INSTANCES, "kind": "none"})
        await asyncio.to_thread(rabbit.start)
        await eventually(stage.engine.is_ready, 30)
        await wait_for_steps(stage, INSTANCES)
        await asyncio.to_thread(rabbit.purge)
        await working

        await load.assert_done(stage, INSTANCES + 1)


async def test_messages_that_are_purged_are_sent_again(tmp_path: Path, database_url: str, rabbit: Node) -> None:
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
