"""What comes at the same instant from two sides leads on once: ends of branches, signals, retries, resumes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from korak.core.changes import Changes
from korak.core.facts import Claimed, Delivered, Fact, Finished, PauseAsked, Raised, ResumeAsked, RetryAsked
from korak.core.rows import StepRun
from korak.errors import Conflict
from korak.steps.contract import Complete
from korak.store.database import Session
from korak.store.loading import lock
from korak.store.transacting import Answer, Ask
from tests.support import eventually
from tests.support.bodies import body, for_each, node, parallel
from tests.support.flows import NOW, Flows, chain, make_claimant, pausing, work

PATIENCE = 20.0
BLOCKED = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    " and application_name = 'flows'"
)
READY = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null order by id"


async def begin(flows: Flows, *nodes: Any) -> tuple[int, int]:
    """A new run of these nodes, and an engine."""
    [instance] = await flows.start(await flows.publish(chain(*nodes)))
    return instance, await flows.register()


async def race(flows: Flows, rival: Flows, instance: int, *facts: Fact) -> list[Answer]:
    """Both facts come while somebody holds the instance, and are answered the moment that it is free."""

    async def ask(place: Flows, fact: Fact) -> Answer:
        step = fact.step if isinstance(fact, Finished) else None
        [answer] = await place.transactor.answer([Ask(instance, fact, step)], NOW, patience=PATIENCE)
        return answer

    async with flows.database.transaction() as holder:
        assert await lock(Session(holder), [instance]) == {instance}
        asking = [asyncio.create_task(ask(place, fact)) for place, fact in zip((flows, rival), facts, strict=True)]
        await eventually(lambda: _is_blocked(flows, len(facts)), message="both wait for the lock")
    return list(await asyncio.gather(*asking))


async def _is_blocked(flows: Flows, count: int) -> bool:
    return bool(await flows.get(BLOCKED) == count)


async def claim_all(flows: Flows, instance: int, engine: int) -> list[StepRun]:
    """Everything that is ready, running."""
    claimed: list[StepRun] = []
    for row in await flows.fetch(READY, instance):
        changes = await flows.answer(instance, Claimed(row["id"], make_claimant(engine)), NOW)
        claimed += [grant.step for grant in changes.claimed]
    return claimed


def finish(step: StepRun) -> Finished:
    return Finished(step.id, step.claim_token or "", Complete(output={"n": step.id}))


async def count(flows: Flows, instance: int, name: str) -> int:
    """How many attempts a node has."""
    query = "select count(*) from workflow_step_runs where instance_id = $1 and node_id = $2"
    return int(await flows.get(query, instance, name))


CONTAINERS: dict[str, Any] = {
    "parallel": parallel("both", a=body(node("x", "test.work")), b=body(node("y", "test.work"))),
    "for_each": for_each([1, 2], body(node("x", "test.work")), "both"),
}


@pytest.mark.parametrize("kind", CONTAINERS)
async def test_two_bodies_that_end_at_the_same_instant_lead_on_once(flows: Flows, rival: Flows, kind: str) -> None:
    """T-PAR-6: each result comes from an engine of its own."""
    instance, engine = await begin(flows, CONTAINERS[kind], work("after"))
    steps = await claim_all(flows, instance, engine)
    answers = await race(flows, rival, instance, *map(finish, steps))
    assert [isinstance(answer, Changes) and answer.dropped for answer in answers] == [None, None]
    assert await count(flows, instance, "after") == 1
    assert await flows.get("select count(*) from workflow_scopes where status = 'completed'") == 2
    [last] = await claim_all(flows, instance, engine)
    await flows.finish(last, Complete())
    assert (await flows.get_instance(instance))["status"] == "completed"
    told = "select count(*) from workflow_events where node_id = 'both' and type = 'StepCompleted'"
    assert await flows.get(told) == 1


async def test_one_result_that_comes_from_two_engines_is_recorded_once(flows: Flows, rival: Flows) -> None:
    """T-TX-3: the second finds the token lost."""
    instance, engine = await begin(flows, work(), work("after"))
    [step] = await claim_all(flows, instance, engine)
    answers = await race(flows, rival, instance, finish(step), finish(step))
    assert sorted(str(answer.dropped) for answer in answers if isinstance(answer, Changes)) == ["None", "stale_token"]
    assert await count(flows, instance, "after") == 1


async def test_two_signals_at_the_same_instant_lead_on_once(flows: Flows, rival: Flows) -> None:
    """T-SIG-11: one wakes the wait; the other is kept for the next that asks for it."""
    instance, engine = await begin(flows, pausing(signal="go"), pausing("again", signal="go"))
    await wake(flows, instance, engine)
    for number in (1, 2):
        await send(flows, instance, "go", number)
    answers = await race(flows, rival, instance, Delivered(), Delivered())
    assert all(isinstance(answer, Changes) for answer in answers)
    await wake(flows, instance, engine)
    assert (await flows.get_instance(instance))["status"] == "completed"
    for name in ("pausing", "again"):
        assert await count(flows, instance, name) == 1
    taken = await flows.fetch("select payload from workflow_signals where taken_at is not null order by id")
    assert [row["payload"] for row in taken] == [{"n": 1}, {"n": 2}]


async def send(flows: Flows, instance: int, name: str, number: int) -> None:
    """A signal's row."""
    await flows.fetch(
        "insert into workflow_signals (instance_id, owner_scope, kind, name, payload, source_id, created_at)"
        " values ($1, '*', 'signal', $2, $3, $4, $5) returning id",
        instance,
        name,
        {"n": number},
        f"s{number}",
        NOW,
    )


async def wake(flows: Flows, instance: int, engine: int) -> None:
    """Claim what is ready until nothing is, as an engine does that was nudged."""
    while rows := await flows.fetch(READY, instance):
        for row in rows:
            await flows.answer(instance, Claimed(row["id"], make_claimant(engine)), NOW)


async def test_two_retries_at_the_same_instant_make_one_attempt(flows: Flows, rival: Flows) -> None:
    """T-RETRY-2."""
    instance, engine = await begin(flows, work(retry={"max_attempts": 1}))
    [step] = await claim_all(flows, instance, engine)
    await flows.finish(step, Raised("test.no", "no", is_retryable=False))
    answers = await race(flows, rival, instance, RetryAsked(), RetryAsked())
    assert sorted(type(answer).__name__ for answer in answers) == ["Changes", "Conflict"]
    assert await count(flows, instance, "work") == 2
    assert len(await flows.fetch(READY, instance)) == 1


async def test_two_resumes_at_the_same_instant_start_one_step(flows: Flows, rival: Flows) -> None:
    """T-PAUSE-2."""
    instance, engine = await begin(flows, work(), work("after"))
    [step] = await claim_all(flows, instance, engine)
    await flows.answer(instance, PauseAsked(), NOW)
    await flows.finish(step, Complete())
    answers = await race(flows, rival, instance, ResumeAsked(), ResumeAsked())
    assert sum(isinstance(answer, Conflict) for answer in answers) == 1
    assert len(await claim_all(flows, instance, engine)) == 1
    assert await count(flows, instance, "after") == 1
