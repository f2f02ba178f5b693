"""Writes whose claim is stale: whoever comes too late is told so, and not one row has changed (STYLE 4, RC-2, CL-4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeAlias

import pytest
from ulid import ULID

from korak.core.changes import Changes
from korak.core.decide import decide
from korak.core.facts import Claimed, Fact, Finished, HandedBack, Lost, Raised
from korak.core.opening import Opening
from korak.core.rows import StepRun
from korak.core.snapshot import Claimant
from korak.steps.results import Complete, Wait
from korak.steps.waits import WaitSpec
from korak.store import emits, engines, waking
from korak.store.applying import apply
from korak.store.database import Session
from korak.store.releasing import unstamp
from korak.store.sealing import Ids, seal
from tests.support.flows import APP, LEASE, NOW, Flows, chain, pausing, work
from tests.support.wakers import at

STALE = "01J0000000000000000000000Z"
TABLES = (
    "engines",
    "workflow_emits",
    "workflow_events",
    "workflow_failures",
    "workflow_idempotency_keys",
    "workflow_instances",
    "workflow_signals",
    "workflow_step_runs",
    "workflow_waits",
)


async def dump(flows: Flows) -> dict[str, list[str]]:
    """Every row of the tables that a run writes."""
    return {
        table: [row["row"] for row in await flows.fetch(f"select t::text as row from {table} t order by 1")]
        for table in TABLES
    }


# facts under a token that is lost

Claim: TypeAlias = "Callable[[StepRun, str], Fact]"
FACTS: dict[str, Claim] = {
    "completed": lambda step, token: Finished(step.id, token, Complete(output={"x": 1})),
    "failed": lambda step, token: Finished(step.id, token, Raised("exception")),
    "parked": lambda step, token: Finished(step.id, token, Wait(WaitSpec.timer("PT1H"))),
    "handed back": lambda step, token: HandedBack(step.id, token),
    "lost": lambda step, token: Lost(step.id, token),
}


@pytest.mark.parametrize("name", FACTS)
async def test_rc_2_what_comes_under_another_token_changes_nothing(flows: Flows, name: str) -> None:
    """T-TX-3."""
    [instance] = await flows.start(await flows.publish(chain(work())))
    step = await flows.claim(instance, await flows.register())
    before = await dump(flows)
    changes = await flows.answer(instance, FACTS[name](step, STALE), NOW, step=step.id)
    assert (changes.is_empty, bool(changes.dropped)) == (True, True)
    assert await dump(flows) == before


@pytest.mark.parametrize("name", FACTS)
async def test_rc_2_what_comes_from_the_holder_before_changes_nothing(flows: Flows, name: str) -> None:
    """T-HB-4: the engine was lost and the next attempt runs; its own token still comes for the attempt that it had."""
    [instance] = await flows.start(await flows.publish(chain(work(retry={"max_attempts": 3, "backoff": [0]}))))
    step = await flows.claim(instance, engine := await flows.register())
    token = step.claim_token or ""
    await flows.answer(instance, Lost(step.id, token), NOW, step=step.id)
    await flows.get("update workflow_step_runs set ready_at = $1 where status = 'queued'", NOW)
    await flows.claim(instance, engine)
    before = await dump(flows)
    changes = await flows.answer(instance, FACTS[name](step, token), NOW, step=step.id)
    assert (changes.is_empty, bool(changes.dropped)) == (True, True)
    assert await dump(flows) == before


async def test_cl_4_a_second_claim_of_a_step_changes_nothing(flows: Flows) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    step = await flows.claim(instance, engine := await flows.register())
    before = await dump(flows)
    claimant = Claimant(engine, STALE, frozenset({"default"}), lambda key, version: True)
    changes = await flows.answer(instance, Claimed(step.id, claimant), NOW)
    assert (changes.claimed, changes.dropped) == ([], "not_ready")
    assert await dump(flows) == before


# the record that takes no look


async def test_a_record_from_a_snapshot_that_is_old_changes_nothing(flows: Flows) -> None:
    """Neither in the one statement nor in what follows it, and the others of its batch stand."""
    version = await flows.publish(chain(work("one", "test.asking"), work("two")))
    engine = await flows.register()
    old, new = await flows.start(version, 2)
    decided = [
        await decide_from_claim(flows, instance, engine, result)
        for instance, result in ((old, Wait(WaitSpec.event("paid", {"order": 1}))), (new, Complete()))
    ]
    await flows.get("update workflow_instances set lock_version = lock_version + 1 where id = $1", old)
    rows = "select t::text as row from {} t where t.instance_id = $1"
    tables = ("workflow_step_runs", "workflow_waits", "workflow_events", "workflow_signals")
    before = [await flows.fetch(rows.format(table), old) for table in tables]
    async with flows.database.transaction() as connection:
        await Ids().reserve(Session(connection), decided)
        moved = await apply(Session(connection), decided)
    assert moved == {new}
    assert [await flows.fetch(rows.format(table), old) for table in tables] == before
    assert (await flows.get_step(new))["node_id"] == "two"


async def decide_from_claim(flows: Flows, instance: int, engine: int, result: Any) -> Changes:
    """What a result comes to, decided from the snapshot that the claim has left, sealed."""
    claimed = await flows.ask_claim(instance, engine, NOW)
    [grant] = claimed.claimed
    changes = decide(claimed.after, Finished(grant.step.id, grant.step.claim_token or "", result), NOW)
    ids = Ids()
    async with flows.database.transaction() as connection:
        await ids.reserve(Session(connection), [changes])
    seal(changes, ids)
    return changes


# the fleet


async def test_an_engine_that_was_closed_renews_nothing(flows: Flows) -> None:
    engine = await flows.register()
    async with flows.database.acquire() as connection:
        runner = Session(connection)
        assert await engines.renew(runner, engine, at(1), LEASE, NOW)
        await engines.close(runner, engine, at(2), "stopped")
        before = await dump(flows)
        assert not await engines.renew(runner, engine, at(3), LEASE, NOW)
        await engines.close(runner, engine, at(4), "supervisor")
    assert await dump(flows) == before


async def test_an_engine_whose_lease_holds_is_not_closed_and_an_open_one_not_settled(flows: Flows) -> None:
    engine = await flows.register()
    before = await dump(flows)
    async with flows.database.acquire() as connection:
        runner = Session(connection)
        assert await waking.expire_engines(runner, at(59)) == []
        await waking.settle_engine(runner, engine)
        assert await dump(flows) == before
        assert await waking.expire_engines(runner, at(60)) == [engine]


async def test_only_the_token_that_runs_holds_its_step(flows: Flows) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    step = await flows.claim(instance, await flows.register())
    own = (step.id, step.claim_token or "")
    async with flows.database.acquire() as connection:
        runner = Session(connection)
        assert await engines.list_held(runner, [own, (step.id, STALE)]) == {step.id}
        assert await engines.list_held(runner, [(step.id, STALE)]) == set()
        await flows.finish(step, Complete())
        assert await engines.list_held(runner, [own]) == set()


# stamps, written without the instance's lock

Stamp: TypeAlias = "Callable[[Session, int], Awaitable[Any]]"
STAMPS: dict[str, Stamp] = {
    "due": lambda runner, step: waking.stamp_due(runner, at(9_000), 10, conditions=False),
    "due conditions": lambda runner, step: waking.stamp_due(runner, at(9_000), 10, conditions=True),
    "waits again": lambda runner, step: waking.repeat_waits(runner, at(9_000), 10, after=30),
    "steps again": lambda runner, step: waking.repeat_steps(runner, "default", at(9_000), 10, after=30, is_empty=True),
    "signals again": lambda runner, step: waking.repeat_signals(runner, at(9_000), 10, soon=1, after=30),
    "unparked": lambda runner, step: waking.unpark(runner, "test.work", {(1, "default")}, at(9_000), 10),
    "given back": lambda runner, step: unstamp(runner, [step]),
    "released": lambda runner, step: runner.fetch("steps_release", queue="default", now=at(9_000), count=10, after=""),
    "roused": lambda runner, step: runner.fetch("steps_rouse", ids=[step]),
}


@pytest.mark.parametrize("name", STAMPS)
async def test_what_runs_or_has_ended_is_stamped_by_nobody(flows: Flows, name: str) -> None:
    """One run whose step was claimed after a retry and a signal, and one that was cancelled while it waited."""
    retried = work(retry={"max_attempts": 3, "backoff": [5]})
    [running] = await flows.start(await flows.publish(chain(retried), key="retried"))
    [waiting] = await flows.start(await flows.publish(chain(pausing()), key="waiting"))
    engine = await flows.register()
    await flows.finish(await flows.claim(running, engine), Raised("exception"))
    async with flows.database.transaction() as connection:
        await waking.stamp_due(Session(connection), at(10), 10, conditions=False)
    step = await flows.claim(running, engine, at(10))
    await flows.cancel(waiting, at(11))
    before = await dump(flows)
    async with flows.database.transaction() as connection:
        assert not await STAMPS[name](Session(connection), step.id)
    assert await dump(flows) == before


# keys and events


async def test_id_2_a_key_that_is_known_is_not_taken_again(flows: Flows) -> None:
    version = await flows.publish(chain(work()))

    async def start(seconds: float) -> bool:
        opening = Opening(str(ULID()), version, APP, {}, digest="a" * 64)
        async with flows.database.transaction() as connection:
            batch = await flows.starter.start(Session(connection), [opening], at(seconds))
        return batch.starts[0].is_created

    assert await start(0)
    before = await dump(flows)
    assert not await start(10)
    assert await dump(flows) == before


async def test_an_event_that_is_matched_is_not_matched_again(flows: Flows) -> None:
    emit = emits.Emit("*", "paid", {}, "e-1", NOW, NOW + timedelta(hours=1))

    async def match() -> emits.Page:
        async with flows.database.transaction() as connection:
            kept = await emits.keep(Session(connection), emit)
            return await emits.match_page(Session(connection), kept.id, 0, NOW, may_send=lambda queue: False)

    await match()
    await flows.start(await flows.publish(chain(pausing(event="paid", match={"order": 1}))))
    before = await dump(flows)
    assert (await match()).matched == 0
    assert await dump(flows) == before
