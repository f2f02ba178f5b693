"""The version of the holds: what raises it, what counts only while it stands, and whoever has read an older one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from korak.core.changes import Changes
from korak.core.decide import decide
from korak.core.facts import Claimed, Finished
from korak.core.holds import Holds
from korak.core.snapshot import Policy
from korak.model import HoldKind
from korak.steps.results import Complete
from korak.store import holds
from korak.store.applying import apply
from korak.store.database import Database, Hot, Session
from korak.store.holds import View
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids, seal
from korak.store.settling import settle
from korak.store.transacting import Ask, Outdated, Transactor
from tests.support.flows import NOW, Flows, Leaving, chain, work
from tests.support.holdings import PARKED, VERSION, claiming, hold, look, make_claimant, release
from tests.support.waiting import eventually
from tests.support.wakers import at

QUEUE = (HoldKind.QUEUE, "default")
ROWS = frozenset({("*", *QUEUE)})
HAS_LOOKED = """
    select 1 from pg_stat_activity where datname = current_database() and application_name = 'korak api'
        and query like '%pg_locks%' and state = 'idle'"""


@asynccontextmanager
async def session(url: str, name: str) -> AsyncIterator[Session]:
    """A session of that name, each of whose statements commits alone."""
    async with Database(url, "korak", name=name) as database, database.acquire() as connection:
        yield Session(connection)


# the version


async def test_whatever_changes_what_is_held_raises_the_version(flows: Flows) -> None:
    assert await look(flows) == Holds()
    await hold(flows, *QUEUE)
    assert await look(flows) == Holds(ROWS, 1)
    await hold(flows, *QUEUE, until=at(10))
    assert await look(flows) == Holds(ROWS, 2)
    await release(flows, *QUEUE)
    assert await look(flows) == Holds(version=3)


async def test_what_changes_nothing_does_not(flows: Flows) -> None:
    async with flows.database.transaction() as connection:
        assert await holds.release(Session(connection), "*", *QUEUE, NOW) is None
        assert await holds.list_ended(Session(connection), NOW, 10) == []
    assert await flows.get(VERSION) == 0


async def test_an_end_by_time_raises_it_once(flows: Flows) -> None:
    await hold(flows, *QUEUE, until=at(10))
    assert await look(flows, at(11)) == Holds(version=1)
    for _ in range(2):
        async with flows.database.transaction() as connection:
            assert len(await holds.list_ended(Session(connection), at(11), 10)) == 1
    assert await look(flows, at(11)) == Holds(version=2)


async def test_one_that_is_put_at_the_same_time_has_a_version_of_its_own(flows: Flows) -> None:
    await asyncio.gather(*(hold(flows, HoldKind.QUEUE, f"q{number}") for number in range(8)))
    assert await flows.get(VERSION) == 8


# the check


async def decide_next(flows: Flows, instance: int, engine: int, known: Holds) -> Changes:
    """What the record of the first step comes to, decided from the snapshot of its claim by what the engine knows."""
    claimed = await flows.ask_claim(instance, engine, NOW)
    [grant] = claimed.claimed
    claimant = replace(await make_claimant(flows, engine), holds=known)
    changes = decide(claimed.after, Finished(grant.step.id, grant.step.claim_token or "", Complete(), claimant), NOW)
    ids = Ids()
    async with flows.database.transaction() as connection:
        await ids.reserve(Session(connection), [changes])
    seal(changes, ids)
    return changes


async def test_a_record_by_other_holds_moves_nothing_and_those_beside_it_stand(flows: Flows) -> None:
    version = await flows.publish(chain(work("one"), work("two")))
    old, new, silent = await flows.start(version, 3)
    engine = await flows.register()
    decided = [await decide_next(flows, old, engine, Holds()), await decide_next(flows, new, engine, Holds(version=1))]
    decided.append(replace(await decide_next(flows, silent, engine, Holds()), holds=None))
    await hold(flows, HoldKind.QUEUE, "other")
    async with flows.database.transaction() as connection:
        assert await apply(Session(connection), decided) == {new, silent}
    rows = await flows.fetch("select instance_id, node_id from workflow_step_runs where status = 'running' order by 1")
    assert [tuple(row) for row in rows] == [(old, "one"), (new, "two"), (silent, "two")]


@asynccontextmanager
async def transacting(url: str, view: View | None) -> AsyncIterator[Transactor]:
    """A transactor that goes by that view."""
    async with Database(url, "korak", name="korak engine") as database:
        yield Transactor(Hot(database), Loader(Plans(), Policy()), Ids(), Leaving(), view)


async def ask(flows: Flows, instances: list[int], engine: int, known: Holds) -> list[Ask]:
    """Claims of their newest steps, made when the engine knew of these holds."""
    asks = []
    for instance in instances:
        step = await flows.get_step(instance)
        claimant = replace(await make_claimant(flows, engine), holds=known)
        asks.append(Ask(instance, Claimed(step["id"], claimant)))
    return asks


async def test_claims_under_the_lock_are_decided_once_more_by_what_is_held(flows: Flows, database_url: str) -> None:
    instances = await flows.start(await flows.publish(chain(work())), 3)
    asks = await ask(flows, instances, await flows.register(), Holds())
    view = View()
    await hold(flows, *QUEUE)
    async with transacting(database_url, view) as transactor:
        answers = await transactor.answer(asks, NOW)
    assert [answer.dropped for answer in answers if isinstance(answer, Changes)] == ["held"] * 3
    assert await flows.get(PARKED) == 3
    assert view.known == Holds(ROWS, 1)


async def test_a_step_whose_hold_was_released_begins_under_the_token_that_asked(
    flows: Flows, database_url: str
) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    await hold(flows, *QUEUE)
    known = await look(flows)
    [claim] = await ask(flows, [instance], await flows.register(), known)
    await release(flows, *QUEUE)
    async with transacting(database_url, View(known)) as transactor:
        [changes] = await transactor.answer([claim], NOW)
    assert isinstance(changes, Changes)
    assert isinstance(claim.fact, Claimed)
    assert [grant.step.claim_token for grant in changes.claimed] == [claim.fact.claimant.token]


async def test_holds_that_change_all_the_time_are_left_to_whoever_waits(
    flows: Flows, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is reported as done, and nothing is written."""
    [instance] = await flows.start(await flows.publish(chain(work())))
    asks = await ask(flows, [instance], await flows.register(), Holds())
    load, looks = holds.load, 0

    async def load_then_change(*given: Any) -> Holds:
        nonlocal looks
        looks += 1
        known = await load(*given)
        await hold(flows, HoldKind.QUEUE, "other")
        return known

    await hold(flows, HoldKind.QUEUE, "other")
    monkeypatch.setattr(holds, "load", load_then_change)
    async with transacting(database_url, View()) as transactor:
        with pytest.raises(Outdated):
            await transactor.answer(asks, NOW)
    assert looks == 2
    assert (await flows.get_step(instance))["status"] == "queued"


# whoever has read an older one


async def test_who_has_read_an_older_version_is_waited_for_and_nobody_else(flows: Flows, database_url: str) -> None:
    first, second = await flows.start(await flows.publish(chain(work())), 2)
    claimant = await make_claimant(flows, await flows.register())
    async with session(database_url, "korak api") as runner:
        async with claiming(flows, database_url, first, claimant):
            await hold(flows, HoldKind.QUEUE, "other")
            settling = asyncio.create_task(settle(runner))
            await eventually(lambda: flows.get(HAS_LOOKED))
            later = replace(claimant, holds=await look(flows))
            late = claiming(flows, database_url, second, later)
            await late.__aenter__()
            assert not settling.done()
        assert await settling
        assert (await flows.get_step(first))["status"] == "running"
        await late.__aexit__(None, None, None)


async def test_a_transaction_that_hangs_is_waited_for_no_longer_than_that(flows: Flows, database_url: str) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    claimant = await make_claimant(flows, await flows.register())
    async with session(database_url, "korak api") as runner, claiming(flows, database_url, instance, claimant):
        assert not await settle(runner, patience=0.02)


async def test_others_that_look_at_the_table_are_not_waited_for(flows: Flows, database_url: str) -> None:
    dump = await asyncpg.connect(database_url, server_settings={"application_name": "pg_dump"})
    async with session(database_url, "korak api") as runner, dump.transaction():
        await dump.execute("select * from korak.hold_state")
        assert await settle(runner, patience=0.02)
    await dump.close()
