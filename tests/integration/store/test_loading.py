"""Snapshots from the tables: the attempt that failed last, whatever its id, and the visit that a delivery is for."""

from __future__ import annotations

from datetime import timedelta

from korak.core.facts import Delivered, Raised, RetryAsked
from korak.core.rows import StepRun
from korak.steps.results import Wait
from korak.steps.waits import WaitSpec
from tests.support.flows import NOW, Flows, chain, work

READY = "update workflow_step_runs set ready_at = $2 where instance_id = $1 and status = 'queued'"
LATER = NOW + timedelta(hours=1)


async def move_behind(flows: Flows, step: StepRun, by: int) -> None:
    """Give an attempt a high id, as one has whose engine took its block of ids late."""
    await flows.fetch("update workflow_step_runs set id = id + $2 where id = $1", step.id, by)


async def test_mr_1_the_attempt_that_failed_last_is_retried_whatever_its_id(flows: Flows) -> None:
    [instance] = await flows.start(await flows.publish(chain(work(retry={"max_attempts": 2, "backoff": [0]}))))
    first = await flows.claim(instance, engine := await flows.register())
    await flows.finish(first, Raised("exception"))
    await flows.fetch(READY, instance, NOW)
    second = await flows.claim(instance, engine)
    await flows.finish(second, Raised("exception"))
    await move_behind(flows, first, 1_000_000)
    await flows.answer(instance, RetryAsked(), LATER)
    attempts = await flows.fetch(
        "select attempt, status from workflow_step_runs where instance_id = $1 order by attempt", instance
    )
    assert [(row["attempt"], row["status"]) for row in attempts] == [(1, "failed"), (2, "failed"), (3, "queued")]


async def test_wt_9_an_event_for_an_attempt_is_given_to_the_one_after_it(flows: Flows) -> None:
    [instance] = await flows.start(await flows.publish(chain(work(kind="test.asking"))))
    spec = WaitSpec.event("paid", {"order": "1"}).probe()
    asking = await flows.claim(instance, engine := await flows.register())
    await flows.finish(asking, Wait(spec))
    probed = await flows.claim(instance, engine)
    await flows.fetch(
        "insert into workflow_signals (instance_id, step_run_id, owner_scope, kind, name, payload, source_id,"
        " created_at) values ($1, $2, '*', 'event', 'paid', $3, 'e1', $4)",
        instance,
        probed.id,
        {"order": "1"},
        NOW,
    )
    await flows.finish(probed, Raised("exception"))
    await flows.answer(instance, Delivered(), NOW)
    assert await flows.get("select taken_at from workflow_signals where instance_id = $1", instance) is None
    await flows.fetch(READY, instance, NOW)
    again = await flows.claim(instance, engine)
    assert (again.attempt, (again.resume_signal or {})["kind"]) == (2, "probe")
    await flows.finish(again, Wait(WaitSpec.event("paid", {"order": "1"})))
    taken = await flows.claim(instance, engine)
    assert (taken.resume_signal or {})["payload"] == {"order": "1"}
