"""A batch of which a part was committed when the rest met a fault: what is done is not done again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg
import pytest

from korak.broker.notify import NotifyBroker
from korak.clock import ManualClock
from korak.core.changes import Changes
from korak.core.facts import Finished
from korak.core.snapshot import Policy
from korak.dispatch import Dispatcher
from korak.steps.contract import Complete
from korak.store.channels import Channels
from korak.store.database import Database, Hot
from korak.store.gates import Gate
from korak.store.holds import View
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.transacting import Transactor
from korak_engine import lining
from korak_engine.claiming import Claimer, Inbox
from korak_engine.desk import Desk
from korak_engine.entries import Entry, Nudge, Result
from korak_engine.identity import Identity
from korak_engine.lining import Line
from korak_engine.recording import Recorder
from korak_engine.sights import Sights
from korak_engine.slots import Slots
from korak_engine.work import Work
from tests.support.flows import NOW, Flows, chain, open_flows, work
from tests.support.waiting import eventually

READY = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null"
SIZE = 10


@asynccontextmanager
async def open_desk(url: str, view: View | None = None) -> AsyncIterator[Desk]:
    """What a claimer or a recorder works with, that goes by what this knows of holds."""
    async with (
        Channels(url, "korak") as channels,
        NotifyBroker(channels) as broker,
        Database(url, "korak", name="desk") as database,
    ):
        hot, dispatcher = Hot(database), Dispatcher(broker, Gate(database))
        transactor = Transactor(hot, Loader(Plans(), Policy()), Ids(), dispatcher, view)
        yield Desk(hot, transactor, dispatcher, ManualClock(NOW))


@asynccontextmanager
async def locked(url: str, instance_id: int) -> AsyncIterator[None]:
    """Somebody holds the instance."""
    connection = await asyncpg.connect(url)
    async with connection.transaction():
        await connection.execute("select 1 from korak.workflow_instances where id = $1 for update", instance_id)
        yield
    await connection.close()


async def start(flows: Flows, count: int) -> Sequence[int]:
    """Instances whose step is ready."""
    return await flows.start(await flows.publish(chain(work("one"), work("two"))), count)


async def claim(flows: Flows, engine_id: int, instance_id: int) -> Work:
    """The instance's ready step, as an engine holds it."""
    changes = await flows.ask_claim(instance_id, engine_id, NOW)
    [grant] = changes.claimed
    return Work(grant.step, grant.input, changes.after, 1)


async def test_a_claim_that_was_granted_is_not_granted_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lining, "PATIENCE", 0.05)
    async with open_flows(database_url) as flows, open_desk(database_url) as desk:
        free, held = await start(flows, 2)
        identity = Identity(frozenset({"default"}), lambda key, version: True, await flows.register(), is_open=True)
        granted: list[Changes] = []
        slots = Slots(SIZE)
        inbox = Inbox(slots, SIZE)
        claimer = Claimer(desk, identity, slots, Sights(), Line(SIZE), granted=granted.append)
        async with locked(database_url, held):
            inbox.put([Nudge(await flows.get(READY, free)), Nudge(await flows.get(READY, held), skips=2)])
            working = asyncio.create_task(claimer.work(inbox))
            await eventually(lambda: caplog.text.count("1 steps wait to be claimed") >= 2)
        await eventually(lambda: len(granted) >= 2)
        working.cancel()

    assert sorted(changes.instance.id for changes in granted) == [free, held]
    assert slots.free == SIZE


async def test_a_result_that_was_recorded_is_not_told_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lining, "PATIENCE", 0.05)
    async with open_flows(database_url) as flows, open_desk(database_url) as desk:
        free, held = await start(flows, 2)
        engine_id = await flows.register()
        identity = Identity(frozenset({"default"}), lambda key, version: True, engine_id, is_open=True)
        results, told = Line(SIZE), list[tuple[Entry, Changes | None]]()
        works = [await claim(flows, engine_id, instance_id) for instance_id in (free, held)]
        for one, skips in zip(works, (0, 2), strict=True):
            fact = Finished(one.step.id, one.step.claim_token or "", Complete(), identity.get_claimant())
            results.put(Result(one, fact, skips))
        async with locked(database_url, held):
            recorder = Recorder(desk, lambda result, changes: told.append((result, changes)), Sights())
            working = asyncio.create_task(recorder.work(results))
            await eventually(lambda: caplog.text.count("1 results wait to be recorded") >= 2)
        await eventually(lambda: len(told) >= 2)
        working.cancel()

    assert [result.work for result, _ in told if isinstance(result, Result)] == works
    assert [len(changes.claimed) for _, changes in told if changes] == [1, 1]
