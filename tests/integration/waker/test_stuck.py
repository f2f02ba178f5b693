"""What is stuck, for each reason, and what isn't."""

from __future__ import annotations

from korak.metrics import Metrics
from korak.store.database import Session
from korak.store.stuck import Stuck, list_stuck
from korak_waker.report import Report
from tests.support.flows import Flows, chain, owner, pausing, work
from tests.support.wakers import Wakers, at


async def look(flows: Flows, seconds: float, *, scope: str | None = None) -> list[Stuck]:
    async with flows.database.acquire() as connection:
        return await list_stuck(Session(connection), at(seconds), owner=scope)


async def get_reasons(flows: Flows, seconds: float) -> list[tuple[int, str]]:
    return [(stuck.instance_id, stuck.reason) for stuck in await look(flows, seconds)]


async def test_an_open_instance_with_nothing_live_is_orphaned(flows: Flows) -> None:
    [instance, _] = await flows.start(await flows.publish(chain(pausing())), 2)
    assert await get_reasons(flows, 60) == []
    await flows.get("delete from workflow_waits where instance_id = $1", instance)
    assert await get_reasons(flows, 60) == [(instance, "orphaned")]


async def test_a_ready_step_that_nobody_claims_is_stuck_after_ten_minutes(flows: Flows) -> None:
    unsent, sent = await flows.start(await flows.publish(chain(work())), 2)
    await flows.get("update workflow_step_runs set sent_at = $2 where instance_id = $1", sent, at(590))
    assert await get_reasons(flows, 599) == []
    assert await get_reasons(flows, 600) == [(unsent, "unclaimed"), (sent, "unclaimed")]


async def test_an_attempt_far_past_its_lease_is_stuck_and_the_waker_frees_it(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    engine = await flows.register()
    await flows.claim(instance, engine)
    await flows.get("update engines set lease_until = $1, held_since = $1", at(100_000))
    assert await get_reasons(flows, 629) == []
    assert await get_reasons(flows, 630) == [(instance, "lease_expired")]
    assert await wakers.run(630) == Report(reclaimed=1)


async def test_a_wait_is_overdue_after_five_minutes_unless_the_run_is_paused(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing())))
    assert await get_reasons(flows, 3899) == []
    assert await get_reasons(flows, 3900) == [(instance, "wait_overdue")]
    until = chain(pausing(until=at(3600).isoformat()))
    [paused] = await flows.start(await flows.publish(until, key="until"))
    await flows.pause(paused, at(1))
    assert await get_reasons(flows, 3900) == [(instance, "wait_overdue")]


async def test_a_step_that_no_engine_can_run_is_stuck_after_a_minute(flows: Flows) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    await flows.get(
        "update workflow_step_runs set ready_at = null, parked_for = 'engine' where instance_id = $1", instance
    )
    assert await get_reasons(flows, 59) == []
    [stuck] = await look(flows, 60)
    assert (stuck.reason, stuck.node, stuck.type, stuck.definition) == (
        "no_engine_for_type",
        "work",
        "test.work",
        "flow",
    )


async def test_each_owner_sees_its_own(flows: Flows) -> None:
    version = await flows.publish(chain(work()))
    await flows.start(version, owner=owner("team:a"))
    [instance] = await flows.start(version, owner=owner("team:b"))
    assert [stuck.instance_id for stuck in await look(flows, 600, scope="team:b")] == [instance]


async def test_the_gauge_tells_how_many_for_each_reason(flows: Flows, wakers: Wakers, metrics: Metrics) -> None:
    instances = await flows.start(await flows.publish(chain(pausing())), 3)
    await flows.get("delete from workflow_waits where instance_id = any($1)", instances[:2])
    await wakers.run(0)
    assert metrics.registry.get_sample_value("korak_instances_stuck", {"reason": "orphaned"}) == 2
    assert metrics.registry.get_sample_value("korak_instances_stuck", {"reason": "wait_overdue"}) == 0
    await flows.get(
        "update workflow_instances set status = 'cancelled', ended_at = $1, closed_reason = 'cancelled'", at(0)
    )
    await wakers.run(29)
    assert metrics.registry.get_sample_value("korak_instances_stuck", {"reason": "orphaned"}) == 2
    await wakers.run(30)
    assert metrics.registry.get_sample_value("korak_instances_stuck", {"reason": "orphaned"}) == 0


async def test_nothing_is_left_out_between_two_pages(flows: Flows, wakers: Wakers, metrics: Metrics) -> None:
    for _ in range(3):
        await flows.start(await flows.publish(chain(pausing()), key=f"flow{_}"), 700)
    await flows.get("delete from workflow_waits")
    await wakers.run(0)
    assert metrics.registry.get_sample_value("korak_instances_stuck", {"reason": "orphaned"}) == 2100
    assert len(await look(flows, 0)) == 2100
