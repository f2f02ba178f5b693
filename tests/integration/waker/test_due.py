"""Stages 5 and 6: what is due becomes ready, at the pass's own time, and only once."""

from __future__ import annotations

import pytest

from korak.core.facts import Raised
from korak.metrics import Metrics
from korak.model import JsonObject
from korak.steps.contract import Complete
from korak_waker.report import Report
from tests.support.flows import Flows, chain, pausing, work
from tests.support.wakers import Wakers, at

FOREVER: JsonObject = {"ref": "state.ready", "default": False, "op": "eq", "value": True}


async def test_a_timer_wakes_on_the_exact_second_and_not_before_wt_1(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing(**{"for": "PT10S"}))))
    assert await wakers.run(9.999) == Report()
    assert (await flows.get_step(instance))["ready_at"] is None
    assert await wakers.run(10) == Report(timers=1)
    assert (await flows.get_step(instance))["ready_at"] == at(10)


async def test_what_was_woken_is_claimed_and_goes_on(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing(), work())))
    await wakers.run(3600)
    engine = await flows.register()
    step = await flows.get_step(instance)
    assert step["status"] == "waiting"
    await flows.claim_any(instance, engine, at(3600))
    assert (await flows.get_step(instance))["node_id"] == "work"


async def test_a_timer_is_woken_once(flows: Flows, wakers: Wakers) -> None:
    await flows.start(await flows.publish(chain(pausing())))
    assert await wakers.run(3600) == Report(timers=1)
    assert await wakers.run(3601) == Report()


async def test_a_timeout_counts_apart_wt_5(flows: Flows, wakers: Wakers) -> None:
    node = pausing(event="paid", match={"order": "1"}, timeout="PT5M")
    document = chain(node, work())
    document["edges"].append({"from": "pausing", "outcome": "timed_out", "to": "work"})  # type: ignore[union-attr]  # a list
    await flows.start(await flows.publish(document))
    assert await wakers.run(300) == Report(timeouts=1)


async def test_a_condition_is_looked_at_when_its_time_comes_wt_3(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing(condition=FOREVER, poll="PT2M"))))
    assert await wakers.run(119) == Report()
    assert await wakers.run(120) == Report(polls=1)
    await flows.claim_any(instance, await flows.register(), at(120))
    assert (await flows.get_step(instance))["ready_at"] is None
    assert await wakers.run(239) == Report()
    assert await wakers.run(240) == Report(polls=1)


async def test_wake_in_the_future_starts_the_retry_in_the_same_pass_wk_4(flows: Flows, wakers: Wakers) -> None:
    node = work(retry={"max_attempts": 3, "backoff": [30], "jitter": 0})
    [instance] = await flows.start(await flows.publish(chain(node)))
    engine = await flows.register()
    await flows.finish(await flows.claim(instance, engine), Raised("exception"))
    assert await wakers.run(29) == Report()
    assert await wakers.run(30) == Report(retries=1)
    step = await flows.claim(instance, engine, at(30))
    assert step.attempt == 2
    await flows.finish(step, Complete("next", {}), at(31))
    assert (await flows.get_instance(instance))["status"] == "completed"


async def test_every_stage_stamps_the_time_that_it_was_given_wk_3(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing())))
    await wakers.run(86_400)
    assert (await flows.get_step(instance))["ready_at"] == at(86_400)
    assert await flows.get("select sent_at from workflow_waits where instance_id = $1", instance) == at(86_400)


async def test_a_pass_takes_batch_after_batch_until_one_is_short_wk_6_wk_10(flows: Flows, wakers: Wakers) -> None:
    await flows.start(await flows.publish(chain(pausing())), 25)
    waker = await wakers.make(batch=10)
    assert await waker.run_once(at(3600)) == Report(timers=25)


async def test_a_paused_run_keeps_its_timers_for_later(flows: Flows, wakers: Wakers) -> None:
    [instance] = await flows.start(await flows.publish(chain(pausing())))
    await flows.pause(instance, at(600))
    assert await wakers.run(7200) == Report()
    await flows.resume(instance, at(10_000))
    assert await wakers.run(12_999) == Report()
    assert await wakers.run(13_000) == Report(timers=1)


async def test_a_date_that_passed_during_a_pause_fires_at_the_resume(flows: Flows, wakers: Wakers) -> None:
    until = at(600).isoformat()
    [instance] = await flows.start(await flows.publish(chain(pausing(until=until), work())))
    await flows.pause(instance, at(10))
    await wakers.run(700)
    engine = await flows.register()
    await flows.ask_claim(instance, engine, at(701))
    await flows.resume(instance, at(800))
    await wakers.run(800)
    await flows.claim_any(instance, engine, at(801))
    assert (await flows.get_step(instance))["node_id"] == "work"


async def test_the_lag_is_measured_by_kind(flows: Flows, wakers: Wakers, metrics: Metrics) -> None:
    await flows.start(await flows.publish(chain(pausing())))
    await wakers.run(3602)
    assert metrics.registry.get_sample_value("korak_wake_lag_seconds_sum", {"kind": "timer"}) == pytest.approx(2.0)
    assert metrics.registry.get_sample_value("korak_wake_handled_total", {"kind": "timers"}) == 1


async def test_a_deadline_ends_the_run(flows: Flows, wakers: Wakers) -> None:
    version = await flows.publish(chain(pausing()))
    instances = await flows.start(version, 3, execution_timeout=60.0)
    assert await wakers.run(59) == Report()
    assert await wakers.run(60) == Report(deadlines=3)
    row = await flows.get_instance(instances[0])
    assert (row["status"], row["failure_code"], row["closed_reason"]) == ("failed", "deadline_exceeded", "deadline")
    assert await wakers.run(61) == Report()


async def test_the_next_due_time_is_the_earliest_of_all(flows: Flows, wakers: Wakers) -> None:
    waker = await wakers.make()
    assert await waker.get_next_due(at(0)) is None
    await flows.start(await flows.publish(chain(pausing())))
    assert await waker.get_next_due(at(0)) == at(3600)
    await flows.start(await flows.publish(chain(pausing()), key="other"), execution_timeout=600.0)
    assert await waker.get_next_due(at(0)) == at(600)
    await flows.register()
    assert await waker.get_next_due(at(0)) == at(60)
    assert await waker.get_next_due(at(60)) == at(600)
