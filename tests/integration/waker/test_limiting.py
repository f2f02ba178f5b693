"""Steps that are parked for a limit: roused when their time comes, or when nobody told them that there is room."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from korak.core.changes import Changes
from korak.core.facts import Claimed, Finished
from korak.model import Json, JsonObject
from korak.steps.results import Complete
from korak.store import waking
from korak.store.database import Session
from korak.store.transacting import Ask
from tests.support.flows import NOW, Flows, chain, make_claimant, work
from tests.support.wakers import Wakers, at

PARKED = "select count(*) from workflow_step_runs where parked_for = 'limit'"
READY = "select id, instance_id from workflow_step_runs where ready_at is not null order by id"


def limited(**rule: Json) -> JsonObject:
    """A graph of one step with this limit."""
    return chain(work(flow=[{"key": "k", **rule}]))


async def claim_all(flows: Flows, engine: int, seconds: float) -> list[int]:
    """The instances of what runs now."""
    asks = [Ask(row["instance_id"], Claimed(row["id"], make_claimant(engine))) for row in await flows.fetch(READY)]
    answers = await flows.transactor.answer(asks, at(seconds))
    return [grant.step.instance_id for answer in answers if isinstance(answer, Changes) for grant in answer.claimed]


async def test_t_rl_2_a_rate_lets_the_next_one_go_when_its_window_is_over(flows: Flows, wakers: Wakers) -> None:
    instances = await flows.start(await flows.publish(limited(rate={"limit": 2, "per": "PT1M"})), 5)
    engine = await flows.register()
    assert await claim_all(flows, engine, 0) == instances[:2]
    assert (await wakers.run(58, may_reclaim=False)).roused == 0
    assert (await wakers.run(62, may_reclaim=False)).roused == 2
    assert await claim_all(flows, engine, 62) == instances[2:4]
    assert await flows.get(PARKED) == 1
    assert (await wakers.run(125, may_reclaim=False)).roused == 1
    assert await claim_all(flows, engine, 125) == instances[4:]


async def test_t_rl_3_others_behind_a_limited_step_are_not_delayed(flows: Flows) -> None:
    await flows.start(await flows.publish(limited(rate={"limit": 1, "per": 60}), key="limited"), 3)
    others = await flows.start(await flows.publish(chain(work()), key="free"), 3)
    engine = await flows.register()
    running = await claim_all(flows, engine, 0)
    assert running[1:] == others
    assert await flows.fetch(READY) == []


async def test_who_was_not_told_of_room_is_found(flows: Flows, wakers: Wakers) -> None:
    """As when its row was held by somebody else just then."""
    first, second = await flows.start(await flows.publish(limited(concurrency=1)), 2)
    engine = await flows.register()
    assert await claim_all(flows, engine, 0) == [first]
    step = await flows.get_step(first)
    async with flows.database.transaction() as holder:
        await holder.fetch("select from workflow_step_runs where instance_id = $1 for update", second)
        changes = await finish(flows, step)
    assert changes.roused == []
    assert await flows.get(PARKED) == 1
    assert (await wakers.run(1)).roused == 1
    assert await claim_all(flows, engine, 1) == [second]


async def finish(flows: Flows, row: Any) -> Changes:
    """Complete a running step, by its row."""
    fact = Finished(row["id"], row["claim_token"], Complete())
    return await flows.answer(row["instance_id"], fact, NOW, step=row["id"])


async def test_a_dead_engine_leaks_no_slot(flows: Flows, wakers: Wakers) -> None:
    """The transaction that takes its step over gives the slot back."""
    first, second = await flows.start(await flows.publish(limited(concurrency=1)), 2)
    engine = await flows.register()
    assert await claim_all(flows, engine, 0) == [first]
    assert await claim_all(flows, engine, 1) == []
    await wakers.run(62)
    report = await wakers.run(63)
    assert await flows.get("select count(*) from flow_slots") == 0
    assert report.errors == 0
    assert second in await claim_all(flows, await flows.register(at(64)), 64)


async def test_a_key_that_nobody_uses_any_more_is_forgotten(flows: Flows) -> None:
    [instance] = await flows.start(await flows.publish(limited(concurrency=1)))
    engine = await flows.register()
    await claim_all(flows, engine, 0)
    async with flows.database.acquire() as connection:
        runner = Session(connection)
        assert await waking.expire(runner, "flow_expire", NOW + timedelta(days=4), 10) == 0
        await finish(flows, await flows.get_step(instance))
        assert await waking.expire(runner, "flow_expire", NOW + timedelta(days=1), 10) == 0
        assert await waking.expire(runner, "flow_expire", NOW + timedelta(days=4), 10) == 1
    assert await flows.get("select count(*) from flow_keys") == 0
