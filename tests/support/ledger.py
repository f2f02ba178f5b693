"""What must hold in a database whatever was killed, read from the rows themselves (DESIGN 12)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import asyncpg

EFFECTS = "create table if not exists public.effects (key text, attempt integer)"

RULES: Final[Mapping[str, str]] = {
    "every instance has ended": "select ulid from workflow_instances where ended_at is null",
    "history begins at 1 and has no gap (12.6)": """
        select i.ulid from workflow_instances i
        left join (select instance_id, min(seq) as first, max(seq) as last, count(*) as count
            from workflow_events group by instance_id) e on e.instance_id = i.id
        where e.first is distinct from 1 or e.last <> e.count or i.next_seq <> e.last + 1""",
    "no attempt ends twice in history (12.6)": """
        select step_run_id from workflow_events where type in ('StepCompleted', 'StepFailed', 'StepCancelled')
        group by step_run_id having count(*) > 1""",
    "no instance starts or ends twice in history": """
        select instance_id from workflow_events
        where type in ('InstanceStarted', 'InstanceCompleted', 'InstanceFailed', 'InstanceCancelled')
        group by instance_id having count(*) filter (where type = 'InstanceStarted') <> 1
            or count(*) filter (where type <> 'InstanceStarted') <> 1""",
    "every attempt that ended says so in history": """
        select s.ulid from workflow_step_runs s where s.status in ('completed', 'failed') and s.role = 'step'
            and not exists (select from workflow_events e where e.instance_id = s.instance_id and e.step_run_id = s.id
                and e.type = case s.status when 'completed' then 'StepCompleted' else 'StepFailed' end)""",
    "an ended instance has no live step (12.2)": """
        select s.ulid from workflow_step_runs s join workflow_instances i on i.id = s.instance_id
        where i.ended_at is not null and s.status in ('queued', 'running', 'waiting')""",
    "an ended instance has no pending wait (12.2)": """
        select w.id from workflow_waits w join workflow_instances i on i.id = w.instance_id
        where i.ended_at is not null and w.status in ('pending', 'suspended')""",
    "every delivery was taken (12.4)": "select id from workflow_signals where taken_at is null",
    "a visit is completed once (12.1)": """
        select instance_id, node_id, visit from workflow_step_runs where status = 'completed' and role = 'step'
        group by instance_id, node_id, visit having count(*) > 1""",
    "attempts are numbered without a gap": """
        select instance_id, node_id, visit from workflow_step_runs where role = 'step'
        group by instance_id, node_id, visit having max(attempt) <> count(*)""",
    "of a cancelled run nothing is left to be undone": """
        select c.instance_id, c.node_id from workflow_compensations c join workflow_instances i on i.id = c.instance_id
        where i.status = 'cancelled' and c.status in ('kept', 'undoing')""",
    "nothing was undone twice": """
        select instance_id, node_id, visit from workflow_step_runs where status = 'completed' and role = 'compensate'
        group by instance_id, node_id, visit having count(*) > 1""",
    "every effect was taken once (12.5)": "select key from public.effects group by key having count(*) > 1",
    "every completed step has its effect": """
        select s.ulid from workflow_step_runs s
        where s.status = 'completed' and s.node_type in ('e2e.effect', 'e2e.flaky', 'e2e.blocking_effect')
            and not exists (select from public.effects f where f.key = s.idempotency_key)""",
}
"""A rule, and what breaks it."""


async def prepare(connection: Any) -> None:
    """Make the table in which the steps of the tests leave their effects."""
    await connection.execute(EFFECTS)
    await connection.execute("set search_path = korak")


async def list_breaches(connection: Any) -> dict[str, list[Any]]:
    """The rules that don't hold, with the first few rows that break them."""
    breaches: dict[str, list[Any]] = {}
    for rule, query in RULES.items():
        rows = await connection.fetch(f"{query} limit 5")
        if rows:
            breaches[rule] = [tuple(row) for row in rows]
    return breaches


async def count_open(connection: Any) -> int:
    """How many instances haven't ended."""
    return int(await connection.fetchval("select count(*) from workflow_instances where ended_at is null"))


async def count_ended(connection: Any) -> int:
    """How many attempts have ended."""
    return int(await connection.fetchval("select count(*) from workflow_step_runs where finished_at is not null"))


async def count_by_status(connection: Any) -> dict[str, int]:
    """How many instances there are of each status."""
    rows = await connection.fetch("select status, count(*) as count from workflow_instances group by status")
    return {row["status"]: row["count"] for row in rows}


async def connect(url: str) -> Any:
    """A connection of the test's own."""
    connection = await asyncpg.connect(url)
    await prepare(connection)
    return connection
