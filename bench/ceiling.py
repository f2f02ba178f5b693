"""The ceiling: the rows of the workload, written by a bare batched asyncpg loop that decides nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import asyncpg
import orjson

from korak.clock import Clock

STEP = """
with moved as (
    update workflow_instances i set lock_version = i.lock_version + 1, next_seq = i.next_seq + 2,
        steps_count = i.steps_count + 1, updated_at = $5::timestamptz
    from unnest($1::bigint[]) c (id) where i.id = c.id
), closed as (
    update workflow_step_runs s set status = 'completed', outcome = 'next', output = o.output, finished_at = $5
    from unnest($2::bigint[], $4::jsonb[]) o (id, output) where s.id = o.id
), begun as (
    insert into workflow_step_runs (id, instance_id, owner_scope, node_id, node_type, visit, attempt, status, input,
        ulid, execution_id, idempotency_key, queue, engine_id, claim_token, claimed_at, lease_until, started_at,
        created_at)
    select n.id, n.instance_id, '*', $6::text, 'bench.nothing', 1, 1, 'running', '{}', n.ulid, n.ulid,
        'wf:' || n.ulid || $6::text || ':1', 'default', 1, n.ulid, $5, $5, $5, $5
    from unnest($3::bigint[], $1::bigint[], $7::text[]) n (id, instance_id, ulid)
)
insert into workflow_events (instance_id, seq, type, node_id, step_run_id, data, created_at)
select e.instance_id, e.seq, e.type, $6::text, e.step_run_id, '{"visit": 1, "attempt": 1}', $5
from unnest($8::bigint[], $9::bigint[], $10::text[], $11::bigint[]) e (instance_id, seq, type, step_run_id)
"""

HOT = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
FIRST = 1_000_000_000
"""Ids from here on are the ceiling's own."""


async def measure(
    url: str, instances: int, read_cpu: Callable[[], float], *, steps: int = 5, batch: int = 200, connections: int = 2
) -> tuple[float, float]:
    """Steps a second over so many instances, and the CPU seconds that `read_cpu` grew by meanwhile."""
    share = instances // connections
    workers = [_prepare(url, FIRST + number * share, share) for number in range(connections)]
    ready = await asyncio.gather(*workers)
    begun, before = time.perf_counter(), read_cpu()
    await asyncio.gather(*(_write(statement, first, share, steps, batch) for _, statement, first in ready))
    seconds, cpu = time.perf_counter() - begun, read_cpu() - before
    for connection, *_ in ready:
        await connection.close()
    return share * connections * steps / seconds, cpu


async def _prepare(url: str, first: int, share: int) -> tuple[Any, Any, int]:
    connection = await asyncpg.connect(url, server_settings={**HOT, "search_path": "korak"})
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=_encode, decoder=bytes, format="binary")
    await connection.execute(
        """insert into workflow_instances (id, ulid, definition_id, version_id, owner_scope, trigger_type, input, state,
            status, actor_mode, definition_hash, created_at, updated_at)
        select n, 'c' || n, d.id, d.current_version_id, '*', 'manual', '{}', '{}', 'running', 'system',
            repeat('0', 64), $3, $3
        from generate_series($1::bigint, $2::bigint) n, (select * from workflow_definitions limit 1) d""",
        first,
        first + share - 1,
        Clock().now(),
    )
    return connection, await connection.prepare(STEP), first


def _encode(value: Any) -> bytes:
    return b"\x01" + orjson.dumps(value)


async def _write(statement: Any, first: int, share: int, steps: int, batch: int) -> None:
    for start in range(first, first + share, batch):
        ids = list(range(start, min(start + batch, first + share)))
        for step in range(steps):
            before = [number * 10 + step - 1 for number in ids]
            after = [number * 10 + step for number in ids]
            await statement.fetch(
                ids,
                before,
                after,
                [{"ok": 1}] * len(ids),
                Clock().now(),
                f"s{step}",
                [f"01ARZ3NDEKTSV4RRFFQ{number:07d}"[:26] for number in after],
                ids + ids,
                [step * 2 + 1] * len(ids) + [step * 2 + 2] * len(ids),
                ["StepCompleted"] * len(ids) + ["StepStarted"] * len(ids),
                before + after,
            )
