"""Very many waiting timers of which few are due, and what the server says of a statement over them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import asyncpg

from korak.store.database import Database
from korak.store.statements import get_statement

STEPS = """
insert into workflow_step_runs (instance_id, owner_scope, node_id, node_type, visit, attempt, status, ulid,
    execution_id, idempotency_key, queue, created_at)
select n, '*', 'timer', 'delay', 1, 1, 'waiting', n::text, n::text, 'timer:' || n, 'default', $2
from generate_series(1, $1::bigint) n
"""
WAITS = """
insert into workflow_waits (instance_id, step_run_id, owner_scope, kind, status, due_at, created_at)
select s.instance_id, s.id, '*', 'timer', 'pending',
    case when s.instance_id > $1::bigint - $2::bigint then $3::timestamptz - interval '1 second'
    else $3::timestamptz + interval '1 hour' + s.instance_id * interval '1 second' end, $3
from workflow_step_runs s
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How the server ran a statement: the indexes that it used, the buffers that it touched, milliseconds.

    `scanned` are those too that it made bitmaps of.
    """

    text: str
    indexes: frozenset[str]
    scanned: frozenset[str]
    buffers: int
    milliseconds: float


async def insert_timers(connection: asyncpg.Connection[Any], count: int, due: int, now: datetime) -> None:
    """So many waiting timers, of which the newest `due` are due."""
    await connection.execute(STEPS, count, now)
    await connection.execute(WAITS, count, due, now)


@asynccontextmanager
async def holding(url: str) -> AsyncIterator[asyncpg.Connection[Any]]:
    """A connection as a waker holds one."""
    async with Database(url, "korak") as database:
        yield await database.hold()


async def explain(connection: asyncpg.Connection[Any], name: str, **given: Any) -> Plan:
    """Run the statement by the plan that a held connection keeps for it, and forget what it did."""
    statement = get_statement(name)
    values = ", ".join(_quote(value) for value in statement.bind(**given))
    arguments = f"({values})" if values else ""
    await connection.execute(f"prepare {name} as {statement.text}")
    transaction = connection.transaction()
    await transaction.start()
    try:
        rows = await connection.fetch(f"explain (analyze, buffers) execute {name} {arguments}")
    finally:
        await transaction.rollback()
        await connection.execute(f"deallocate {name}")
    return _read([row[0] for row in rows])


def _quote(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, list | tuple):
        return "'{" + ", ".join(map(str, value)) + "}'"
    return "'" + str(value).replace("'", "''") + "'"


def _read(lines: list[str]) -> Plan:
    text = "\n".join(lines)
    first = next(line for line in lines if "Buffers:" in line)
    [took] = re.findall(r"Execution Time: ([\d.]+) ms", text)
    return Plan(
        text=text,
        indexes=frozenset(re.findall(r"using (\w+) on", text)),
        scanned=frozenset(re.findall(r"(?:using|Index Scan on) (\w+)", text)),
        buffers=sum(map(int, re.findall(r"(?:hit|read)=(\d+)", first))),
        milliseconds=float(took),
    )
