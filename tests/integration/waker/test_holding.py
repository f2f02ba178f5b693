"""Holds: nothing begins, nothing is lost, and what was kept goes on when they are over."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from korak.core.changes import Changes
from korak.core.facts import Claimed, Finished
from korak.model import HoldKind
from korak.steps.results import Complete, Wait
from korak.steps.waits import WaitSpec
from korak.store.database import Session
from korak.store.stuck import list_stuck
from korak.store.transacting import Outdated
from korak_waker import holding
from korak_waker.report import Report
from tests.support.flows import NOW, Flows, chain, owner, work
from tests.support.holdings import PARKED, claiming, hold, make_claimant, release
from tests.support.wakers import Wakers, at

READY = "select id, instance_id from workflow_step_runs where ready_at is not null order by id"
KINDS = [(HoldKind.DEFINITION, "flow"), (HoldKind.STEP_TYPE, "test.work"), (HoldKind.QUEUE, "default")]


async def claim_all(flows: Flows, engine: int, now: datetime = NOW) -> list[Changes]:
    """What comes of asking for all that is ready."""
    rows = await flows.fetch(READY)
    return [
        await flows.answer(row["instance_id"], Claimed(row["id"], await make_claimant(flows, engine, now)), now)
        for row in rows
    ]


@pytest.mark.parametrize(("kind", "name"), KINDS)
async def test_a_held_step_stays_queued_and_uses_no_attempt(
    flows: Flows, wakers: Wakers, kind: HoldKind, name: str
) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    engine = await flows.register()
    await hold(flows, kind, name)
    assert [changes.dropped for changes in await claim_all(flows, engine)] == ["held"]
    row = await flows.get_step(instance)
    told = (row["status"], row["attempt"], row["parked_for"], row["ready_at"], row["claim_token"])
    assert told == ("queued", 1, "hold", None, None)
    assert (await flows.get_instance(instance))["status"] == "running"
    assert await wakers.run(5) == Report()

    await release(flows, kind, name, at(6))
    assert (await wakers.run(7)).unheld == 1
    [changes] = await claim_all(flows, engine, at(7))
    assert changes.claimed


async def test_what_is_in_flight_is_not_touched_and_the_next_step_is_held(flows: Flows) -> None:
    """In the record's own claim too."""
    [instance] = await flows.start(await flows.publish(chain(work("a"), work("b"))))
    engine = await flows.register()
    running = await flows.claim(instance, engine)
    await hold(flows, HoldKind.STEP_TYPE, "test.work")
    fact = Finished(running.id, running.claim_token or "", Complete(), await make_claimant(flows, engine))
    changes = await flows.answer(instance, fact, NOW, step=running.id)
    assert changes.dropped is None
    assert not changes.claimed
    assert [step.node_id for step in changes.ready] == ["b"]
    assert [changes.dropped for changes in await claim_all(flows, engine)] == ["held"]


async def test_a_resume_of_a_held_type_keeps_its_signal_with_the_step(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work("ask", "test.asking"))))
    engine = await flows.register()
    running = await flows.claim(instance, engine)
    await flows.finish(running, Wait(WaitSpec.timer(at(10))))
    await hold(flows, HoldKind.STEP_TYPE, "test.asking")
    await wakers.run(11)
    await claim_all(flows, engine, at(11))
    row = await flows.get_step(instance)
    assert (row["status"], row["parked_for"], row["attempt"]) == ("queued", "hold", 1)
    assert row["resume_signal"]["kind"] == "timer"
    await release(flows, HoldKind.STEP_TYPE, "test.asking", at(12))
    await wakers.run(13)
    [changes] = await claim_all(flows, engine, at(13))
    assert changes.claimed[0].step.resume_signal == row["resume_signal"]


async def test_a_hold_ends_by_its_time_and_then_lets_all_go_in_pages(flows: Flows, wakers: Wakers) -> None:
    await flows.start(await flows.publish(chain(work())), 7)
    engine = await flows.register()
    await hold(flows, HoldKind.QUEUE, "default", until=at(40))
    await claim_all(flows, engine)
    assert await flows.get(PARKED) == 7
    assert (await wakers.run(39)).unheld == 0
    waker = await wakers.make(batch=3)
    assert (await waker.run_once(at(40), may_reclaim=False)).unheld == 7
    assert all(changes.claimed for changes in await claim_all(flows, engine, at(41)))
    assert await flows.get("select count(*) from holds") == 0


async def test_an_engine_that_heard_late_of_a_release_parks_nothing(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    engine = await flows.register()
    await hold(flows, HoldKind.QUEUE, "default")
    late = await make_claimant(flows, engine)
    await release(flows, HoldKind.QUEUE, "default", at(1))
    assert (await wakers.run(2)).unheld == 0
    step = await flows.get_step(instance)
    with pytest.raises(Outdated):
        await flows.answer(instance, Claimed(step["id"], late), at(3))
    assert await flows.get(PARKED) == 0
    assert await flows.get("select count(*) from holds") == 0


async def test_what_is_locked_as_its_hold_ends_goes_on_in_a_later_pass(flows: Flows, wakers: Wakers) -> None:
    await flows.start(await flows.publish(chain(work())))
    engine = await flows.register()
    await hold(flows, HoldKind.QUEUE, "default")
    await claim_all(flows, engine)
    await release(flows, HoldKind.QUEUE, "default", at(1))
    async with flows.database.transaction() as connection:
        await connection.execute("select id from workflow_step_runs for update")
        assert (await wakers.run(2)).unheld == 0
    assert (await wakers.run(3)).unheld == 1
    assert await flows.get("select count(*) from holds") == 0


async def test_who_may_still_park_is_waited_for(flows: Flows, wakers: Wakers, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that claims meanwhile: what it parks is there in the next pass."""
    monkeypatch.setattr(holding, "PATIENCE", 0.01)
    [instance] = await flows.start(await flows.publish(chain(work())))
    engine = await flows.register()
    await hold(flows, HoldKind.QUEUE, "default")
    async with claiming(flows, wakers.url, instance, await make_claimant(flows, engine)) as changes:
        await release(flows, HoldKind.QUEUE, "default", at(1))
        assert changes.dropped == "held"
        assert (await wakers.run(2)).unheld == 0
    assert await flows.get(PARKED) == 1
    assert (await wakers.run(3)).unheld == 1
    assert await flows.get("select count(*) from holds") == 0


async def test_what_another_hold_keeps_stays(flows: Flows, wakers: Wakers) -> None:
    await flows.start(await flows.publish(chain(work())), 2)
    engine = await flows.register()
    await hold(flows, HoldKind.QUEUE, "default")
    await hold(flows, HoldKind.DEFINITION, "flow")
    await claim_all(flows, engine)
    await release(flows, HoldKind.QUEUE, "default")
    assert (await wakers.run(1)).unheld == 0
    await release(flows, HoldKind.DEFINITION, "flow")
    assert (await wakers.run(2)).unheld == 2


async def test_an_owner_s_hold_keeps_nobody_else_s(flows: Flows, wakers: Wakers) -> None:
    version = await flows.publish(chain(work()))
    await flows.start(version, owner=owner("team:1"))
    await flows.start(version, owner=owner("team:2"))
    engine = await flows.register()
    await hold(flows, HoldKind.STEP_TYPE, "test.work", scope="team:1")
    assert [changes.dropped for changes in await claim_all(flows, engine)] == ["held", None]
    await release(flows, HoldKind.STEP_TYPE, "test.work", scope="team:1")
    assert (await wakers.run(1)).unheld == 1


async def test_held_and_limited_steps_are_not_stuck(flows: Flows, wakers: Wakers) -> None:
    document = chain(work(flow=[{"key": "k", "concurrency": 1}]))
    await flows.start(await flows.publish(document), 2)
    await flows.start(await flows.publish(chain(work("x", "test.asking")), key="other"))
    engine = await flows.register()
    await hold(flows, HoldKind.STEP_TYPE, "test.asking")
    await claim_all(flows, engine)
    later = NOW + timedelta(minutes=4)
    async with flows.database.acquire() as connection:
        assert await list_stuck(Session(connection), later) == []
