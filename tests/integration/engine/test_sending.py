"""Nudges leave after the commit, never before (JB-4): whoever gets one finds the step ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from korak.broker.messages import Message
from korak.broker.notify import NotifyBroker
from korak.clock import ManualClock
from korak.commander import Commander
from korak.core.changes import Changes, spread
from korak.core.facts import Claimed, Delivered, Finished, RetryAsked
from korak.core.rows import StepRun
from korak.core.snapshot import Claimant, Policy
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
from korak_engine.entries import Entry, Nudge, Result
from korak_engine.lining import Line
from korak_engine.recording import Recorder
from korak_engine.sights import Sights
from korak_engine.work import Work
from tests.support import eventually
from tests.support.bodies import body, node, parallel
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


@pytest.mark.parametrize("first", ["late", "lacking"])
async def test_a_record_nudges_whatever_came_of_what_was_answered_before_it(database_url: str, first: str) -> None:
    """A result that comes too late, or a nudge for a type that isn't here, is answered in the same decision."""
    async with open_scene(database_url) as scene:
        flows = scene.flows
        branches = {"a": body(node("x", "test.work")), "b": body(node("y", "test.work"), node("z", "test.work"))}
        [instance] = await flows.start(await flows.publish(chain(parallel("both", **branches))))
        claimed = await claim_nodes(flows, instance, ("x", "y") if first == "late" else ("y",))
        snapshot = (await flows.answer(instance, Delivered(), NOW)).before
        sights, told = Sights(), list[tuple[Entry, Changes | None]]()
        sights.hold(snapshot)
        line = Line(10)
        if first == "late":
            line.put(Result(Work(claimed["x"], {}, snapshot, 1), Finished(claimed["x"].id, "another", Complete())))
        else:
            [ready] = [step.id for step in snapshot.steps.values() if step.node_id == "x"]
            line.put(Nudge(ready, Claimed(ready, make_claimant(lambda kind, version: False)), instance))
        step = claimed["y"]
        line.put(Result(Work(step, {}, snapshot, 1), Finished(step.id, step.claim_token or "", Complete())))
        hot = Hot(scene.database)
        transactor = Transactor(hot, scene.loader, Ids(), scene.dispatcher)
        desk = Desk(hot, transactor, scene.dispatcher, ManualClock(NOW))
        recorder = Recorder(desk, lambda entry, changes: told.append((entry, changes)), sights)
        working = asyncio.create_task(recorder.work(line))
        await eventually(lambda: len(told) == 2)
        working.cancel()
        following = await flows.get("select id from workflow_step_runs where node_id = 'z'")
        assert [steps for steps, _ in scene.broker.seen] == [{following}]
        counted = [name for _, changes in told if changes for each in spread((changes,)) for name in each.transitions]
        assert counted.count("step.complete") == 1


def make_claimant(runs: Callable[[str, int], bool], token: str = "asks") -> Claimant:
    return Claimant(1, token, frozenset({"default"}), runs)


async def claim_nodes(flows: Flows, instance: int, names: Sequence[str]) -> dict[str, StepRun]:
    """These nodes' ready steps, running."""
    claimed: dict[str, StepRun] = {}
    for name in names:
        step = await flows.get("select id from workflow_step_runs where node_id = $1 and ready_at is not null", name)
        claimant = make_claimant(lambda kind, version: True, name)
        [grant] = (await flows.answer(instance, Claimed(step, claimant), NOW)).claimed
        claimed[name] = grant.step
    return claimed
