"""Nudges leave after the commit, never before (JB-4): whoever gets one finds the step ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from korak.broker.messages import Message
from korak.broker.notify import NotifyBroker
from korak.clock import ManualClock
from korak.commander import Commander
from korak.core.facts import Finished, RetryAsked
from korak.core.snapshot import Policy
from korak.dispatch import Dispatcher
from korak.steps.contract import Complete, Fail
from korak.store.channels import Channels
from korak.store.database import Database, Hot
from korak.store.gates import Gate
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.transacting import Transactor
from korak_engine.claiming import get_steps
from korak_engine.desk import Desk
from korak_engine.entries import Result
from korak_engine.lining import Line
from korak_engine.recording import Recorder
from korak_engine.sights import Sights
from korak_engine.work import Work
from tests.support import eventually
from tests.support.flows import NOW, Flows, chain, open_flows, work

READY = "select id from workflow_step_runs where ready_at is not null and id = any($1)"


class Looking(NotifyBroker):
    """Notes of every message which of its steps others can see ready at the moment when it is sent."""

    def __init__(self, channels: Channels, database: Database) -> None:
        super().__init__(channels)
        self._database = database
        self.seen: list[tuple[set[int], set[int]]] = []

    async def send(self, queue: str, messages: Sequence[Message], *, traceparent: str | None = None) -> None:
        """Look, then send."""
        told = {step for message in messages for step in get_steps(message)}
        async with self._database.acquire() as connection:
            rows = await connection.fetch(READY, list(told))
        self.seen.append((told, {row["id"] for row in rows}))
        await super().send(queue, messages, traceparent=traceparent)


@dataclass
class Scene:
    """A database with instances, and a broker that looks."""

    flows: Flows
    database: Database
    broker: Looking
    loader: Loader = field(default_factory=lambda: Loader(Plans(), Policy()))

    @property
    def dispatcher(self) -> Dispatcher:
        return Dispatcher(self.broker, Gate(self.database))


@asynccontextmanager
async def open_scene(url: str) -> AsyncIterator[Scene]:
    async with (
        open_flows(url) as flows,
        Channels(url, "korak") as channels,
        Database(url, "korak", name="sending") as database,
        Looking(channels, database) as broker,
    ):
        yield Scene(flows, database, broker)


async def test_jb_4_a_command_nudges_after_its_commit(database_url: str) -> None:
    async with open_scene(database_url) as scene:
        flows = scene.flows
        [instance] = await flows.start(await flows.publish(chain(work())))
        await flows.finish(await flows.claim(instance, await flows.register()), Fail("no_stock", "none"))
        async with Commander(scene.database, scene.loader, scene.dispatcher, ManualClock(NOW)) as commander:
            await commander.answer(instance, RetryAsked())
            await eventually(lambda: scene.broker.seen)
        attempt = (await flows.get_step(instance))["id"]
        assert scene.broker.seen == [({attempt}, {attempt})]


async def test_jb_4_a_record_nudges_after_its_commit(database_url: str) -> None:
    async with open_scene(database_url) as scene:
        flows = scene.flows
        [instance] = await flows.start(await flows.publish(chain(work("one"), work("two"))))
        changes = await flows.ask_claim(instance, await flows.register(), NOW)
        [grant] = changes.claimed
        finished = Finished(grant.step.id, grant.step.claim_token or "", Complete())
        hot, results = Hot(scene.database), Line(10)
        transactor = Transactor(hot, scene.loader, Ids(), scene.dispatcher)
        desk = Desk(hot, transactor, scene.dispatcher, ManualClock(NOW))
        recorder = Recorder(desk, lambda result, changes: None, Sights())
        results.put(Result(Work(grant.step, grant.input, changes.after, 1), finished))
        working = asyncio.create_task(recorder.work(results))
        await eventually(lambda: scene.broker.seen)
        working.cancel()
        following = await flows.get_step(instance)
        assert following["node_id"] == "two"
        assert scene.broker.seen == [({following["id"]}, {following["id"]})]
