"""The release query and the puller on it: priority, then turns between owners, and no step sent twice."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from ulid import ULID

from korak.broker.messages import RunStep
from korak.clock import ManualClock
from korak.core.opening import Opening, Version
from korak.model import JsonObject
from korak.releasing import Puller
from korak.store.database import Session
from korak.store.releasing import Turns, list_backlogs, unstamp
from korak.store.single import Single
from tests.support.flows import NOW, Flows, chain, owner, work


async def get_owners(flows: Flows, ids: list[int]) -> list[str]:
    rows = await flows.fetch("select id, owner_scope from workflow_step_runs where id = any($1)", ids)
    scopes = {row["id"]: row["owner_scope"] for row in rows}
    return [scopes[step] for step in ids]


async def test_owners_take_turns(flows: Flows, runner: Single) -> None:
    version = await flows.publish(chain(work()))
    await flows.start(version, 5, owner=owner("team:a"))
    await flows.start(version, 2, owner=owner("team:b"))
    released = await Turns("default").release(runner, 5, NOW)
    assert await get_owners(flows, [step.id for step in released]) == ["team:a", "team:b", "team:a", "team:b", "team:a"]


async def test_an_owner_has_as_many_in_a_turn_as_its_weight(flows: Flows, runner: Single) -> None:
    version = await flows.publish(chain(work()))
    await flows.start(version, 6, owner=owner("team:a"))
    await flows.start(version, 3, owner=owner("team:b"))
    await flows.get("insert into flow_weights values ('team:a', 2)")
    released = await Turns("default").release(runner, 9, NOW)
    names = [scope.removeprefix("team:") for scope in await get_owners(flows, [step.id for step in released])]
    assert "".join(names) == "aabaabaab"


async def test_one_customer_s_many_steps_don_t_keep_another_s_one_waiting(flows: Flows, runner: Single) -> None:
    """Inside an owner too: the keys of limits take turns, and what has none is one of them."""
    rule: JsonObject = {"key": {"ref": "input.customer"}, "concurrency": 1000}
    version = await flows.publish(chain(work(flow=[rule])))
    await start_for(flows, version, "big", 2_000)
    await start_for(flows, version, "small", 2)
    await flows.start(await flows.publish(chain(work()), key="other"), 2, owner=owner("team:a"))
    released = await Turns("default").release(runner, 6, NOW)
    rows = await flows.fetch("select id, flow ->> 0 as key from workflow_step_runs where sent_at is not null")
    keys = {row["id"]: row["key"] for row in rows}
    assert [keys[step.id] for step in released] == ["big", "small", None, "big", "small", None]


async def start_for(flows: Flows, version: Version, customer: str, count: int) -> None:
    openings = [Opening(str(ULID()), version, owner("team:a"), {"customer": customer}) for _ in range(count)]
    async with flows.database.transaction() as connection:
        await flows.starter.start(Session(connection), openings, NOW)


async def test_a_higher_priority_goes_first_whoever_owns_it(flows: Flows, runner: Single) -> None:
    """T-OPT-2."""
    version = await flows.publish(chain(work()))
    await flows.start(version, 3, owner=owner("team:a"))
    await flows.start(version, 3, owner=owner("team:b"), priority=3)
    released = await Turns("default").release(runner, 4, NOW)
    assert await get_owners(flows, [step.id for step in released]) == ["team:b"] * 3 + ["team:a"]


async def test_what_is_released_is_stamped_and_counted_once(flows: Flows, runner: Single) -> None:
    version = await flows.publish(chain(work()))
    [instance] = await flows.start(version)
    [step] = await Turns("default").release(runner, 10, NOW)
    row = await flows.get_step(instance)
    assert (row["id"], row["sent_at"], row["sends"]) == (step.id, NOW, 1)
    assert await Turns("default").release(runner, 10, NOW) == []


async def test_rows_that_others_hold_are_left_for_later(flows: Flows, runner: Single) -> None:
    version = await flows.publish(chain(work()))
    await flows.start(version, 4)
    async with flows.database.transaction() as holder:
        held = await holder.fetch("select id from workflow_step_runs order by id limit 2 for update")
        released = await Turns("default").release(runner, 2, NOW)
    assert len(released) == 2
    assert not {step.id for step in released} & {row["id"] for row in held}
    assert len(await Turns("default").release(runner, 10, NOW)) == 2


async def test_more_owners_than_one_call_serves_all_get_their_turn(flows: Flows, runner: Single) -> None:
    version = await flows.publish(chain(work()))
    for number in range(520):
        await flows.start(version, owner=owner(f"team:{number}"))
    turns = Turns("default")
    seen: list[str] = []
    while released := await turns.release(runner, 200, NOW):
        seen += await get_owners(flows, [step.id for step in released])
    assert sorted(seen) == sorted(f"team:{number}" for number in range(520))


async def test_four_pullers_share_a_backlog_without_sending_twice(flows: Flows) -> None:
    version = await flows.publish(chain(work()))
    await flows.start(version, 400)
    pullers = [Puller(flows.database, ManualClock(NOW)) for _ in range(4)]

    async def drain(puller: Puller) -> list[int]:
        pulled: list[int] = []
        while messages := await puller.pull(["default"], 16):
            for message in messages:
                assert isinstance(message, RunStep)
                assert len(message) <= 16
                pulled += message.step_runs
        return pulled

    pulled = [step for part in await asyncio.gather(*map(drain, pullers)) for step in part]
    for puller in pullers:
        await puller.close()
    assert len(pulled) == len(set(pulled)) == 400


async def test_what_is_given_back_stands_ready_again(flows: Flows) -> None:
    version = await flows.publish(chain(work()))
    await flows.start(version, 3)
    puller = Puller(flows.database, ManualClock(NOW))
    messages = await puller.pull(["default"], 10)
    assert await puller.pull(["default"], 10) == []
    await puller.unstamp(messages)
    assert await puller.pull(["default"], 10) == messages
    await puller.close()


async def test_a_step_that_was_claimed_meanwhile_is_not_made_ready(flows: Flows, runner: Single) -> None:
    version = await flows.publish(chain(work()))
    [instance] = await flows.start(version)
    [released] = await Turns("default").release(runner, 1, NOW)
    await flows.claim(instance, await flows.register())
    assert await unstamp(runner, [released.id]) == 0


async def test_every_queue_of_an_engine_is_pulled(flows: Flows) -> None:
    await flows.start(await flows.publish(chain(work(queue="one")), key="one"), 3)
    await flows.start(await flows.publish(chain(work(queue="two")), key="two"), 3)
    await flows.start(await flows.publish(chain(work(queue="other")), key="other"), 3)
    puller = Puller(flows.database, ManualClock(NOW))
    [message] = await puller.pull(["one", "two"], 5)
    assert len(message) == 5
    [message] = await puller.pull(["one", "two"], 5)
    assert len(message) == 1
    await puller.close()


async def test_backlogs_are_the_queues_with_something_unsent(flows: Flows, runner: Single) -> None:
    assert await list_backlogs(runner) == []
    for queue in ("b", "a", "c"):
        await flows.start(await flows.publish(chain(work(queue=queue)), key=queue))
    await Turns("b").release(runner, 1, NOW + timedelta(seconds=1))
    assert await list_backlogs(runner) == ["a", "c"]
