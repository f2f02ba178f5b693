"""What telling between runs costs: whom it concerns is read by indexes, however much stands there besides."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from tests.support.flows import NOW
from tests.support.timers import Plan, explain, holding

RUNS, WAITS, CASCADES = 20_000, 4_000, 1_000

INSTANCES = """
insert into workflow_instances (id, ulid, definition_id, version_id, owner_scope, trigger_type, input, state, status,
    actor_mode, definition_hash, parent_instance_id, created_at, updated_at, closed_reason, ended_at)
overriding system value
select n, lpad(n::text, 26, '0'), 1, 1, '*', 'manual', '{}', '{}',
    case when n % 2 = 0 then 'completed' else 'running' end, 'system', '', nullif(n % 1000, 0), $2, $2,
    case when n % 2 = 0 then 'completed' end, case when n % 2 = 0 then $2::timestamptz end
from generate_series(1, $1::bigint) n
"""
STEPS = """
insert into workflow_step_runs (id, instance_id, owner_scope, node_id, node_type, visit, attempt, status, ulid,
    execution_id, idempotency_key, queue, created_at)
overriding system value
select n, n, '*', 'wait', 'wait_workflows', 1, 1, 'waiting', n::text, n::text, n::text, 'default', $2
from generate_series(1, $1::bigint) n
"""
DEPENDENCIES = """
insert into workflow_dependencies (wait_id, place, instance_id, step_run_id, awaited_id, is_needed, created_at)
select n, place, n, n, (n * 5 + place) % 20000 + 1, true, $2
from generate_series(1, $1::bigint) n cross join generate_series(0, 4) place
"""
COMMANDS = """
insert into workflow_cascades (instance_id, seq, kind, sender, created_at)
select n, 5, 'pause', '{"instance": "x"}', $2 from generate_series(1, $1::bigint) n
"""


async def get_plan(url: str, name: str, **given: object) -> Plan:
    """On tables that nobody has analyzed, as a held connection plans it."""
    async with holding(url) as connection:
        await _fill(connection)
        return await explain(connection, name, now=NOW, **given)


async def _fill(connection: asyncpg.Connection[Any]) -> None:
    await connection.execute("set session_replication_role = replica")
    for insert, count in ((INSTANCES, RUNS), (STEPS, WAITS), (DEPENDENCIES, WAITS), (COMMANDS, CASCADES)):
        await connection.execute(insert, count, NOW)


@pytest.mark.parametrize(("waits", "awaited"), [([77], []), ([], [4712]), ([77, 78], [4712, 4714]), ([], [])])
async def test_who_waits_is_found_from_either_side(database_url: str, waits: list[int], awaited: list[int]) -> None:
    plan = await get_plan(database_url, "dependencies_tell", is_sent=True, waits=waits, awaited=awaited)
    assert "Seq Scan" not in plan.text
    assert {"wdep_place_unique", "wdep_awaited_idx"} <= plan.scanned, plan.text
    assert plan.buffers < 1_000, plan.text


@pytest.mark.parametrize(("instances", "most"), [([999], 1_000), (list(range(1, 60)), 8_000), (None, 20_000)])
async def test_commands_go_on_by_the_indexes(database_url: str, instances: list[int] | None, most: int) -> None:
    plan = await get_plan(database_url, "cascades_advance", count=500, instances=instances)
    assert "Seq Scan" not in plan.text
    assert "winst_parent_idx" in plan.scanned, plan.text
    assert plan.buffers < most, plan.text
