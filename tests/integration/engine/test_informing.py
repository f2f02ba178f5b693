"""Whoever commits what concerns other runs has them obey it at once: how far, past whose locks, and until when."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from korak.bidding import MOST, PASSES
from korak.broker.notify import NotifyBroker
from korak.clock import ManualClock
from korak.core.facts import CancelAsked, PauseAsked, ResumeAsked
from korak.informing import Informer
from korak.store.channels import Channels
from korak.store.database import Database
from korak.store.gates import Gate
from korak.store.loading import Loader
from korak.store.plans import Plans
from tests.support import eventually
from tests.support.children import CHILD, Families, copy_children, graph, many, nested, waiting
from tests.support.flows import NOW, Flows, open_flows, work

WAITS_IN_LINE = """
select count(*) from pg_stat_activity where application_name = 'informing' and wait_event_type = 'Lock'
    and datname = current_database()
"""


@asynccontextmanager
async def informing(url: str) -> AsyncIterator[Informer]:
    """An informer with connections of its own."""
    async with AsyncExitStack() as stack:
        channels = await stack.enter_async_context(Channels(url, "korak"))
        broker = await stack.enter_async_context(NotifyBroker(channels))
        database = await stack.enter_async_context(Database(url, "korak", name="informing"))
        loader = Loader(Plans(), (await stack.enter_async_context(open_flows(url))).policy)
        informer = Informer(database, broker, loader, Gate(database), ManualClock(NOW))
        yield await stack.enter_async_context(informer)


async def start_parent(families: Families, *nodes: Any) -> int:
    """A parent that has run its first step."""
    found = await families.publish(graph("parent", *nodes, work("after")), CHILD)
    parent, _ = await families.start(found["parent"])
    await families.work(parent)
    return parent


async def count_paused(flows: Flows) -> int:
    count: int = await flows.get("select count(*) from workflow_instances where paused_at is not null")
    return count


async def test_children_obey_while_nobody_else_does_anything(families: Families, database_url: str) -> None:
    parent = await start_parent(families, many(list(range(30))))
    async with informing(database_url) as informer:
        informer.hear([await families.flows.answer(parent, PauseAsked(), NOW)])
        await eventually(lambda: _has_paused(families.flows, 31))
        informer.hear([await families.flows.answer(parent, ResumeAsked(), NOW)])
        await eventually(lambda: _has_paused(families.flows, 0))
    assert await families.flows.get("select count(*) from workflow_signals where taken_at is null") == 0
    assert await families.flows.get("select count(*) from workflow_cascades") == 0


async def _has_paused(flows: Flows, count: int) -> bool:
    return await count_paused(flows) == count


async def test_a_pause_that_a_resume_has_overtaken_leaves_nobody_paused(families: Families, database_url: str) -> None:
    """Both are heard of together, and go to the children one after the other."""
    parent = await start_parent(families, many(list(range(10))))
    changes = [await families.flows.answer(parent, fact, NOW) for fact in (PauseAsked(), ResumeAsked())]
    async with informing(database_url) as informer:
        informer.hear(changes)
    assert await count_paused(families.flows) == 0
    assert await families.flows.get("select count(*) from workflow_cascades") == 0


async def test_what_was_heard_is_told_before_the_process_leaves(families: Families, database_url: str) -> None:
    parent = await start_parent(families, nested())
    [child] = await families.list_children(parent)
    changes = await families.flows.answer(parent, CancelAsked(), NOW)
    async with informing(database_url) as informer:
        informer.hear([changes])
    status = await families.flows.get("select status from workflow_instances where id = $1", child["id"])
    assert status == "cancelled"


async def test_a_child_that_somebody_holds_obeys_when_it_is_let_go(families: Families, database_url: str) -> None:
    """It is passed over some times, then waited for in line; the others aren't kept waiting."""
    parent = await start_parent(families, many([1, 2, 3]))
    held = (await families.list_children(parent))[1]["id"]
    async with informing(database_url) as informer, Database(database_url, "korak", name="holder") as database:
        async with database.transaction() as holder:
            await holder.execute("select from workflow_instances where id = $1 for no key update", held)
            informer.hear([await families.flows.answer(parent, PauseAsked(), NOW)])
            await eventually(
                lambda: families.flows.get(WAITS_IN_LINE), message=f"{PASSES} times, and it isn't waited for"
            )
            assert await count_paused(families.flows) == 3
        await eventually(lambda: _has_paused(families.flows, 4))


async def test_a_great_family_is_left_to_the_waker_at_some_point(families: Families, database_url: str) -> None:
    parent = await start_parent(families, many([1]))
    await copy_children(families.flows, parent, MOST + 500)
    async with informing(database_url) as informer:
        informer.hear([await families.flows.answer(parent, PauseAsked(), NOW)])
        await eventually(lambda: _has_paused(families.flows, 1 + MOST), 60)
    assert await families.cascade() == 500
    assert await families.cascade() == 1
    assert await families.cascade() is None


async def test_who_waits_for_runs_is_told_of_ends_that_come_one_upon_the_other(
    families: Families, database_url: str
) -> None:
    """The first is told at once, the others a little later, all together."""
    found = await families.publish(graph("waiter", waiting({"ref": "input.ids"})), CHILD)
    runs = [await families.start(found["child"]) for _ in range(5)]
    waiter, _ = await families.start(found["waiter"], {"ids": [ulid for _, ulid in runs]})
    await families.work(waiter)
    async with informing(database_url) as informer:
        for run, _ in runs:
            informer.hear([await families.finish(*await families.ask(await families.claim(run)))])

        async def are_told() -> bool:
            return bool(await families.flows.get("select count(*) = 5 from workflow_signals where kind = 'ended'"))

        await eventually(are_told)
    ready = await families.flows.get(
        "select count(*) from workflow_step_runs where instance_id = $1 and ready_at is not null", waiter
    )
    assert ready == 1


async def test_an_end_that_comes_while_the_waiter_is_looked_at_is_looked_at_too(
    families: Families, database_url: str
) -> None:
    """The claim has read what lies there before the second end came, and lets the step wait: nothing else nudges it."""
    flows = families.flows
    found = await families.publish(graph("waiter", waiting({"ref": "input.ids"})), CHILD)
    runs = [await families.start(found["child"]) for _ in range(2)]
    waiter, _ = await families.start(found["waiter"], {"ids": [ulid for _, ulid in runs]})
    await families.work(waiter)
    ends = [await families.finish(*await families.ask(await families.claim(run))) for run, _ in runs]
    async with informing(database_url) as informer, Database(database_url, "korak", name="claimer") as database:
        informer.hear(ends[:1])
        await eventually(lambda: _is_ready(flows, waiter))
        async with database.transaction() as claimer:
            await claimer.execute("select from workflow_instances where id = $1 for no key update", waiter)
            informer.hear(ends[1:])
            await eventually(lambda: flows.get(WAITS_IN_LINE))
            await claimer.execute(
                "update workflow_step_runs set ready_at = null, sent_at = null where instance_id = $1", waiter
            )
        await eventually(lambda: _is_ready(flows, waiter))
    while await families.work(waiter):
        pass
    assert await flows.get("select status from workflow_instances where id = $1", waiter) == "completed"


async def _is_ready(flows: Flows, instance: int) -> bool:
    return bool(
        await flows.get(
            "select count(*) from workflow_step_runs where instance_id = $1 and ready_at is not null", instance
        )
    )
