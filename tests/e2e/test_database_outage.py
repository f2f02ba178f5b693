"""The database goes away and comes back, or ends connections at random: everything finishes by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support import databases, ledger, load
from tests.support.outages import OwnPostgres, own_postgres
from tests.support.stage import Stage, staged
from tests.support.waiting import eventually

INSTANCES = 200
UNRENEWED = "lease can't be renewed"
LOOKS = 15
"""As many failed looks of the lease's thread as take longer than a lease of 3 s."""

SEVER = """
    select count(pg_terminate_backend(pid)) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()"""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


async def wait_out_the_lease(stage: Stage) -> None:
    """Until the engine has tried to renew its lease for longer than that lasts."""
    await eventually(lambda: stage.engine.read_log().count(UNRENEWED) >= LOOKS, 60, message="the outage isn't noticed")


async def outage(postgres: OwnPostgres, stage: Stage) -> None:
    """The database crashes and is away for longer than a lease. Meanwhile an engine starts, and one stops again."""
    await asyncio.to_thread(postgres.stop)
    late, ended = stage.fleet.start("engine"), stage.fleet.start("engine")
    await eventually(lambda: "waits for its database" in ended.read_log(), 30)
    assert await ended.stop() == 0
    await wait_out_the_lease(stage)
    await asyncio.to_thread(postgres.start)
    await stage.reconnect()
    await late.wait_until_ready()


async def test_a_database_that_crashes_and_comes_back_costs_time_and_nothing_else(tmp_path: Path) -> None:
    """DESIGN 4: longer than a lease, under load; no engine is taken for dead, and each effect is taken once."""
    with (
        own_postgres() as postgres,
        databases.migrated(postgres.url) as name,
    ):
        url = databases.with_database(postgres.url, name)
        async with staged(tmp_path, url, None) as stage:
            await stage.calls.publish(load.GRAPH)
            working = asyncio.create_task(load.run(stage, INSTANCES))
            await load.wait_for_steps(stage, INSTANCES)
            await outage(postgres, stage)
            await eventually(stage.api.is_ready, 30)
            await working

            await load.assert_done(stage, INSTANCES)
            assert await stage.connection.fetch("select close_reason from engines where closed_at is not null") == []
            assert {program.code for program in stage.fleet.programs} == {None, 0}


async def test_connections_that_are_ended_again_and_again_cost_time_and_nothing_else(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """DESIGN 4: errors other than the data's repeat the batch; what was committed unanswered is adopted."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        await stage.calls.publish(load.GRAPH)
        working = asyncio.create_task(load.run(stage, INSTANCES))
        seen = 0
        for _ in range(12):
            seen = await load.wait_for_steps(stage, seen + INSTANCES * 6 // 20)
            await stage.connection.fetchval(SEVER)
        await working

        await load.assert_done(stage, INSTANCES)
        assert await ledger.count_by_status(stage.connection) == {"completed": INSTANCES}
        assert all(program.code is None for program in stage.fleet.programs)
