"""Locks by making the races: who waits for whom, in which order, and what never waits (LK-1 to LK-6, STYLE 17).

Each test with two connections waits until the server says that one of them is blocked, and only then goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from ulid import ULID

from korak.core.changes import Changes
from korak.core.facts import CancelAsked, Claimed, Fact, Finished
from korak.core.opening import Opening, Version
from korak.core.rows import StepRun
from korak.steps.results import Complete
from korak.store import emits
from korak.store.database import Session
from korak.store.loading import lock
from korak.store.statements import get_statement
from korak.store.transacting import Answer, Ask
from tests.support import eventually
from tests.support.flows import APP, NOW, Flows, chain, make_claimant, pausing, work
from tests.support.wakers import at

PATIENCE = 20.0
BLOCKED = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    " and application_name = $1"
)


@asynccontextmanager
async def holding(flows: Flows, *instances: int) -> AsyncIterator[None]:
    """Somebody holds these instances, as a record does."""
    async with flows.database.transaction() as connection:
        assert await lock(Session(connection), instances) == set(instances)
        yield


@asynccontextmanager
async def undoing(flows: Flows) -> AsyncIterator[Session]:
    """A transaction that is rolled back at its end."""
    connection = await flows.database.hold()
    transaction = connection.transaction()
    await transaction.start()
    yield Session(connection)
    await transaction.rollback()
    await connection.close()


async def wait_for_blocked(flows: Flows, count: int, *, name: str = "flows") -> None:
    """Until so many connections wait for a lock."""

    async def look() -> bool:
        return bool(await flows.get(BLOCKED, name) == count)

    await eventually(look, message=f"{count} connections wait for a lock")


async def ask(flows: Flows, instance: int, fact: Fact, step: int | None = None) -> Answer:
    """What comes of a fact, whoever holds the instance now."""
    [answer] = await flows.transactor.answer([Ask(instance, fact, step)], NOW, patience=PATIENCE)
    return answer


def claiming(step: int, engine: int) -> Claimed:
    return Claimed(step, make_claimant(engine))


def finishing(step: StepRun) -> Finished:
    return Finished(step.id, step.claim_token or "", Complete())


# lock, then look


@pytest.mark.parametrize("name", ["instances_lock", "instances_wait"])
def test_lk_1_what_locks_instances_reads_nothing_else(name: str) -> None:
    code = " ".join(line for line in get_statement(name).text.splitlines() if not line.startswith("--"))
    assert code.count("workflow_") == 1
    assert "order by i.id for no key update" in code
    assert "join" not in code


async def test_a_lock_and_a_join_in_one_statement_reads_a_new_parent_with_old_children(
    flows: Flows, database_url: str
) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    version = (await flows.get_instance(instance))["lock_version"]
    look = "select s.status from workflow_step_runs s where s.instance_id = $1"
    joined = (
        "select i.lock_version, s.status from workflow_instances i join workflow_step_runs s on s.instance_id = i.id"
        " where i.id = $1 for no key update of i"
    )
    other = await asyncpg.connect(database_url, server_settings={"search_path": "korak", "application_name": "joining"})
    async with other.transaction():
        async with flows.database.transaction() as writer:
            await writer.execute(
                "update workflow_instances set lock_version = lock_version + 1 where id = $1", instance
            )
            await writer.execute(
                "update workflow_step_runs set status = 'cancelled', ready_at = null, sent_at = null, finished_at = $2"
                " where instance_id = $1",
                instance,
                NOW,
            )
            reading = asyncio.create_task(other.fetchrow(joined, instance))
            await wait_for_blocked(flows, 1, name="joining")
        row = await reading
        assert row is not None
        assert (row["lock_version"], row["status"]) == (version + 1, "queued")
        assert await other.fetchval(look, instance) == "cancelled"
    await other.close()


# what never waits for the instance's lock


async def test_lk_6_once_ends_while_another_transaction_holds_the_instance(flows: Flows) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    step = await flows.claim(instance, await flows.register())
    async with holding(flows, instance), flows.database.transaction() as effect:
        await effect.execute("set local lock_timeout = '1s'")
        begun = await effect.fetchval("select effect_begin($1, $2, $3, $4)", step.id, step.claim_token, "e" * 64, NOW)
        assert begun is None
        await effect.execute("select effect_end($1, $2, $3, $4)", step.id, step.claim_token, "e" * 64, {"paid": 1})
    assert await flows.get("select result from workflow_idempotency_keys where instance_id = $1", instance) == {
        "paid": 1
    }


CHILD = (
    "insert into workflow_instances (ulid, definition_id, version_id, owner_scope, trigger_type, input, state, status,"
    " actor_mode, definition_hash, created_at, updated_at, depth, parent_instance_id)"
    " select $2, definition_id, version_id, owner_scope, trigger_type, input, state, status,"
    " actor_mode, definition_hash, created_at, updated_at, 1, id from workflow_instances where id = $1"
)


async def test_lk_6_a_row_that_names_an_instance_is_inserted_while_another_transaction_holds_it(flows: Flows) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    async with holding(flows, instance), flows.database.transaction() as writer:
        await writer.execute("set local lock_timeout = '1s'")
        await writer.execute(CHILD, instance, str(ULID()))
    assert await flows.get("select count(*) from workflow_instances where parent_instance_id = $1", instance) == 1


async def test_lk_6_a_stronger_lock_would_hold_it_up(flows: Flows) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    async with flows.database.transaction() as holder:
        await holder.execute("select 1 from workflow_instances where id = $1 for update", instance)
        async with flows.database.acquire() as writer:
            await writer.execute("set lock_timeout = '100ms'")
            with pytest.raises(asyncpg.LockNotAvailableError):
                await writer.execute(CHILD, instance, str(ULID()))
            await writer.execute("reset lock_timeout")


async def test_lk_2_a_batch_waits_for_no_instance_that_another_holds(flows: Flows, rival: Flows) -> None:
    held, free = await flows.start(await flows.publish(chain(work())), 2)
    async with holding(rival, held):
        asks = [Ask(instance, CancelAsked()) for instance in (held, free)]
        first, second = await asyncio.wait_for(flows.transactor.answer(asks, NOW), PATIENCE)
    assert not isinstance(first, Changes)
    assert isinstance(second, Changes)
    assert (await flows.get_instance(held))["status"] == "running"
    assert (await flows.get_instance(free))["status"] == "cancelled"


# pairs that take two locks


async def test_lk_1_two_batches_that_name_instances_in_opposite_order_take_turns(flows: Flows, rival: Flows) -> None:
    low, middle, high = await flows.start(await flows.publish(chain(work())), 3)

    def cancel(by: Flows, *instances: int) -> asyncio.Task[list[Answer]]:
        asks = [Ask(instance, CancelAsked()) for instance in instances]
        return asyncio.create_task(by.transactor.answer(asks, NOW, patience=PATIENCE))

    async with holding(flows, middle):
        first = cancel(flows, low, middle, high)
        await wait_for_blocked(flows, 1)
        second = cancel(rival, high, middle, low)
        await wait_for_blocked(flows, 2)
    assert all(isinstance(answer, Changes) for answer in await first)
    assert not any(isinstance(answer, Changes) for answer in await second)


async def race(flows: Flows, rival: Flows, instance: int, *asks: Ask) -> list[Answer]:
    """The answers of two who want the instance one after the other while a third one holds it."""
    async with holding(flows, instance):
        first = asyncio.create_task(flows.transactor.answer([asks[0]], NOW, patience=PATIENCE))
        await wait_for_blocked(flows, 1)
        second = asyncio.create_task(rival.transactor.answer([asks[1]], NOW, patience=PATIENCE))
        await wait_for_blocked(flows, 2)
    return [*await first, *await second]


@pytest.mark.parametrize("is_claim_first", [True, False])
async def test_cl_2_a_claim_and_a_cancel_take_turns(flows: Flows, rival: Flows, is_claim_first: bool) -> None:
    [instance] = await flows.start(await flows.publish(chain(work())))
    step, engine = (await flows.get_step(instance))["id"], await flows.register()
    asks = [Ask(instance, claiming(step, engine)), Ask(instance, CancelAsked("enough"))]
    answers = await race(flows, rival, instance, *(asks if is_claim_first else asks[::-1]))
    granted = [bool(answer.claimed) for answer in answers if isinstance(answer, Changes)]
    assert granted == [is_claim_first, False]
    row = await flows.get_instance(instance)
    assert (row["status"], row["cancel_reason"]) == ("cancelled", "enough")
    assert (await flows.get_step(instance))["status"] == "cancelled"


@pytest.mark.parametrize("is_record_first", [True, False])
async def test_rc_1_a_record_and_a_cancel_take_turns(flows: Flows, rival: Flows, is_record_first: bool) -> None:
    [instance] = await flows.start(await flows.publish(chain(work("one"), work("two"))))
    step = await flows.claim(instance, await flows.register())
    asks = [Ask(instance, finishing(step), step.id), Ask(instance, CancelAsked())]
    await race(flows, rival, instance, *(asks if is_record_first else asks[::-1]))
    assert (await flows.get_instance(instance))["status"] == "cancelled"
    rows = await flows.fetch("select node_id, status from workflow_step_runs where instance_id = $1", instance)
    statuses = {row["node_id"]: row["status"] for row in rows}
    assert statuses == ({"one": "completed", "two": "cancelled"} if is_record_first else {"one": "cancelled"})


async def test_a_record_waits_for_a_waker_that_has_the_rows_below_and_no_lock(flows: Flows, rival: Flows) -> None:
    """Wake and complete: the waker holds the wait and the step, the record the instance; only the record waits."""
    [instance] = await flows.start(await flows.publish(chain(pausing(), work())))
    async with rival.database.transaction() as connection:
        rows = await Session(connection).fetch("waits_due", now=at(3600), count=10, is_condition=False)
        assert len(rows) == 1
        cancelling = asyncio.create_task(ask(flows, instance, CancelAsked()))
        await wait_for_blocked(flows, 1)
    assert isinstance(await cancelling, Changes)
    step, wait = await flows.get_step(instance), await flows.fetch("select status from workflow_waits")
    assert (step["status"], step["ready_at"], wait[0]["status"]) == ("cancelled", None, "cancelled")


async def test_a_waker_passes_over_what_a_record_writes(flows: Flows, rival: Flows) -> None:
    """The other way round: the record has written the step and the wait, and the waker doesn't wait for them."""
    [instance] = await flows.start(await flows.publish(chain(pausing(), work())))
    async with flows.database.transaction() as record:
        await lock(Session(record), [instance])
        await record.execute("update workflow_waits set fired_at = null where instance_id = $1", instance)
        async with rival.database.transaction() as connection:
            look = Session(connection).fetch("waits_due", now=at(3600), count=10, is_condition=False)
            assert await asyncio.wait_for(look, PATIENCE) == []
    async with rival.database.transaction() as connection:
        assert len(await Session(connection).fetch("waits_due", now=at(3600), count=10, is_condition=False)) == 1


@pytest.mark.parametrize("is_turned", [False, True])
async def test_an_event_and_looks_back_at_it_are_delivered_in_one_order(
    flows: Flows, rival: Flows, is_turned: bool
) -> None:
    """Both insert the delivery of an event to a wait: whoever matches it, and the probe that finds it kept.

    A third one holds the middle of three. Coming from different ends the two would then wait for each other.
    """
    version = await flows.publish(chain(pausing(event="paid", match={"order": 1})))
    instances = await flows.start(version, 3)
    if is_turned:
        await flows.get("update workflow_waits set id = 1000000000 - id")
    given = instances if is_turned else instances[::-1]
    emit = emits.Emit("*", "paid", {"order": 1}, "e-1", NOW, at(3600))
    async with flows.database.transaction() as connection:
        kept = await emits.keep(Session(connection), emit)
    async with undoing(rival) as third:
        await third.fetch("signals_send", signal=[await get_taken(flows, instances[1])])
        matching = asyncio.create_task(match(flows, kept.id))
        await wait_for_blocked(flows, 1)
        looking = asyncio.create_task(look_back(flows, given))
        await wait_for_blocked(flows, 2)
    await asyncio.gather(matching, looking)
    taken = await flows.fetch("select instance_id, taken_at from workflow_signals order by instance_id")
    assert [(row["instance_id"], row["taken_at"]) for row in taken] == [(instance, NOW) for instance in instances]


async def match(flows: Flows, emit_id: int) -> None:
    async with flows.database.transaction() as connection:
        await emits.match_page(Session(connection), emit_id, 0, NOW, may_send=lambda queue: False)


async def look_back(flows: Flows, instances: list[int]) -> None:
    rows = [await get_taken(flows, instance) for instance in instances]
    async with flows.database.transaction() as connection:
        await Session(connection).fetch("signals_send", signal=rows)


async def get_taken(flows: Flows, instance: int) -> tuple[Any, ...]:
    """The delivery of the event to the instance's wait, taken as it was found."""
    [wait] = await flows.fetch("select id, step_run_id from workflow_waits where instance_id = $1", instance)
    return instance, wait["step_run_id"], wait["id"], "*", "event", "paid", {"order": 1}, "e-1", None, NOW, NOW


async def test_id_3_starts_under_the_same_keys_in_opposite_order_take_turns(flows: Flows, rival: Flows) -> None:
    version = await flows.publish(chain(work()))
    keys = [digit * 64 for digit in "abc"]

    async def start(by: Flows, digests: list[str]) -> list[bool]:
        openings = [Opening(str(ULID()), version, APP, {}, digest=digest) for digest in digests]
        async with by.database.transaction() as connection:
            batch = await by.starter.start(Session(connection), openings, NOW)
        return [each.is_created for each in batch.starts]

    async with undoing(rival) as third:
        await rival.starter.start(third, [Opening(str(ULID()), version, APP, {}, digest=keys[1])], NOW)
        first = asyncio.create_task(start(flows, keys))
        await wait_for_blocked(flows, 1)
        second = asyncio.create_task(start(rival, keys[::-1]))
        await wait_for_blocked(flows, 2)
    assert sorted([await first, await second]) == [[False] * 3, [True] * 3]


async def test_who_waits_for_another_s_new_counter_holds_no_old_one(flows: Flows, rival: Flows) -> None:
    old, new = [await flows.publish(chain(work()), key=key) for key in ("old", "new")]
    limits = {version.definition_id: 100 for version in (old, new)}

    async def start(by: Flows, *versions: Version) -> int:
        openings = [Opening(str(ULID()), version, APP, {}) for version in versions]
        async with by.database.transaction() as connection:
            batch = await by.starter.start(Session(connection), openings, NOW, limits=limits)
        return sum(each.is_created for each in batch.starts)

    assert await start(flows, old) == 1
    async with undoing(rival) as third:
        await third.fetch("rates_open", wanted=[(f"definition:{new.definition_id}",)])
        both = asyncio.create_task(start(flows, old, new))
        await wait_for_blocked(flows, 1)
        assert await asyncio.wait_for(start(rival, old), PATIENCE) == 1
    assert await both == 2
