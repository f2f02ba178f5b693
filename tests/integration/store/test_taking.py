"""What an export has in memory at a time, however large the rows are."""

from __future__ import annotations

import tracemalloc

from korak.store import copies
from tests.support.flows import NOW, Flows, chain, open_flows, work

ROWS, LARGE = 100, 1 << 20
MOST = 48 * LARGE
FILL = (
    "insert into workflow_signals (instance_id, owner_scope, kind, name, payload, source_id, created_at)"
    " select $1, '*', 'signal', 'go', jsonb_build_object('text', repeat('x', $3)), g::text, $4"
    " from generate_series(1, $2) g"
)


async def take_out(flows: Flows, instance: int) -> tuple[int, int]:
    """The lines of the export, and the most bytes that were in memory."""
    ulid = (await flows.get_instance(instance))["ulid"]
    lines = 0
    tracemalloc.start()
    async for piece in copies.export(flows.database, "*", ulid, NOW):
        lines += piece.count(b"\n")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return lines, peak


async def test_large_rows_are_read_a_few_at_a_time(database_url: str) -> None:
    async with open_flows(database_url) as flows:
        [instance] = await flows.start(await flows.publish(chain(work())))
        plain, _ = await take_out(flows, instance)
        await flows.fetch(FILL, instance, ROWS, LARGE, NOW)
        lines, peak = await take_out(flows, instance)
        assert lines == plain + ROWS
        assert peak < MOST
