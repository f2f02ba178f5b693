"""What the hot statements cost, by the server's own counters: HOT updates, and rows by primary key (DESIGN 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from korak.core.changes import Changes, Grant
from korak.core.decide import decide
from korak.core.facts import Claimed, Finished
from korak.steps.results import Complete
from korak.store.applying import apply, needs_transaction
from korak.store.database import Hot
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids, seal
from korak.store.transacting import Ask, Transactor
from tests.support import eventually
from tests.support.flows import NOW, Flows, Leaving, chain, make_claimant, work

INSTANCES, STEPS, BATCHES = 200, 5, 5
UPDATES = "select n_tup_upd as updates, n_tup_hot_upd as hot from pg_stat_user_tables where relname = $1"
INDEXES = "select indexrelname as name, idx_scan, idx_tup_fetch from pg_stat_user_indexes where relname = $1"


@dataclass
class Engine:
    """Claims in one transaction and records in one statement, as an engine does, on a hot connection of its own."""

    flows: Flows
    id: int
    hot: Hot
    ids: Ids = field(default_factory=Ids)
    now: datetime = NOW

    async def claim(self) -> list[Changes]:
        """Everything that is ready."""
        rows = await self.flows.fetch("select id, instance_id from workflow_step_runs where ready_at is not null")
        transactor = Transactor(self.hot, Loader(Plans(), self.flows.policy), self.ids, Leaving())
        asks = [Ask(row["instance_id"], Claimed(row["id"], make_claimant(self.id))) for row in rows]
        return [answer for answer in await transactor.answer(asks, self.now) if isinstance(answer, Changes)]

    async def record(self, running: list[Changes]) -> list[Changes]:
        """Every step completes; the next ones run where they were recorded."""
        batch = [decide(changes.after, self.finish(*changes.claimed), self.now) for changes in running]
        await self.ids.reserve(self.hot, batch)
        for changes in batch:
            seal(changes, self.ids)
        assert not needs_transaction(batch)
        assert len(await apply(self.hot, batch)) == len(batch)
        return batch

    def finish(self, grant: Grant) -> Finished:
        return Finished(grant.step.id, grant.step.claim_token or "", Complete(), make_claimant(self.id))

    async def tell_counters(self) -> None:
        """Have the server count now what this connection has done."""
        connection = await self.hot.connect()
        await connection.execute("select pg_stat_force_next_flush()")
        await connection.execute("select 1")


async def read_indexes(flows: Flows, table: str) -> dict[str, tuple[int, int]]:
    """How often each index was searched, and how many rows that fetched."""
    return {row["name"]: (row["idx_scan"], row["idx_tup_fetch"]) for row in await flows.fetch(INDEXES, table)}


async def wait_for_horizon(flows: Flows) -> None:
    """Until nobody on this server can see what has just been overwritten, so that its room is free again."""
    mark = await flows.get("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")

    async def look() -> bool:
        return bool(await flows.get("select pg_snapshot_xmin(pg_current_snapshot())::text::bigint >= $1", mark))

    await eventually(look, 60, message="a transaction stays open")


async def open_engine(flows: Flows) -> Engine:
    """With instances of five steps that are ready."""
    await flows.start(await flows.publish(chain(*(work(f"n{number}") for number in range(STEPS)))), INSTANCES)
    return Engine(flows, await flows.register(), Hot(flows.database))


async def test_updates_are_hot(flows: Flows) -> None:
    """All of an instance's but its last; of a step that was claimed where the last was recorded its only one."""
    engine = await open_engine(flows)
    running = await engine.claim()
    await wait_for_horizon(flows)
    for _ in range(STEPS):
        batches = [running[start::BATCHES] for start in range(BATCHES)]
        running = [changes for batch in batches for changes in await engine.record(batch)]
        await wait_for_horizon(flows)
    await engine.tell_counters()
    assert await flows.get("select count(*) from workflow_instances where status = 'completed'") == INSTANCES
    for table in ("workflow_instances", "workflow_step_runs"):
        [row] = await flows.fetch(UPDATES, table)
        assert row["updates"] == INSTANCES * (STEPS + 1)
        assert row["hot"] >= 0.8 * INSTANCES * STEPS, table


async def test_a_record_reads_one_row_a_step_by_its_primary_key_and_no_other_index(flows: Flows) -> None:
    engine = await open_engine(flows)
    running = await engine.record(await engine.claim())
    for table in ("workflow_instances", "workflow_step_runs"):
        await engine.tell_counters()
        before = await read_indexes(flows, table)
        running = await engine.record(running)
        await engine.tell_counters()
        after = await read_indexes(flows, table)
        used = {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in after}
        assert used == dict.fromkeys(after, (0, 0)) | {f"{table}_pkey": (INSTANCES, INSTANCES)}
