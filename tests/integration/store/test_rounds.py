"""Everything at once, a hundred times: an event, cancels, claims and time limits of the same instances (LK-1, LK-2)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from datetime import datetime, timedelta

from ulid import ULID

from korak.core.changes import Changes
from korak.core.facts import CancelAsked, Claimed
from korak.core.opening import Opening, Version
from korak.errors import Conflict
from korak.matching import Matcher
from korak.metrics import Metrics
from korak.model import JsonObject
from korak.store import emits
from korak.store.database import Session
from korak.store.gates import Gate
from korak.store.transacting import Ask
from tests.support.flows import APP, NOW, Flows, chain, make_claimant, pausing
from tests.support.wakers import Wakers

PATIENCE = 20.0
ROUNDS = 100
PAID = pausing("paid", event="paid", match={"order": {"ref": "input.order"}}, timeout="PT1M")
DEADLOCKS = "select deadlocks from pg_stat_database where datname = current_database()"
READY = "select id, instance_id from workflow_step_runs where ready_at is not null order by id desc"
LEFT = "select id from workflow_instances where ended_at is null order by id"


async def test_a_hundred_rounds_of_emit_cancel_and_wake_end_without_a_deadlock(
    flows: Flows, rival: Flows, database_url: str
) -> None:
    """With claims besides: each round's event, cancel and time limit come at once; every instance ends in one way."""
    version = await flows.publish(waiting_for_money())
    engine = await flows.register()
    async with AsyncExitStack() as stack:
        wakers = await Wakers.open(stack, flows, database_url, Metrics())
        waker, matcher = await wakers.make(), Matcher(rival.database, wakers.broker, Gate(rival.database))
        for number in range(ROUNDS):
            now = NOW + timedelta(minutes=number)
            instances = await start_waiting(flows, version, number, now)
            emit = emits.Emit("*", "paid", {"order": number}, f"e-{number}", now, now + timedelta(hours=1))
            async with rival.database.transaction() as connection:
                kept = await emits.keep(Session(connection), emit)
            _, report, *_ = await asyncio.gather(
                matcher.match(kept.id, now),
                waker.run_once(now + timedelta(minutes=1)),
                cancel_all(rival, instances[:2], now),
                claim_all(flows, engine, now),
            )
            assert (report.errors, report.interrupted) == (0, 0)
        while left := await flows.fetch(LEFT):
            now += timedelta(minutes=10)
            await waker.run_once(now)
            await claim_all(flows, engine, now)
            assert len(await flows.fetch(LEFT)) < len(left)
        await waker.run_once(now + timedelta(minutes=10))
    assert await flows.get(DEADLOCKS) == 0
    assert await flows.get("select count(*) from workflow_signals where taken_at is null") == 0
    ends = "select count(*) from workflow_events where type in ('InstanceCompleted', 'InstanceCancelled')"
    assert await flows.get(ends) == ROUNDS * 4


def waiting_for_money() -> JsonObject:
    """One wait for an event of the instance's own order, or for a minute."""
    document = chain(PAID)
    edges, nodes = document["edges"], document["nodes"]
    assert isinstance(edges, list)
    assert isinstance(nodes, list)
    edges.append({"from": "paid", "outcome": "timed_out", "to": "late"})
    nodes.append({"id": "late", "type": "end", "config": {}})
    return document


async def start_waiting(flows: Flows, version: Version, order: int, now: datetime) -> list[int]:
    openings = [Opening(str(ULID()), version, APP, {"order": order}) for _ in range(4)]
    async with flows.database.transaction() as connection:
        batch = await flows.starter.start(Session(connection), openings, now)
    return [changes.instance.id for changes in batch.changes]


async def cancel_all(flows: Flows, instances: list[int], now: datetime) -> None:
    """One after the other, each waiting for whoever holds it; what has ended by then stays as it is."""
    for instance in instances:
        [answer] = await flows.transactor.answer([Ask(instance, CancelAsked())], now, patience=PATIENCE)
        assert isinstance(answer, Changes | Conflict)


async def claim_all(flows: Flows, engine: int, now: datetime) -> None:
    """What is ready, in one transaction, newest first."""
    rows = await flows.fetch(
        "select id, instance_id from workflow_step_runs where ready_at is not null order by id desc"
    )
    claimants = (make_claimant(engine) for _ in rows)
    asks = [Ask(row["instance_id"], Claimed(row["id"], each)) for row, each in zip(rows, claimants, strict=True)]
    await flows.transactor.answer(asks, now)
