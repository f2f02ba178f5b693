"""What is older goes first, whichever process has made it: each takes its ids in blocks of its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from itertools import cycle

import pytest
from ulid import ULID

from korak.broker.messages import RunStep
from korak.clock import ManualClock
from korak.core.changes import Changes
from korak.core.facts import Claimed
from korak.core.opening import Opening, Version
from korak.core.rows import StepRun
from korak.model import HoldKind, JsonObject
from korak.releasing import Puller
from korak.steps.results import Complete
from korak.store import holds, waking
from korak.store.database import Session
from korak.store.holds import Ended
from korak.store.releasing import Turns
from korak.store.rooms import rouse_waiting
from korak.store.sealing import Ids
from korak.store.single import Single
from korak.store.starts import Starter
from korak.store.transacting import Ask
from tests.support.flows import NOW, Flows, Leaving, chain, make_claimant, owner, work

ONE_AT_A_TIME: JsonObject = {"key": "k", "concurrency": 1}
BY_CUSTOMER: JsonObject = {"key": {"ref": "input.customer"}, "concurrency": 1000}
READY = "select id, instance_id from workflow_step_runs where ready_at is not null order by id"
OWNERS = "select id, instance_id from workflow_step_runs where id = any($1)"
KEY = """
insert into flow_keys (owner_scope, kind, key, counters) values ('team:a', 'concurrency', 'k', $1) returning id
"""
PARK = """
update workflow_step_runs set ready_at = null, parked_for = $1, limit_key = $2, limit_ceiling = 100, limit_weight = 1
where ready_at is not null
"""


def make_starter(flows: Flows, block: int = 2_000) -> Starter:
    """As another process has one."""
    return Starter(flows.policy, Ids(block), timedelta(days=30))


async def start_in_turns(
    flows: Flows, version: Version, count: int, *, priorities: Sequence[int] = (0,), customers: Sequence[str] = ("c",)
) -> list[int]:
    """The instances that two processes have started in turns, a second apart, the oldest first."""
    starters = cycle([make_starter(flows), make_starter(flows)])
    started: list[int] = []
    kinds = zip(range(count), starters, cycle(priorities), cycle(customers), strict=False)
    for second, starter, priority, customer in kinds:
        opening = Opening(str(ULID()), version, owner("team:a"), {"customer": customer}, priority=priority)
        async with flows.database.transaction() as connection:
            batch = await starter.start(Session(connection), [opening], NOW + timedelta(seconds=second))
        started += [changes.instance.id for changes in batch.changes]
    return started


async def list_instances(flows: Flows, ids: Sequence[int]) -> list[int]:
    """Whose steps these are."""
    found = {row["id"]: row["instance_id"] for row in await flows.fetch(OWNERS, ids)}
    return [found[step] for step in ids]


async def release_all(flows: Flows, runner: Single, *, at_once: int) -> list[int]:
    """The instances whose steps are released, in that order."""
    turns, released = Turns("default"), list[int]()
    while steps := await turns.release(runner, at_once, NOW):
        released += [step.id for step in steps]
    return await list_instances(flows, released)


async def list_ready(flows: Flows) -> list[int]:
    """The instances with a ready step."""
    return sorted(row["instance_id"] for row in await flows.fetch(READY))


async def claim_all(flows: Flows, engine: int) -> list[StepRun]:
    """Ask for everything that is ready, in one batch; what runs now."""
    rows = await flows.fetch(READY)
    asks = [Ask(row["instance_id"], Claimed(row["id"], make_claimant(engine))) for row in rows]
    answers = await flows.transactor.answer(asks, NOW)
    return [grant.step for answer in answers if isinstance(answer, Changes) for grant in answer.claimed]


# under limits


async def test_starts_of_two_processes_run_one_after_the_other_by_age(flows: Flows) -> None:
    """Both where many ask at once and where what is parked is roused."""
    started = await start_in_turns(flows, await flows.publish(chain(work(flow=[ONE_AT_A_TIME]))), 16)
    engine, ran = await flows.register(), list[int]()
    while running := await claim_all(flows, engine):
        ran += [step.instance_id for step in running]
        for step in running:
            await flows.finish(step, Complete())
    assert ran == started


async def test_the_oldest_of_a_batch_gets_the_room(flows: Flows) -> None:
    """Here the younger one has the lower id."""
    version = await flows.publish(chain(work(flow=[ONE_AT_A_TIME])))
    _, older, younger = await start_in_turns(flows, version, 3)
    [first] = await flows.fetch(READY + " limit 1")
    await flows.get("delete from workflow_step_runs where id = $1", first["id"])
    [running] = await claim_all(flows, await flows.register())
    assert younger < older
    assert running.instance_id == older


async def test_a_higher_priority_is_roused_first_then_the_oldest(flows: Flows, runner: Single) -> None:
    """In the order in which they are then sent."""
    version = await flows.publish(chain(work(flow=[ONE_AT_A_TIME])))
    started = await start_in_turns(flows, version, 6, priorities=(0, 0, 3, 3))
    key = await flows.get(KEY, [0] * 60)
    await flows.get(PARK, "limit", key)
    async with runner.transaction() as held:
        steps, _ = await rouse_waiting(held, 0, 10, NOW, Leaving())
    assert [step.instance_id for step in steps] == [started[place] for place in (2, 3, 0, 1, 4, 5)]


# of what is ready


@pytest.mark.parametrize("at_once", [1, 3, 100])
async def test_the_oldest_is_released_first(flows: Flows, runner: Single, at_once: int) -> None:
    started = await start_in_turns(flows, await flows.publish(chain(work())), 8)
    assert await release_all(flows, runner, at_once=at_once) == started


@pytest.mark.parametrize("at_once", [1, 3, 100])
async def test_a_higher_priority_is_released_first_then_the_oldest(flows: Flows, runner: Single, at_once: int) -> None:
    started = await start_in_turns(flows, await flows.publish(chain(work())), 6, priorities=(0, 0, 3, 3))
    expected = [started[place] for place in (2, 3, 0, 1, 4, 5)]
    assert await release_all(flows, runner, at_once=at_once) == expected


async def test_the_keys_of_an_owner_take_turns_the_oldest_of_each_first(flows: Flows, runner: Single) -> None:
    limited = await flows.publish(chain(work(flow=[BY_CUSTOMER])))
    started = await start_in_turns(flows, limited, 6, customers=("one", "one", "two"))
    free = await start_in_turns(flows, await flows.publish(chain(work()), key="free"), 3)
    first, second = [started[0], free[0], started[2]], [started[1], free[1], started[5]]
    assert await release_all(flows, runner, at_once=100) == [*first, *second, free[2], started[3], started[4]]


async def test_the_oldest_is_pulled_first(flows: Flows) -> None:
    started = await start_in_turns(flows, await flows.publish(chain(work())), 8)
    puller, pulled = Puller(flows.database, ManualClock(NOW)), list[int]()
    while messages := await puller.pull(["default"], 3):
        pulled += [step for message in messages if isinstance(message, RunStep) for step in message.step_runs]
    await puller.close()
    assert await list_instances(flows, pulled) == started


async def test_of_one_moment_what_a_process_made_first_is_released_first(flows: Flows, runner: Single) -> None:
    """Over the ends of its blocks: what is left of one is used before the next."""
    version, starter, started = await flows.publish(chain(work())), make_starter(flows, block=3), list[int]()
    for _ in range(4):
        openings = [Opening(str(ULID()), version, owner("team:a"), {}) for _ in range(2)]
        async with flows.database.transaction() as connection:
            batch = await starter.start(Session(connection), openings, NOW)
        started += [changes.instance.id for changes in batch.changes]
    assert started == sorted(started)
    assert await release_all(flows, runner, at_once=100) == started


# of what is let go in pages


async def test_an_engine_with_the_type_gets_the_oldest_first(flows: Flows, runner: Single) -> None:
    started = await start_in_turns(flows, await flows.publish(chain(work())), 6, priorities=(0, 0, 0, 0, 0, 3))
    await flows.get(PARK, "engine", None)
    assert len(await waking.unpark(runner, "test.work", [(1, "default")], NOW, 3)) == 3
    assert await list_ready(flows) == sorted([started[5], *started[:2]])


async def test_a_hold_lets_the_oldest_go_first(flows: Flows, runner: Single) -> None:
    started = await start_in_turns(flows, await flows.publish(chain(work())), 6, priorities=(0, 0, 0, 0, 0, 3))
    await flows.get(PARK, "hold", None)
    hold = Ended(1, "*", HoldKind.QUEUE, "default", NOW)
    assert len(await holds.unpark(runner, hold, NOW, 3)) == 3
    assert await list_ready(flows) == sorted([started[5], *started[:2]])
