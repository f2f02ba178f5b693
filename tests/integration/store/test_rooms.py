"""Limits by key: who gets room, who is parked, and what gives it back (T-RL, T-RES)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta

import pytest
from ulid import ULID

from korak.core.changes import Changes
from korak.core.facts import CancelAsked, Claimed, Fact, Finished, HandedBack, Lost, Raised
from korak.core.opening import Version
from korak.core.rows import StepRun
from korak.core.snapshot import Claimant
from korak.errors import TransientError
from korak.model import JsonObject
from korak.steps.results import Complete
from korak.store.database import Hot
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.transacting import Ask, Transactor
from tests.support.flows import NOW, Flows, Leaving, chain, owner, pausing, work

IN_USE = "select coalesce(sum(in_use), 0) from flow_keys where kind = 'concurrency'"
HELD = "select coalesce(sum(weight), 0) from flow_slots"
PARKED = "select id from workflow_step_runs where parked_for = 'limit' order by id"
READY = "select id, instance_id from workflow_step_runs where ready_at is not null order by id"


def limited(concurrency: int = 1, key: str = "k", **members: int) -> JsonObject:
    """One entry of `flow`."""
    return {"key": key, "concurrency": concurrency, **members}


def rated(limit: int, per: int = 60, key: str = "k") -> JsonObject:
    """One that counts what begins."""
    return {"key": key, "rate": {"limit": limit, "per": per}}


async def publish(flows: Flows, *rules: JsonObject, key: str = "flow", steps: int = 1) -> Version:
    """A graph whose steps have these limits."""
    return await flows.publish(chain(*(work(f"n{number}", flow=list(rules)) for number in range(steps))), key=key)


async def claim_all(
    flows: Flows, engine: int, now: datetime = NOW, *, transactor: Transactor | None = None
) -> list[StepRun]:
    """Ask for everything that is ready, in one batch; what runs now."""
    rows = await flows.fetch(READY)
    asks = [
        Ask(row["instance_id"], Claimed(row["id"], Claimant(engine, str(ULID()), frozenset({"default"}), _runs)))
        for row in rows
    ]
    answers = await (transactor or flows.transactor).answer(asks, now)
    return [grant.step for answer in answers if isinstance(answer, Changes) for grant in answer.claimed]


def _runs(key: str, version: int) -> bool:
    return True


async def check_slots(flows: Flows, weight: int) -> None:
    """So much is held, and counted."""
    assert await flows.get(HELD) == await flows.get(IN_USE) == weight


async def test_t_res_1_a_full_group_refuses_without_using_an_attempt(flows: Flows) -> None:
    instances = await flows.start(await publish(flows, limited(1)), 3)
    engine = await flows.register()
    [running] = await claim_all(flows, engine)
    assert running.instance_id == instances[0]
    for instance in instances[1:]:
        row = await flows.get_step(instance)
        told = (row["status"], row["attempt"], row["parked_for"], row["ready_at"], row["claim_token"])
        assert told == ("queued", 1, "limit", None, None)
    await check_slots(flows, 1)


async def test_what_ends_makes_the_next_one_ready_in_the_same_transaction(flows: Flows) -> None:
    instances = await flows.start(await publish(flows, limited(1)), 3)
    engine = await flows.register()
    for place, instance in enumerate(instances):
        [running] = await claim_all(flows, engine)
        assert running.instance_id == instance
        changes = await flows.finish(running, Complete())
        assert [step.instance_id for step in changes.roused] == instances[place + 1 : place + 2]
    await check_slots(flows, 0)


async def test_priority_goes_before_age(flows: Flows) -> None:
    version = await publish(flows, limited(1))
    await flows.start(version, 2)
    engine = await flows.register()
    [running] = await claim_all(flows, engine)
    [urgent] = await flows.start(version, 1, priority=3)
    assert await claim_all(flows, engine) == []
    await flows.finish(running, Complete())
    [running] = await claim_all(flows, engine)
    assert running.instance_id == urgent


async def test_t_res_2_a_budget_counts_costs(flows: Flows) -> None:
    """Budget 5, 4 running: a cost of 2 is refused, a cost of 1 behind it is not held up."""
    engine = await flows.register()
    for number, weight in enumerate((4, 2, 1)):
        await flows.start(await publish(flows, limited(5, weight=weight), key=f"d{number}"))
    running = await claim_all(flows, engine)
    assert len(running) == 2
    await check_slots(flows, 5)
    assert len(await flows.fetch(PARKED)) == 1
    await flows.finish(running[0], Complete())
    assert len(await claim_all(flows, engine)) == 1
    await check_slots(flows, 3)


async def test_two_definitions_share_a_key_each_by_its_own_limit_and_two_owners_none(flows: Flows) -> None:
    one, other = await publish(flows, limited(1), key="one"), await publish(flows, limited(2), key="other")
    engine = await flows.register()
    await flows.start(one)
    await flows.start(other)
    await flows.start(one, owner=owner("team:1"))
    assert len(await claim_all(flows, engine)) == 3
    await flows.start(one)
    await flows.start(other)
    assert await claim_all(flows, engine) == []


async def test_t_rl_1_and_2_a_rate_parks_until_the_computed_time(flows: Flows) -> None:
    """Limit 2 a minute, three jobs: two run, the third waits with no attempt used; it runs when the window is over."""
    instances = await flows.start(await publish(flows, rated(2)), 3)
    engine = await flows.register()
    assert len(await claim_all(flows, engine)) == 2
    row = await flows.get_step(instances[2])
    assert (row["status"], row["attempt"], row["parked_for"]) == ("queued", 1, "limit")
    assert NOW + timedelta(seconds=60) <= row["limit_until"] <= NOW + timedelta(seconds=62)


@pytest.mark.parametrize("way", ["complete", "fail", "retry", "cancel", "hand_back", "lose"])
async def test_whatever_ends_the_running_gives_the_slot_back(flows: Flows, way: str) -> None:
    [instance] = await flows.start(await publish(flows, limited(1)))
    engine = await flows.register()
    [step] = await claim_all(flows, engine)
    token = step.claim_token or ""
    facts: dict[str, Fact] = {
        "complete": Finished(step.id, token, Complete()),
        "fail": Finished(step.id, token, Raised("exception", is_retryable=False)),
        "retry": Finished(step.id, token, Raised("exception")),
        "cancel": CancelAsked(),
        "hand_back": HandedBack(step.id, token),
        "lose": Lost(step.id, token),
    }
    await flows.answer(instance, facts[way], NOW, step=step.id)
    await check_slots(flows, 0)
    if way != "cancel":
        await flows.answer(instance, facts[way], NOW, step=step.id)
        await check_slots(flows, 0)


async def test_the_next_step_of_a_run_does_not_slip_in_before_those_who_wait(flows: Flows) -> None:
    version = await publish(flows, limited(1), steps=2)
    first, second = await flows.start(version, 2)
    engine = await flows.register()
    [running] = await claim_all(flows, engine)
    claimant = Claimant(engine, str(ULID()), frozenset({"default"}), _runs)
    fact = Finished(running.id, running.claim_token or "", Complete(), claimant)
    changes = await flows.answer(first, fact, NOW, step=running.id)
    assert not changes.claimed
    assert [step.instance_id for step in changes.roused] == [second]
    [running] = await claim_all(flows, engine)
    assert running.instance_id == second


async def test_a_run_alone_goes_on_where_it_was_recorded(flows: Flows) -> None:
    [instance] = await flows.start(await publish(flows, limited(1), steps=2))
    engine = await flows.register()
    [running] = await claim_all(flows, engine)
    claimant = Claimant(engine, str(ULID()), frozenset({"default"}), _runs)
    fact = Finished(running.id, running.claim_token or "", Complete(), claimant)
    changes = await flows.answer(instance, fact, NOW, step=running.id)
    assert [grant.step.node_id for grant in changes.claimed] == ["n1"]
    await check_slots(flows, 1)


async def test_a_run_with_limits_keeps_its_slot_from_its_first_step_until_its_end(flows: Flows) -> None:
    document = chain(work("a"), pausing("b", signal="go"), work("c"), settings={"flow": [limited(1)]})
    first, second = await flows.start(await flows.publish(document), 2)
    engine = await flows.register()
    [running] = await claim_all(flows, engine)
    await flows.finish(running, Complete())
    assert await claim_all(flows, engine) == []
    await check_slots(flows, 1)
    changes = await flows.answer(first, CancelAsked(), NOW)
    assert [step.instance_id for step in changes.roused] == [second]
    await check_slots(flows, 0)
    [running] = await claim_all(flows, engine)
    assert running.instance_id == second
    await check_slots(flows, 1)


async def test_a_key_that_is_nothing_is_a_missing_value_and_can_be_retried(flows: Flows) -> None:
    rule: JsonObject = {"key": {"cel": "input.customer"}, "concurrency": 1}
    null: JsonObject = {"key": {"ref": "input.customer"}, "concurrency": 1}
    for number, one in enumerate((rule, null)):
        [instance] = await flows.start(await publish(flows, one, key=f"d{number}"))
        row = await flows.get_step(instance)
        assert (row["status"], row["error_code"]) == ("failed", "missing_value")
        assert (row["error_params"]["pointer"], row["error_params"]["path"]) == ("/flow/0/key", "input.customer")
        assert (await flows.get_instance(instance))["failed_node_id"] == "n0"
    await check_slots(flows, 0)


@asynccontextmanager
async def open_transactors(flows: Flows, count: int) -> AsyncIterator[list[Transactor]]:
    """As many engines, each on a connection of its own."""
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(count):
            hot = Hot(flows.database)
            stack.push_async_callback(hot.close)
            made.append(Transactor(hot, Loader(Plans(), flows.policy), Ids(100), Leaving()))
        yield made


async def test_t_rl_4_two_engines_never_exceed_a_rate_together(flows: Flows) -> None:
    version = await publish(flows, rated(5, 10))
    engine = await flows.register()
    async with open_transactors(flows, 2) as transactors:
        for number in range(40):
            now = NOW + timedelta(seconds=2 * number)
            await flows.start(version, 4, now)
            await asyncio.gather(*(claim_all(flows, engine, now, transactor=each) for each in transactors))
            within = await flows.get(
                "select count(*) from workflow_step_runs where claimed_at > $1", now - timedelta(seconds=10)
            )
            assert within <= 5
    assert await flows.get("select count(*) from workflow_step_runs where claimed_at is not null") >= 35


async def test_t_res_3_ten_engines_never_run_more_than_three_at_once(flows: Flows) -> None:
    version = await publish(flows, limited(3))
    total = len(await flows.start(version, 150))
    engine = await flows.register()
    most = 0

    async def work_on(transactor: Transactor) -> int:
        nonlocal most
        done = 0
        while await flows.get("select count(*) from workflow_instances where ended_at is null"):
            try:
                for step in await claim_all(flows, engine, transactor=transactor):
                    running = await flows.get("select count(*) from workflow_step_runs where status = 'running'")
                    most = max(most, running)
                    await finish(transactor, step)
                    done += 1
            except TransientError:
                continue
        return done

    async def finish(transactor: Transactor, step: StepRun) -> None:
        fact = Finished(step.id, step.claim_token or "", Complete())
        [answer] = await transactor.answer([Ask(step.instance_id, fact, step.id)], NOW, patience=5.0)
        assert isinstance(answer, Changes), answer
        assert answer.dropped is None, answer.dropped

    async with open_transactors(flows, 10) as transactors:
        done = await asyncio.wait_for(asyncio.gather(*map(work_on, transactors)), 50)
    assert sum(done) == total
    assert most == 3
    await check_slots(flows, 0)
