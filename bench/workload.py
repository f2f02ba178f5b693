"""Workload W: N instances of five trivial steps on one engine process, real Postgres and RabbitMQ; prints its table.

    python -m bench.workload [--instances 20000] [--idle 200]

The servers are those of KORAK_TEST_DATABASE_URL and KORAK_TEST_AMQP_URL, else the local ones. A database and a virtual
host of its own are made and dropped.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncpg
import uvloop
from rich.console import Console
from rich.table import Table

from bench import ceiling
from bench.client import Client
from bench.processes import read_postgres_cpu
from bench.stage import Stage, standing

STEPS = 5
WARM_UP = 10
STARTERS = 64
HOT = """select relname, n_tup_hot_upd::float / n_tup_upd as hot from pg_stat_user_tables
    where n_tup_upd > 1000 and relname in ('workflow_instances', 'workflow_step_runs')"""

GRAPH = {
    "schema": "korak.graph/v1",
    "key": "bench",
    "name": "Five trivial steps",
    "nodes": [
        {"id": "start", "type": "trigger", "config": {"on": "manual"}},
        *({"id": f"s{number}", "type": "bench.nothing", "config": {}} for number in range(STEPS)),
        {"id": "done", "type": "end", "config": {}},
    ],
    "edges": [
        {"from": "start", "to": "s0"},
        *({"from": f"s{number}", "to": f"s{number + 1}"} for number in range(STEPS - 1)),
        {"from": f"s{STEPS - 1}", "to": "done"},
    ],
}


@dataclass(frozen=True, slots=True)
class Figures:
    """What a run came to. Latencies are milliseconds, CPU is seconds a thousand steps (or starts), by process."""

    steps: int
    seconds: float
    cpu: Mapping[str, float]
    starts: float
    start_cpu: float
    p50: float
    p99: float
    ceiling: float
    ceiling_cpu: float
    hot: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds that something took, and CPU seconds that all processes spent on it."""

    seconds: float
    cpu: float


class Bench:
    """One run: the services stand, and are asked."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._database = stage.database

    async def run(self, instances: int, idle: int) -> Figures:
        """Publish, measure one instance at a time, then starts, then steps, then the ceiling."""
        client = await self._stage.connect()
        await client.post("/v1/definitions", {"graph": GRAPH})
        await client.post("/v1/definitions/bench/publish", {})
        latencies = await self._measure_idle(client, idle)
        client.close()
        with self._held_engine():
            starts = await self._measure_starts(instances)
            before = self._stage.read_cpu()
        begun = time.perf_counter()
        await self._stage.wait_for_ends()
        seconds = time.perf_counter() - begun
        after = self._stage.read_cpu()
        thousands = instances * STEPS / 1000
        bare, bare_cpu = await self._measure_ceiling(instances)
        return Figures(
            steps=instances * STEPS,
            seconds=seconds,
            cpu={name: (after[name] - before[name]) / thousands for name in before},
            starts=instances / starts.seconds,
            start_cpu=starts.cpu / instances * 1000,
            p50=latencies[len(latencies) // 2],
            p99=latencies[int(len(latencies) * 0.99)],
            ceiling=bare,
            ceiling_cpu=bare_cpu / thousands,
            hot=await self._read_hot(),
        )

    async def _measure_idle(self, client: Client, count: int) -> list[float]:
        latencies = []
        for number in range(count + WARM_UP):
            begun = time.perf_counter()
            answer = await client.post("/v1/definitions/bench/start?wait=30", {"input": {}})
            took = (time.perf_counter() - begun) * 1000
            if answer["instance"]["status"] != "completed":
                raise SystemExit(f"an instance didn't complete: {answer}")
            if number >= WARM_UP:
                latencies.append(took)
        return sorted(latencies)

    @contextmanager
    def _held_engine(self) -> Iterator[None]:
        """The engine stands still while instances are started, so that steps and starts are measured apart."""
        os.kill(self._stage.pids["engine"], signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._stage.pids["engine"], signal.SIGCONT)

    async def _measure_starts(self, instances: int) -> Spent:
        remaining = iter(range(instances))
        before = self._stage.read_cpu()
        begun = time.perf_counter()

        async def start() -> None:
            client = await self._stage.connect()
            for _ in remaining:
                await client.post("/v1/definitions/bench/start", {"input": {}})
            client.close()

        await asyncio.gather(*(start() for _ in range(STARTERS)))
        after = self._stage.read_cpu()
        return Spent(time.perf_counter() - begun, sum(after.values()) - sum(before.values()))

    async def _measure_ceiling(self, instances: int) -> tuple[float, float]:
        name = urlsplit(self._database).path[1:]
        return await ceiling.measure(self._database, instances, lambda: time.process_time() + read_postgres_cpu(name))

    async def _read_hot(self) -> dict[str, float]:
        connection = await asyncpg.connect(self._database)
        rows = await connection.fetch(HOT)
        await connection.close()
        return {row["relname"]: row["hot"] for row in rows}


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description="Workload W: five trivial steps an instance, one engine process.")
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--idle", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with standing() as stage:
        figures = uvloop.run(Bench(stage).run(given.instances, given.idle))
    show(figures, as_json=given.json)


def show(figures: Figures, *, as_json: bool) -> None:
    """Print the table, or one line of JSON."""
    rate = figures.steps / figures.seconds
    total = sum(figures.cpu.values())
    if as_json:
        Console().print_json(json.dumps({"steps_per_second": rate, "cpu_per_1000": total, "p50_ms": figures.p50}))
        return
    table = Table(title=f"Workload W: {figures.steps} steps, {os.cpu_count()} cores, {platform.machine()}")
    table.add_column("figure")
    table.add_column("value", justify="right")
    table.add_row("steps a second", f"{rate:,.0f}")
    table.add_row("CPU seconds per 1,000 steps, all", f"{total:.3f}")
    for name, seconds in figures.cpu.items():
        table.add_row(f"    {name}", f"{seconds:.3f}")
    table.add_row("starts over HTTP a second", f"{figures.starts:,.0f}")
    table.add_row("CPU seconds per 1,000 starts, all", f"{figures.start_cpu:.3f}")
    table.add_row("idle, HTTP start to completed, p50", f"{figures.p50:.1f} ms")
    table.add_row("idle, HTTP start to completed, p99", f"{figures.p99:.1f} ms")
    table.add_row("ceiling: bare batched loop, steps a second", f"{figures.ceiling:,.0f}")
    table.add_row("ceiling: CPU seconds per 1,000 steps", f"{figures.ceiling_cpu:.3f}")
    table.add_row("steps per CPU second against the ceiling", f"{figures.ceiling_cpu / total:.2f}")
    for name, share in figures.hot.items():
        table.add_row(f"HOT updates, {name}", f"{share:.0%}")
    Console().print(table)


if __name__ == "__main__":
    main()
