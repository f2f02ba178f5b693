"""An engine's records under limits: what gives room back goes the quick way, what needs some goes under the key."""

from __future__ import annotations

import asyncio

import pytest

from korak.core.changes import Changes
from korak.core.facts import Finished
from korak.steps.contract import Complete
from korak_engine.entries import Result
from korak_engine.identity import Identity
from korak_engine.lining import Line
from korak_engine.recording import Recorder
from korak_engine.sights import Sights
from tests.integration.engine.test_repeating import claim, open_desk
from tests.support.flows import Flows, chain, open_flows, work
from tests.support.waiting import eventually

HELD = "select coalesce(sum(weight), 0) from flow_slots"
RUNNING = "select count(*) from workflow_step_runs where status = 'running'"
IN_USE = "select coalesce(sum(in_use), 0) from flow_keys"


@pytest.mark.parametrize("runs", [1, 2])
async def test_the_next_step_takes_its_room_in_the_record_too(database_url: str, runs: int) -> None:
    """Whether it runs where the one before it was recorded, or lets another run go first."""
    async with open_flows(database_url) as flows, open_desk(database_url) as desk:
        limited = [work(name, flow=[{"key": "k", "concurrency": 1}]) for name in ("one", "two")]
        first, *others = await flows.start(await flows.publish(chain(*limited)), runs)
        engine_id = await flows.register()
        identity = Identity(frozenset({"default"}), lambda key, version: True, engine_id, is_open=True)
        held = await claim(flows, engine_id, first)
        for other in others:
            assert (await flows.ask_claim(other, engine_id, held.snapshot.instance.updated_at)).dropped == "limit"
        results, told = Line(10), list[Changes | None]()
        fact = Finished(held.step.id, held.step.claim_token or "", Complete(), identity.get_claimant())
        results.put(Result(held, fact))
        recorder = Recorder(desk, lambda result, changes: told.append(changes), Sights())
        working = asyncio.create_task(recorder.work(results))
        await eventually(lambda: told)
        working.cancel()
        [changes] = told
        assert changes is not None
        is_alone = runs == 1
        assert [grant.step.node_id for grant in changes.claimed] == (["two"] if is_alone else [])
        assert [step.instance_id for step in changes.roused] == others
        await check(flows, 1 if is_alone else 0)


async def test_a_record_that_only_gives_back_does_so_at_once(database_url: str) -> None:
    async with open_flows(database_url) as flows, open_desk(database_url) as desk:
        limited = work("one", flow=[{"key": "k", "concurrency": 1}])
        instances = await flows.start(await flows.publish(chain(limited, work("two"))), 2)
        engine_id = await flows.register()
        identity = Identity(frozenset({"default"}), lambda key, version: True, engine_id, is_open=True)
        held = await claim(flows, engine_id, instances[0])
        await flows.ask_claim(instances[1], engine_id, held.snapshot.instance.updated_at)
        results, told = Line(10), list[Changes | None]()
        fact = Finished(held.step.id, held.step.claim_token or "", Complete(), identity.get_claimant())
        results.put(Result(held, fact))
        recorder = Recorder(desk, lambda result, changes: told.append(changes), Sights())
        working = asyncio.create_task(recorder.work(results))
        await eventually(lambda: told)
        working.cancel()
        [changes] = told
        assert changes is not None
        assert [grant.step.node_id for grant in changes.claimed] == ["two"]
        assert [step.instance_id for step in changes.roused] == instances[1:]
        assert await flows.get(HELD) == await flows.get(IN_USE) == 0


async def check(flows: Flows, running: int) -> None:
    """So much runs, holds room, and is counted."""
    assert await flows.get(RUNNING) == await flows.get(HELD) == await flows.get(IN_USE) == running
