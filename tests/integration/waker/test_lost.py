"""Stages 3 and 4: leases that are over, nudges that were lost, and steps that waited for an engine."""

from __future__ import annotations

from datetime import timedelta

from korak.core.facts import Raised
from korak.metrics import Metrics
from korak.model import Probe
from korak.steps.contract import Complete, Wait, WaitSpec
from korak.store import engines
from korak.store.database import Session
from korak.store.releasing import Turns
from korak.store.single import Single
from korak_waker.report import Report
from tests.support.flows import LEASE, NOW, Flows, chain, work
from tests.support.wakers import Wakers, at

ASKED = chain(work("ask", "test.asking"))


async def send(flows: Flows, seconds: float = 0.0) -> None:
    """Everything ready goes to the broker, and is lost there."""
    runner = Single(flows.database)
    await Turns("default").release(runner, 1000, at(seconds))
    await runner.close()


async def renew(flows: Flows, engine: int, seconds: float, *, held_since: float = 0.0) -> bool:
    async with flows.database.acquire() as connection:
        return await engines.renew(Session(connection), engine, at(seconds), LEASE, at(held_since))


async def close(flows: Flows, engine: int, seconds: float, reason: str = "drained") -> None:
    async with flows.database.acquire() as connection:
        await engines.close(Session(connection), engine, at(seconds), reason)


# leases


async def test_a_crash_between_claim_and_record_is_a_second_attempt_under_the_same_key_jb_12(
    flows: Flows, wakers: Wakers, metrics: Metrics
) -> None:
    """T-HB-3."""
    [instance] = await flows.start(await flows.publish(chain(work())))
    first = await flows.claim(instance, await flows.register())
    assert await wakers.run(59) == Report()
    assert await wakers.run(60) == Report(reclaimed=1)
    step = await flows.get_step(instance)
    assert (step["attempt"], step["idempotency_key"], step["status"]) == (2, first.idempotency_key, "queued")
    lost = await flows.get("select error_code from workflow_step_runs where id = $1", first.id)
    assert lost == "lease_expired"
    assert metrics.registry.get_sample_value("korak_leases_expired_total") == 1
    assert (await flows.finish(first, Complete("next", {}), at(61))).dropped == "stale_token"


async def test_the_engine_s_row_is_closed_first(flows: Flows, wakers: Wakers) -> None:
    engine = await flows.register()
    await wakers.run(60)
    [row] = await flows.fetch("select closed_at, close_reason from engines where id = $1", engine)
    assert (row["closed_at"], row["close_reason"]) == (at(60), "lease_expired")
    assert not await renew(flows, engine, 61)


async def test_an_engine_that_renews_keeps_its_steps_jb_13(flows: Flows, wakers: Wakers) -> None:
    """T-HB-2."""
    [instance] = await flows.start(await flows.publish(chain(work())))
    engine = await flows.register()
    await flows.claim(instance, engine)
    assert await renew(flows, engine, 40)
    assert await wakers.run(99) == Report()
    assert (await flows.get_step(instance))["status"] == "running"


async def test_a_waker_that_has_not_seen_the_database_for_a_lease_reclaims_nothing(
    flows: Flows, wakers: Wakers
) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    await flows.claim(instance, await flows.register())
    assert await wakers.run(200, may_reclaim=False) == Report()
    assert await wakers.run(200) == Report(reclaimed=1)


async def test_an_engine_that_was_closed_is_taken_over_at_once(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    engine = await flows.register()
    await flows.claim(instance, engine)
    assert await wakers.run(1) == Report()
    await close(flows, engine, 2, "died")
    assert await wakers.run(2, may_reclaim=False) == Report(reclaimed=1)


async def test_a_claim_that_committed_after_the_end_of_its_engine_is_found_too(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    engine = await flows.register()
    await close(flows, engine, 1)
    assert await wakers.run(1) == Report()
    await flows.claim(instance, engine, at(0.5))
    assert await wakers.run(20) == Report(reclaimed=1)


async def test_an_engine_of_which_nothing_is_left_is_looked_at_no_more(flows: Flows, wakers: Wakers) -> None:
    engine = await flows.register()
    await close(flows, engine, 1)
    await wakers.run(200)
    held_since = await flows.get("select held_since from engines where id = $1", engine)
    assert held_since > at(1) + timedelta(hours=1)


async def test_an_attempt_past_its_own_time_is_lost_though_its_engine_lives(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work(timeout=10))))
    engine = await flows.register()
    await flows.claim(instance, engine)
    await renew(flows, engine, 39)
    assert await wakers.run(39) == Report()
    await renew(flows, engine, 80)
    assert await wakers.run(80) == Report(reclaimed=1)


async def test_the_last_attempt_that_a_lost_lease_took_is_given_once_more(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work(retry={"max_attempts": 1}))))
    await flows.claim(instance, await flows.register())
    await wakers.run(60)
    assert (await flows.get_step(instance))["attempt"] == 2


async def test_a_cancelled_attempt_of_a_lost_engine_cleans_up_a_second_time_wk_11(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work(kind="test.held"))))
    await flows.claim(instance, await flows.register())
    await flows.cancel(instance, at(1))
    assert await wakers.run(60) == Report(reclaimed=1)
    hooks = await flows.fetch(
        "select call from workflow_step_runs where instance_id = $1 and role = 'cancel'", instance
    )
    assert sorted(row["call"] for row in hooks) == [1, 2]
    assert await wakers.run(120) == Report()


async def test_a_type_without_a_hook_is_cleaned_up_after_once_wk_11(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    await flows.claim(instance, await flows.register())
    await flows.cancel(instance, at(1))
    assert await wakers.run(60) == Report(reclaimed=1)
    assert await wakers.run(80) == Report()
    told = await flows.get("select count(*) from workflow_events where type = 'ResultDropped'")
    assert told == 1


async def test_what_was_cancelled_while_it_waited_is_not_cleaned_up_again_wk_11(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(ASKED))
    step = await flows.claim(instance, await flows.register())
    await flows.finish(step, Wait(WaitSpec.timer(3600)), at(1))
    await flows.cancel(instance, at(2))
    assert await wakers.run(60) == Report()


async def test_a_thousand_steps_of_one_engine_are_taken_over_in_batches(flows: Flows, wakers: Wakers) -> None:
    instances = await flows.start(await flows.publish(chain(work())), 45)
    engine = await flows.register()
    for instance in instances:
        await flows.claim(instance, engine)
    waker = await wakers.make(batch=10)
    assert await waker.run_once(at(60), may_reclaim=True) == Report(reclaimed=45)


# nudges


async def test_a_lost_run_step_is_sent_again_only_after_requeue_after_jb_10(flows: Flows, wakers: Wakers) -> None:
    """T-TX-4."""
    [instance] = await flows.start(await flows.publish(chain(work())))
    await send(flows)
    assert await wakers.run(29) == Report()
    assert await wakers.run(30) == Report(requeued=1)
    step = await flows.get_step(instance)
    assert (step["ready_at"], step["sent_at"], step["attempt"]) == (NOW, None, 1)


async def test_a_step_that_was_sent_twice_is_claimed_once_jb_9(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    await send(flows)
    await wakers.run(30)
    engine = await flows.register()
    await flows.claim(instance, engine, at(31))
    assert (await flows.ask_claim(instance, engine, at(31))).dropped == "not_ready"


async def test_a_lost_probe_is_sent_again(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(ASKED))
    engine = await flows.register()
    spec = WaitSpec.event("paid", match={"order": "1"}).probe()
    await flows.finish(await flows.claim(instance, engine), Wait(spec), at(1))
    await send(flows, 1)
    assert await wakers.run(30) == Report()
    assert await wakers.run(31) == Report(requeued=1)
    assert (await flows.get_step(instance))["probe"] == Probe.RESUME


async def test_a_stamp_whose_step_is_ready_no_more_is_made_good_wt_16(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(ASKED))
    engine = await flows.register()
    await flows.finish(await flows.claim(instance, engine), Wait(WaitSpec.timer(60)), at(0))
    assert await wakers.run(60, may_reclaim=False) == Report(timers=1)
    await flows.get("update workflow_step_runs set ready_at = null where instance_id = $1", instance)
    assert await wakers.run(89, may_reclaim=False) == Report()
    assert await wakers.run(90, may_reclaim=False) == Report(requeued=1)
    assert (await flows.get_step(instance))["ready_at"] == at(90)


async def test_a_retry_that_is_not_due_is_not_sent_again(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work(retry={"max_attempts": 3, "backoff": [300]}))))
    await flows.finish(await flows.claim(instance, await flows.register()), Raised("exception"), at(0))
    assert await wakers.run(50) == Report()


# steps that no engine could run


async def park(flows: Flows, instance: int) -> None:
    """An engine without the type puts the step back."""
    await flows.get(
        "update workflow_step_runs set ready_at = null, sent_at = null, parked_for = 'engine' where instance_id = $1",
        instance,
    )


async def test_a_parked_step_goes_to_a_queue_of_an_engine_that_has_its_type(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    await park(flows, instance)
    await flows.register(types=["test.other@1", "test.work@2"], queues=["default"])
    assert await wakers.run(1) == Report()
    await flows.register(types=["test.work@1"], queues=["special"])
    assert await wakers.run(2) == Report(requeued=1)
    step = await flows.get_step(instance)
    assert (step["queue"], step["parked_for"], step["ready_at"], step["attempt"]) == ("special", None, at(2), 1)


async def test_a_parked_step_keeps_its_queue_where_such_an_engine_serves_it(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    await park(flows, instance)
    await flows.register(queues=["alpha", "default"])
    await wakers.run(1)
    assert (await flows.get_step(instance))["queue"] == "default"


async def test_a_closed_engine_offers_nothing(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    await park(flows, instance)
    await close(flows, await flows.register(), 1)
    assert await wakers.run(2) == Report()
