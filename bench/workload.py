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
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import httpx
import uvloop
from bench import ceiling
from bench.processes import read_cpu, read_cpu_by_name, run
from rich.console import Console
from rich.table import Table

STEPS = 5
DATABASE = os.environ.get("KORAK_TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
AMQP = os.environ.get("KORAK_TEST_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/")
PORT = 18473
ROOT = Path(__file__).resolve().parent.parent

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
    """What a run came to. Latencies are milliseconds, `cpu` is seconds a thousand steps by process."""

    steps: int
    seconds: float
    cpu: Mapping[str, float]
    p50: float
    p99: float
    ceiling: float
    ceiling_cpu: float
    hot: Mapping[str, float]


@contextmanager
def servers() -> Iterator[tuple[str, str]]:
    """A database and a virtual host of our own."""
    name = f"korak_bench_{os.getpid()}"
    database = urlunsplit(urlsplit(DATABASE)._replace(path=f"/{name}"))
    amqp = urlunsplit(urlsplit(AMQP)._replace(path=f"/{name}"))
    asyncio.run(_execute(DATABASE, f"create database {name}"))
    for command in (("add_vhost", name), ("set_permissions", "-p", name, "guest", ".*", ".*", ".*")):
        subprocess.run(["rabbitmqctl", "-q", *command], check=True, stdout=subprocess.DEVNULL)
    try:
        yield database, amqp
    finally:
        subprocess.run(["rabbitmqctl", "-q", "delete_vhost", name], check=True, stdout=subprocess.DEVNULL)
        asyncio.run(_execute(DATABASE, f"drop database {name} with (force)"))


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


class Bench:
    """One run: the services stand, and are asked."""

    def __init__(self, database: str, token: str, pids: Mapping[str, int]) -> None:
        self._database = database
        self._pids = pids
        self._client = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{PORT}",
            headers={"authorization": f"Bearer {token}"},
            timeout=120,
            limits=httpx.Limits(max_connections=64),
        )

    async def run(self, instances: int, idle: int) -> Figures:
        """Publish, measure one instance at a time, then all at once, then the ceiling."""
        async with self._client:
            await self._publish()
            latencies = await self._measure_idle(idle)
            before = self._read_cpu()
            seconds = await self._measure_load(instances)
            after = self._read_cpu()
        thousands = instances * STEPS / 1000
        cpu = {name: (after[name] - before[name]) / thousands for name in before}
        hot = await self._read_hot()
        own, postgres = time.process_time(), read_cpu_by_name("postgres")
        bare = await ceiling.measure(self._database, instances)
        bare_cpu = (time.process_time() - own + read_cpu_by_name("postgres") - postgres) / thousands
        p50, p99 = latencies[len(latencies) // 2], latencies[int(len(latencies) * 0.99)]
        return Figures(instances * STEPS, seconds, cpu, p50, p99, bare, bare_cpu, hot)

    async def _publish(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                if (await self._client.get("/readyz")).status_code == 200:
                    break
            except httpx.TransportError:
                pass
            if time.monotonic() > deadline:
                raise SystemExit("the API didn't become ready within a minute")
            await asyncio.sleep(0.1)
        await self._post("/v1/definitions", {"graph": GRAPH})
        await self._post("/v1/definitions/bench/publish", {})

    async def _post(self, path: str, body: Mapping[str, object]) -> httpx.Response:
        answer = await self._client.post(path, json=body)
        if answer.is_error:
            raise SystemExit(f"{path}: {answer.text}")
        return answer

    async def _measure_idle(self, count: int) -> list[float]:
        latencies = []
        for number in range(count + 10):
            begun = time.perf_counter()
            answer = await self._client.post("/v1/definitions/bench/start?wait=10", json={"input": {}})
            answer.raise_for_status()
            took = time.perf_counter() - begun
            assert answer.json()["instance"]["status"] == "completed", f"{number}, {took:.1f} s: {answer.text}"
            if number >= 10:
                latencies.append((time.perf_counter() - begun) * 1000)
        return sorted(latencies)

    async def _measure_load(self, instances: int) -> float:
        """Seconds from the first start to the last end, by the rows' own times."""
        remaining = iter(range(instances))

        async def start() -> None:
            for _ in remaining:
                (await self._client.post("/v1/definitions/bench/start", json={"input": {}})).raise_for_status()

        connection = await asyncpg.connect(self._database, server_settings={"search_path": "korak"})
        before = await connection.fetchval("select count(*) from workflow_instances")
        await asyncio.gather(*(start() for _ in range(64)))
        while await connection.fetchval("select exists (select from workflow_instances where ended_at is null)"):
            await asyncio.sleep(0.05)
        row = await connection.fetchrow(
            """select extract(epoch from max(ended_at) - min(created_at))::float as seconds, count(*) as count,
                count(*) filter (where status = 'completed') as completed
            from (select * from workflow_instances order by created_at, id offset $1) load""",
            before,
        )
        await connection.close()
        assert row["count"] == row["completed"] == instances, dict(row)
        return float(row["seconds"])

    async def _read_hot(self) -> dict[str, float]:
        connection = await asyncpg.connect(self._database)
        await asyncio.sleep(1.5)
        rows = await connection.fetch(
            "select relname, n_tup_hot_upd::float / nullif(n_tup_upd, 0) as hot from pg_stat_user_tables where n_tup_upd > 1000"
        )
        await connection.close()
        return {row["relname"]: row["hot"] for row in rows}

    def _read_cpu(self) -> dict[str, float]:
        cpu = {name: read_cpu(pid) for name, pid in self._pids.items()}
        return {**cpu, "postgres": read_cpu_by_name("postgres"), "rabbitmq": read_cpu_by_name("beam.smp")}


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description="Workload W: five trivial steps an instance, one engine process.")
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--idle", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        database, amqp = stack.enter_context(servers())
        environment = {
            "KORAK_DATABASE__URL": database,
            "KORAK_BROKER__URL": amqp,
            "KORAK_API__PORT": str(PORT),
            "KORAK_STEPS": "bench.steps",
            "KORAK_LOGS__LEVEL": os.environ.get("BENCH_LOG", "warning"),
            "PYTHONPATH": str(ROOT),
        }
        korak = ["-m", "korak"]
        subprocess.run([sys.executable, *korak, "migrate"], env={**os.environ, **environment}, check=True)
        made = subprocess.run(
            [sys.executable, *korak, "token", "create", "--name", "bench", "--role", "admin", "--json"],
            env={**os.environ, **environment},
            check=True,
            capture_output=True,
        )
        token = json.loads(made.stdout)["token"]
        pids = {}
        for name in ("api", "engine", "waker"):
            pids[name] = stack.enter_context(run(name, environment, Path(folder) / f"{name}.log")).pid
        figures = uvloop.run(Bench(database, token, pids).run(given.instances, given.idle))
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
