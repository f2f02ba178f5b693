"""Where a benchmark plays: a database and a virtual host of its own, the services as processes, and what they cost."""

from __future__ import annotations

import asyncio
import json
import os
import socket
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

from bench.client import Client
from bench.processes import read_cpu, read_cpu_by_name, read_memory, read_postgres_cpu, run
from korak.loop import wait

DATABASE = os.environ.get("KORAK_TEST_DATABASE_URL", "postgresql://postgres@127.0.0.1:5432/postgres")
AMQP = os.environ.get("KORAK_TEST_AMQP_URL", "amqp://guest:guest@127.0.0.1:5672/")
ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Stage:
    """The services that stand, and how to ask them."""

    database: str
    token: str
    port: int
    pids: Mapping[str, int]

    async def connect(self) -> Client:
        """A client, once the API listens."""
        client = Client(self.port, self.token)
        deadline = time.monotonic() + 60
        while True:
            try:
                await client.connect()
                return client
            except OSError:
                if time.monotonic() > deadline:
                    raise SystemExit("the API didn't listen within a minute") from None
                await wait(0.1)

    async def wait_for_ends(self) -> None:
        """Until every instance has ended; all of them must have completed."""
        connection = await asyncpg.connect(self.database, server_settings={"search_path": "korak"})
        while await connection.fetchval("select exists (select from workflow_instances where ended_at is null)"):
            await wait(0.05)
        failed = await connection.fetchval("select count(*) from workflow_instances where status <> 'completed'")
        await connection.close()
        if failed:
            raise SystemExit(f"{failed} instances didn't complete")

    def read_cpu(self) -> dict[str, float]:
        """CPU seconds until now, by service; PostgreSQL's are those of this database."""
        cpu = {name: read_cpu(pid) for name, pid in self.pids.items()}
        postgres = read_postgres_cpu(urlsplit(self.database).path[1:])
        return {**cpu, "postgres": postgres, "rabbitmq": read_cpu_by_name("beam.smp")}

    def read_memory(self, name: str) -> float:
        """Resident memory of a service now, in MB."""
        return read_memory(self.pids[name])


@contextmanager
def standing() -> Iterator[Stage]:
    """Migrate, make a token, start the services; all of it goes at the end."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        database, amqp = stack.enter_context(servers())
        port = find_free_port()
        environment = {
            "KORAK_DATABASE__URL": database,
            "KORAK_BROKER__URL": amqp,
            "KORAK_API__PORT": str(port),
            "KORAK_STEPS": "bench.steps",
            "KORAK_LOGS__LEVEL": os.environ.get("BENCH_LOG", "warning"),
            "PYTHONPATH": str(ROOT),
        }
        korak = [sys.executable, "-m", "korak"]
        subprocess.run([*korak, "migrate"], env={**os.environ, **environment}, check=True)
        made = subprocess.run(
            [*korak, "token", "create", "--name", "bench", "--role", "admin", "--json"],
            env={**os.environ, **environment},
            check=True,
            capture_output=True,
        )
        pids = {}
        for name in ("api", "engine", "waker"):
            pids[name] = stack.enter_context(run(name, environment, Path(folder) / f"{name}.log")).pid
        yield Stage(database, json.loads(made.stdout)["token"], port, pids)


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


def find_free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
