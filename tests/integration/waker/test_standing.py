"""What stands in a waker's way: rows that others hold or that make no sense, lost connections, other wakers."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import astuple

from korak.clock import ManualClock
from korak.core.facts import Raised
from korak.metrics import Metrics
from korak.model import JsonObject
from korak_waker.passing import Pass
from korak_waker.report import Report
from korak_waker.steadiness import Steadiness
from tests.support.flows import Flows, chain, pausing, work
from tests.support.wakers import Wakers, at

KILL = (
    "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity"
    " where datname = current_database() and application_name = 'waker under test'"
)


async def test_two_wakers_at_once_have_single_effects_wk_8(flows: Flows, wakers: Wakers) -> None:
    version = await flows.publish(chain(pausing()))
    await flows.start(version, 300)
    running = await flows.start(await flows.publish(chain(work()), key="work"), 40)
    engine = await flows.register()
    for instance in running:
        await flows.claim(instance, engine)
    many = [await wakers.make(batch=20) for _ in range(4)]
    reports = await asyncio.gather(*(waker.run_once(at(3600), may_reclaim=True) for waker in many))
    total = Report(*map(sum, zip(*map(astuple, reports), strict=True)))
    assert (total.timers, total.reclaimed, total.errors) == (300, 40, 0)
    attempts = await flows.fetch("select attempt, count(*) from workflow_step_runs where node_id = 'work' group by 1")
    assert {row["attempt"]: row["count"] for row in attempts} == {1: 40, 2: 40}
    assert await flows.get("select max(sends) from workflow_waits where kind = 'timer'") == 1


async def test_rows_that_others_hold_hide_none_behind_them_wk_10(flows: Flows, wakers: Wakers) -> None:
    await flows.start(await flows.publish(chain(pausing())), 30)
    waker = await wakers.make(batch=5)
    async with flows.database.transaction() as holder:
        await holder.fetch("select from workflow_step_runs order by id limit 12 for update")
        assert await waker.run_once(at(3600)) == Report(timers=18)
    assert await waker.run_once(at(3601)) == Report(timers=12)


async def test_held_instances_hide_no_lost_steps_and_no_deadlines(flows: Flows, wakers: Wakers) -> None:
    instances = await flows.start(await flows.publish(chain(work())), 30, execution_timeout=50.0)
    engine = await flows.register()
    for instance in instances:
        await flows.claim(instance, engine)
    waker = await wakers.make(batch=5)
    async with flows.database.transaction() as holder:
        await holder.fetch("select from workflow_instances order by id limit 12 for no key update")
        report = await waker.run_once(at(60), may_reclaim=True)
        assert (report.reclaimed, report.errors) == (18, 0)
    report = await waker.run_once(at(61), may_reclaim=True)
    assert (report.reclaimed, report.deadlines) == (12, 12)


async def test_garbage_hides_nothing_behind_it(flows: Flows, wakers: Wakers) -> None:
    instances = await flows.start(await flows.publish(chain(pausing())), 12)
    broken = instances[:6]
    await flows.get("update workflow_waits set due_at = due_at - interval '1 hour' where instance_id = any($1)", broken)
    await flows.get("update workflow_waits set step_run_id = -step_run_id where instance_id = any($1)", broken[:3])
    await flows.get(
        "update workflow_step_runs set status = 'completed', finished_at = created_at where instance_id = any($1)",
        broken[3:],
    )
    waker = await wakers.make(batch=2)
    report = await waker.run_once(at(3600))
    assert (report.timers, report.errors) == (9, 0)
    ready = await flows.get("select count(*) from workflow_step_runs where ready_at is not null")
    assert ready == 6


async def test_an_instance_whose_rows_make_no_sense_fails_and_the_others_go_on(flows: Flows, wakers: Wakers) -> None:
    instances = await flows.start(await flows.publish(chain(work())), 6)
    engine = await flows.register()
    for instance in instances:
        await flows.claim(instance, engine)
    garbage: JsonObject = {"visits": 7, "loops": []}
    await flows.get("update workflow_instances set walk = $2, state = '[]' where id = $1", instances[0], garbage)
    await flows.get("update workflow_step_runs set node_id = 'nowhere' where instance_id = $1", instances[1])
    report = await wakers.run(60)
    assert (report.reclaimed, report.errors) == (6, 0)
    row = await flows.get_instance(instances[1])
    assert (row["status"], row["failure_code"]) == ("failed", "invalid_graph")
    statuses = Counter(row["status"] for row in await flows.fetch("select status from workflow_instances"))
    assert statuses["failed"] == 1


async def test_a_connection_that_is_lost_between_two_stages_ends_no_pass(
    flows: Flows, wakers: Wakers, metrics: Metrics
) -> None:
    await flows.start(await flows.publish(chain(pausing())), 3)
    waker = await wakers.make()
    deliver = waker.stages["deliver"]

    async def lose(current: Pass) -> None:
        await deliver(current)
        assert await flows.get(KILL) > 0

    waker.stages["deliver"] = lose
    report = await waker.run_once(at(3600))
    assert (report.timers, report.interrupted, report.errors) == (3, 0, 0)


async def test_a_waker_that_lost_the_database_in_a_pass_reclaims_nothing_for_a_lease(
    flows: Flows, wakers: Wakers
) -> None:
    clock = ManualClock(at(0))
    [instance] = await flows.start(await flows.publish(chain(work())))
    await flows.claim(instance, await flows.register())
    waker = await wakers.make(clock=clock)

    async def run(seconds: float) -> Report:
        while (clock.now() - at(0)).total_seconds() < seconds:
            clock.advance(20.0)
            report = await waker.run_once(clock.now())
        return report

    await run(40)
    deliver = waker.stages["deliver"]

    async def lose(current: Pass) -> None:
        waker.stages["deliver"] = deliver
        assert await flows.get(KILL) > 0
        await deliver(current)

    waker.stages["deliver"] = lose
    assert (await run(80)).reclaimed == 0
    assert (await run(120)).reclaimed == 0
    # A connection that wasn't needed until the pass after it may be missed only then.
    assert (await run(140)).reclaimed + (await run(160)).reclaimed == 1


async def test_a_stage_that_fails_stops_no_other_and_is_done_by_the_next_pass(flows: Flows, wakers: Wakers) -> None:
    await flows.start(await flows.publish(chain(pausing())), 3)
    waker = await wakers.make()
    await flows.get(
        "insert into http_answers (owner_scope, key, fingerprint, expires_at, created_at) values ('*', '', '', $1, $1)",
        at(0),
    )
    await flows.get("alter table workflow_waits rename to hidden")
    report = await waker.run_once(at(3600))
    assert (report.timers, report.expired, report.errors) == (0, 1, 4)
    await flows.get("alter table hidden rename to workflow_waits")
    assert await waker.run_once(at(3601)) == Report(timers=3)


async def test_the_stages_run_in_the_order_of_the_spec(flows: Flows, wakers: Wakers) -> None:
    assert list((await wakers.make()).stages) == [
        "inbox",
        "match",
        "cascade",
        "look",
        "deliver",
        "reclaim",
        "resend",
        "unpark",
        "holds",
        "limits",
        "due",
        "polls",
        "deadlines",
        "release",
        "clear",
        "watch",
    ]


async def test_one_item_a_stage_is_one_pass_with_each_counter_wk_1(flows: Flows, wakers: Wakers) -> None:
    engine = await flows.register()
    retried = work(retry={"max_attempts": 3, "backoff": [30], "jitter": 0})
    [retry] = await flows.start(await flows.publish(chain(retried), key="retry"))
    await flows.finish(await flows.claim(retry, engine), Raised("exception"))
    await flows.start(await flows.publish(chain(pausing(**{"for": "PT1M"})), key="timer"))
    limited = chain(pausing(signal="go", timeout="PT1M"), work())
    limited["edges"].append({"from": "pausing", "outcome": "timed_out", "to": "work"})  # type: ignore[union-attr]  # a list
    await flows.start(await flows.publish(limited, key="timeout"))
    condition: JsonObject = {"ref": "state.ready", "default": False, "op": "eq", "value": True}
    await flows.start(await flows.publish(chain(pausing(condition=condition, poll="PT1M")), key="poll"))
    [lost] = await flows.start(await flows.publish(chain(work()), key="lost"))
    await flows.claim(lost, engine)
    [sent] = await flows.start(await flows.publish(chain(work()), key="sent"))
    await flows.get("update workflow_step_runs set sent_at = ready_at where instance_id = $1", sent)
    assert await wakers.run(60) == Report(timers=1, retries=1, timeouts=1, polls=1, reclaimed=1, requeued=1)


async def test_a_report_reads_as_a_sentence() -> None:
    assert str(Report(timers=2, reclaimed=1)) == "timers 2, reclaimed 1"
    assert str(Report()) == "nothing was due"


def test_only_a_lease_without_a_break_counts_as_steady() -> None:
    steadiness = Steadiness(60.0)
    assert [steadiness.begin(second) for second in (0, 20, 40, 59, 60)] == [False, False, False, False, True]
    assert not steadiness.begin(100)
    assert [steadiness.begin(second) for second in (120, 140, 160)] == [False, False, True]
    steadiness.lose()
    assert not steadiness.begin(161)
