"""Fan-outs: for_each of many trivial items in one instance, and many instances with three branches; prints its table.

    python -m bench.fan [--items 10000] [--few 100] [--instances 5000]

The same number of items is run twice: in one instance, and a few an instance one after another. What an item costs in
the first over what it costs in the second tells whether a fan-out pays for its size.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import asyncpg
import uvloop
from rich.console import Console
from rich.table import Table

from bench.client import Client
from bench.stage import Stage, standing

STARTERS = 32
SAMPLES = 0.2
"""Seconds between two looks at the engine's memory."""

WORK = {"id": "work", "type": "bench.nothing", "config": {}}
EACH = {
    "id": "each",
    "type": "for_each",
    "config": {"items": {"ref": "input.items"}},
    "body": {"start": "work", "nodes": [WORK], "edges": []},
}
BRANCHES = {name: {"start": f"w{name}", "nodes": [{**WORK, "id": f"w{name}"}], "edges": []} for name in ("a", "b", "c")}


def make_graph(key: str, node: Mapping[str, Any]) -> dict[str, Any]:
    """A graph of one node."""
    trigger = {"id": "start", "type": "trigger", "config": {"on": "manual"}}
    nodes = [trigger, dict(node), {"id": "done", "type": "end", "config": {"result": 1}}]
    edges = [{"from": "start", "to": node["id"]}, {"from": node["id"], "to": "done"}]
    return {"schema": "korak.graph/v1", "key": key, "name": key, "nodes": nodes, "edges": edges}


@dataclass(frozen=True, slots=True)
class Spent:
    """What a number of bodies took: seconds, CPU seconds by process, the engine's memory before and at most in MB."""

    bodies: int
    seconds: float
    cpu: Mapping[str, float]
    memory: tuple[float, float]


class Bench:
    """One run on services that stand."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    async def run(self, items: int, few: int, instances: int) -> dict[str, Spent]:
        """Publish, warm up, measure each shape."""
        client = await self._stage.connect()
        for key, node in (
            ("each", EACH),
            ("three", {"id": "three", "type": "parallel", "config": {}, "branches": BRANCHES}),
        ):
            await client.post("/v1/definitions", {"graph": make_graph(key, node)})
            await client.post(f"/v1/definitions/{key}/publish", {})
        for size in (0, 1, 2, few, few, few):
            await self._each(client, size)
        figures = {}
        for name in ("", " again"):
            figures[f"{items // few:,} times {few:,} items{name}"] = await self._measure(
                items, lambda: self._repeat(client, items // few, few)
            )
            figures[f"{items:,} items{name}"] = await self._measure(items, lambda: self._each(client, items))
        figures[f"{instances:,} instances of 3 branches"] = await self._measure(
            instances * 3, lambda: self._start_many(instances)
        )
        client.close()
        return figures

    async def _measure(self, bodies: int, act: Any) -> Spent:
        before, memory = self._stage.read_cpu(), self._stage.read_memory("engine")
        begun = time.perf_counter()
        acting = asyncio.ensure_future(act())
        most = memory
        while not acting.done():
            await asyncio.wait([acting], timeout=SAMPLES)
            most = max(most, self._stage.read_memory("engine"))
        await acting
        seconds = time.perf_counter() - begun
        after = self._stage.read_cpu()
        return Spent(bodies, seconds, {name: after[name] - before[name] for name in before}, (memory, most))

    async def _repeat(self, client: Client, times: int, items: int) -> None:
        for _ in range(times):
            await self._each(client, items)

    async def _each(self, client: Client, items: int) -> None:
        path = "/v1/definitions/each/start?wait=60"
        answer = await client.post(path, {"input": {"items": list(range(items))}})
        if answer["instance"]["status"] == "completed":
            return
        await self._stage.wait_for_ends()

    async def _start_many(self, instances: int) -> None:
        remaining = iter(range(instances))

        async def start() -> None:
            client = await self._stage.connect()
            for _ in remaining:
                await client.post("/v1/definitions/three/start", {"input": {}})
            client.close()

        await asyncio.gather(*(start() for _ in range(STARTERS)))
        await self._stage.wait_for_ends()


async def count_conflicts(database: str) -> str:
    """Deadlocks and rolled back transactions of the database since it was made."""
    connection = await asyncpg.connect(database)
    row = await connection.fetchrow(
        "select deadlocks, xact_rollback from pg_stat_database where datname = current_database()"
    )
    await connection.close()
    return f"deadlocks {row['deadlocks']}, rollbacks {row['xact_rollback']}"


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--few", type=int, default=100)
    parser.add_argument("--instances", type=int, default=5_000)
    given = parser.parse_args()
    with standing() as stage:
        figures = uvloop.run(Bench(stage).run(given.items, given.few, given.instances))
        conflicts = asyncio.run(count_conflicts(stage.database))
    table = Table("shape", "bodies/s", "CPU s per 1,000", "of that engine", "Postgres", "engine MB", title="Fan-outs")
    for name, spent in figures.items():
        low, high = spent.memory
        parts = [sum(spent.cpu.values()), spent.cpu["engine"], spent.cpu["postgres"]]
        cpu = [f"{part / spent.bodies * 1000:.3f}" for part in parts]
        table.add_row(name, f"{spent.bodies / spent.seconds:,.0f}", *cpu, f"{low:.0f}, {high:.0f}")
    Console().print(table)
    Console().print(conflicts)


if __name__ == "__main__":
    main()
