"""What a pass costs: what is due, whatever waits besides."""

from __future__ import annotations

import pytest

from tests.support import databases
from tests.support.flows import NOW
from tests.support.timers import Plan, explain, holding, insert_timers

FEW, MANY = 1_000, 20_000
DUE = 100


async def get_plan(url: str, timers: int, name: str, **given: object) -> Plan:
    async with holding(url) as connection:
        await insert_timers(connection, timers, DUE, NOW)
        return await explain(connection, name, now=NOW, **given)


@pytest.mark.parametrize("is_condition", [False, True])
async def test_looking_for_due_waits_reads_the_due_ones_only(
    postgres_url: str, database_template: str, is_condition: bool
) -> None:
    given = {"is_condition": is_condition, "count": 500}
    with (
        databases.cloned(postgres_url, database_template) as few,
        databases.cloned(postgres_url, database_template) as many,
    ):
        small = await get_plan(few, FEW, "waits_due", **given)
        large = await get_plan(many, MANY, "waits_due", **given)
    assert "wwait_due_idx" in large.indexes, large.text
    assert "Seq Scan" not in large.text
    assert large.buffers < 2 * small.buffers + 100, large.text


async def test_asking_for_the_next_due_time_reads_one_place(postgres_url: str, database_template: str) -> None:
    with databases.cloned(postgres_url, database_template) as url:
        plan = await get_plan(url, MANY, "due_next")
    assert "wwait_due_idx" in plan.indexes, plan.text
    assert plan.buffers < 50, plan.text
