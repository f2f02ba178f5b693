"""Two engines record the last two bodies of one container from the same snapshot: the group goes on once (T-PAR-6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from korak.broker.notify import NotifyBroker
from korak.clock import ManualClock
from korak.core.changes import Changes, Grant
from korak.core.facts import Claimed, Finished
from korak.core.snapshot import Policy
from korak.dispatch import Dispatcher
from korak.steps.contract import Complete
from korak.store.channels import Channels
from korak.store.database import Database, Hot
from korak.store.gates import Gate
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.transacting import Transactor
from korak_engine.desk import Desk
from korak_engine.entries import Result
from korak_engine.lining import Line
from korak_engine.recording import Recorder
from korak_engine.sights import Sights
from korak_engine.work import Work
from tests.support.bodies import body, for_each, node, parallel
from tests.support.flows import NOW, Flows, chain, make_claimant, open_flows, work
from tests.support.waiting import eventually

ROUNDS = 10
READY = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null order by id"

CONTAINERS: dict[str, Any] = {
    "parallel": parallel("both", a=body(node("x", "test.work")), b=body(node("y", "test.work"))),
    "for_each": for_each([1, 2], body(node("x", "test.work")), "both"),
}


@asynccontextmanager
async def open_desk(url: str) -> AsyncIterator[Desk]:
    """What one engine records with."""
    async with (
        Channels(url, "korak") as channels,
        NotifyBroker(channels) as broker,
        Database(url, "korak", name="desk") as database,
    ):
        hot, dispatcher = Hot(database), Dispatcher(broker, Gate(database))
        transactor = Transactor(hot, Loader(Plans(), Policy()), Ids(), dispatcher)
        yield Desk(hot, transactor, dispatcher, ManualClock(NOW))


async def claim_both(flows: Flows, instance: int, engine: int) -> list[Work]:
    """Both bodies' steps, each as its engine holds it if nothing has happened since: a second claim shows that."""
    granted: list[Grant] = []
    for row in await flows.fetch(READY, instance):
        granted += (await flows.answer(instance, Claimed(row["id"], make_claimant(engine)), NOW)).claimed
    works: list[Work] = []
    for grant in granted:
        look = await flows.answer(instance, Claimed(grant.step.id, make_claimant(engine)), NOW)
        assert look.is_empty
        works.append(Work(grant.step, grant.input, look.before, 1))
    return works


async def wait_for(told: list[Changes | None], count: int) -> None:
    """Until so many results have been recorded."""
    await eventually(lambda: len(told) == count)


@pytest.mark.parametrize("kind", CONTAINERS)
async def test_bodies_that_two_engines_record_at_the_same_instant(database_url: str, kind: str) -> None:
    """T-PAR-6: both decide from one snapshot that nothing else has moved; one of them must look again."""
    async with open_flows(database_url) as flows, AsyncExitStack() as stack:
        version = await flows.publish(chain(CONTAINERS[kind], work("after")))
        engine = await flows.register()
        told: list[Changes | None] = []
        queues = [Line(10), Line(10)]
        for results in queues:
            desk = await stack.enter_async_context(open_desk(database_url))
            recorder = Recorder(desk, lambda result, changes: told.append(changes), Sights())
            working = asyncio.create_task(recorder.work(results))
            stack.callback(working.cancel)
        instances = await flows.start(version, ROUNDS)
        for number, instance in enumerate(instances, 1):
            for results, held in zip(queues, await claim_both(flows, instance, engine), strict=True):
                fact = Finished(held.step.id, held.step.claim_token or "", Complete(output={"n": 1}))
                results.put(Result(held, fact))
            await wait_for(told, 2 * number)
        assert [changes and changes.dropped for changes in told] == [None] * 2 * ROUNDS
        count = "select count(*) from workflow_step_runs where node_id = 'after' group by instance_id"
        assert [row["count"] for row in await flows.fetch(count)] == [1] * ROUNDS
        seqs = "select count(*) from workflow_events where node_id = 'both' and type = 'BodyCompleted'"
        assert await flows.get(seqs) == 2 * ROUNDS
