"""What a pass costs: what is due, whatever waits besides; and plans that hold where the server knows nothing yet."""

from __future__ import annotations

import pytest

from tests.support.clones import Clones
from tests.support.flows import NOW, chain, open_flows, owner, work
from tests.support.timers import Plan, explain, holding, insert_timers
from tests.support.wakers import at

FEW, MANY = 1_000, 20_000
DUE = 100
PARK = """
update workflow_step_runs set ready_at = null, parked_for = $1::varchar, limit_key = 1, limit_ceiling = 0,
    limit_weight = 1
where $1::varchar is not null
"""


async def get_plan(url: str, timers: int, name: str, **given: object) -> Plan:
    async with holding(url) as connection:
        await insert_timers(connection, timers, DUE, NOW)
        return await explain(connection, name, now=NOW, **given)


@pytest.mark.parametrize("is_condition", [False, True])
async def test_looking_for_due_waits_reads_the_due_ones_only(clones: Clones, is_condition: bool) -> None:
    given = {"is_condition": is_condition, "count": 500}
    with clones.lend() as few, clones.lend() as many:
        small = await get_plan(few, FEW, "waits_due", **given)
        large = await get_plan(many, MANY, "waits_due", **given)
    assert "wwait_due_idx" in large.indexes, large.text
    assert "Seq Scan" not in large.text
    assert large.buffers < small.buffers + 100, large.text


async def test_asking_for_the_next_due_time_reads_one_place(database_url: str) -> None:
    plan = await get_plan(database_url, MANY, "due_next")
    assert "wwait_due_idx" in plan.indexes, plan.text
    assert plan.buffers < 50, plan.text


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("steps_release", {"queue": "default", "after": "", "count": 100}),
        ("queues_backlog", {}),
        ("stuck_rows", {"owner": "*", "unclaimed": 60.0, "unserved": 60.0, "overdue": 60.0, "count": 1000}),
        ("stuck_instances", {"after": 0, "owner": "*", "overdue": 60.0, "count": 100}),
    ],
)
async def test_a_backlog_that_was_just_made_is_read_by_its_indexes(
    database_url: str, name: str, given: dict[str, object]
) -> None:
    """The tables have never been analyzed, and what the planner thinks of their size is wrong by far."""
    async with open_flows(database_url) as flows:
        version = await flows.publish(chain(work()))
        for team in range(4):
            await flows.start(version, 500, owner=owner(f"team:{team}"))
    async with holding(database_url) as connection:
        plan = await explain(connection, name, **given, **({} if name == "queues_backlog" else {"now": at(10)}))
    assert plan.buffers < 20_000, plan.text
    assert plan.milliseconds < 500, plan.text


@pytest.mark.parametrize(
    ("name", "parked_for", "given"),
    [
        ("steps_release", None, {"queue": "default", "after": "", "now": at(10)}),
        ("flow_parked", "limit", {"ids": [1]}),
        ("steps_unpark", "engine", {"type": "test.work", "versions": [1], "offer": [(1, "default")], "now": at(10)}),
    ],
)
async def test_of_what_stands_the_best_are_read_and_not_the_rest(
    clones: Clones, name: str, parked_for: str | None, given: dict[str, object]
) -> None:
    """The indexes stand in the order of priority and age."""

    async def get_best(url: str, batches: int) -> Plan:
        async with open_flows(url) as flows:
            version = await flows.publish(chain(work()))
            for batch in range(batches):
                await flows.start(version, 500, at(batch))
            await flows.get(PARK, parked_for)
        async with holding(url) as connection:
            return await explain(connection, name, **given, count=20)

    with clones.lend() as few, clones.lend() as many:
        small, large = await get_best(few, 1), await get_best(many, 10)
    assert large.buffers < small.buffers + 100, large.text
