"""An engine that hasn't heard of a hold yet, or not of its release: what it decides by that doesn't count."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from korak.core.changes import Changes
from korak.core.facts import Claimed, Finished
from korak.model import HoldKind
from korak.steps.contract import Complete
from korak.store.holds import View
from korak_engine.claiming import Claimer, Inbox
from korak_engine.desk import Desk
from korak_engine.entries import Entry, Nudge, Result
from korak_engine.identity import Identity
from korak_engine.lining import Line
from korak_engine.recording import Recorder
from korak_engine.sights import Sights
from korak_engine.slots import Slots
from tests.integration.engine.test_repeating import READY, claim, open_desk, start
from tests.support.flows import Flows, open_flows
from tests.support.holdings import PARKED, hold, look, release
from tests.support.waiting import eventually

TYPE = (HoldKind.STEP_TYPE, "test.work")
STEPS = "select node_id, status from workflow_step_runs where instance_id = $1 order by id"


@asynccontextmanager
async def engine(url: str) -> AsyncIterator[tuple[Flows, Desk, Identity]]:
    """An engine that has looked before anything was held, and looks again only where it must."""
    view = View()
    async with open_flows(url) as flows, open_desk(url, view) as desk:
        engine_id = await flows.register()
        yield flows, desk, Identity(frozenset({"default"}), lambda key, version: True, engine_id, True, view)


async def record(desk: Desk, entry: Entry, sights: Sights | None = None) -> Changes:
    """What comes of an entry."""
    line, told = Line(10), list[Changes | None]()
    line.put(entry)
    recorder = Recorder(desk, lambda entry, changes: told.append(changes), sights or Sights())
    working = asyncio.create_task(recorder.work(line))
    await eventually(lambda: told)
    working.cancel()
    [changes] = told
    assert changes is not None
    return changes


@pytest.mark.parametrize("skips", [0, 1], ids=["quick", "locked"])
async def test_the_next_step_doesn_t_begin_in_a_record_once_it_is_held(database_url: str, skips: int) -> None:
    async with engine(database_url) as (flows, desk, identity):
        [instance] = await start(flows, 1)
        held = await claim(flows, identity.engine_id, instance)
        claimant = identity.get_claimant()
        await hold(flows, *TYPE)
        fact = Finished(held.step.id, held.step.claim_token or "", Complete(), claimant)
        changes = await record(desk, Result(held, fact, skips))
        assert (changes.dropped, changes.claimed) == (None, [])
        rows = [tuple(row) for row in await flows.fetch(STEPS, instance)]
        assert rows == [("one", "completed"), ("two", "queued")]
        assert identity.view.known == await look(flows)


@pytest.mark.parametrize("skips", [0, 1], ids=["quick", "locked"])
async def test_it_begins_there_under_its_token_once_its_hold_is_released(database_url: str, skips: int) -> None:
    async with engine(database_url) as (flows, desk, identity):
        [instance] = await start(flows, 1)
        held = await claim(flows, identity.engine_id, instance)
        await hold(flows, *TYPE)
        identity.view.known = await look(flows)
        claimant = identity.get_claimant()
        await release(flows, *TYPE)
        fact = Finished(held.step.id, held.step.claim_token or "", Complete(), claimant)
        changes = await record(desk, Result(held, fact, skips))
        assert [grant.step.claim_token for grant in changes.claimed] == [claimant.token]
        assert [tuple(row) for row in await flows.fetch(STEPS, instance)] == [("one", "completed"), ("two", "running")]


async def test_a_nudge_begins_nothing_that_is_held(database_url: str) -> None:
    async with engine(database_url) as (flows, desk, identity):
        first, second = await start(flows, 2)
        granted: list[Changes] = []
        slots = Slots(4)
        inbox = Inbox(slots, 4)
        claimer = Claimer(desk, identity, slots, Sights(), Line(4), granted=granted.append)
        await hold(flows, *TYPE)
        inbox.put([Nudge(await flows.get(READY, instance)) for instance in (first, second)])
        working = asyncio.create_task(claimer.work(inbox))
        await eventually(lambda: slots.free == 4)
        working.cancel()
        assert granted == []
        assert await flows.get(PARKED) == 2


@pytest.mark.parametrize("skips", [0, 1], ids=["quick", "locked"])
async def test_nor_does_one_of_an_instance_that_runs_here(database_url: str, skips: int) -> None:
    async with engine(database_url) as (flows, desk, identity):
        [instance] = await start(flows, 1)
        fact = Claimed(await flows.get(READY, instance), identity.get_claimant())
        sights = Sights()
        sights.hold(await flows.load(instance))
        await hold(flows, *TYPE)
        changes = await record(desk, Nudge(fact.step, fact, instance, skips), sights)
        assert (changes.dropped, changes.claimed) == ("held", [])
        assert await flows.get(PARKED) == 1
