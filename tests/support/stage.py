"""A database, a broker and the processes on them: what an end-to-end test begins with."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg

from korak.clock import Clock
from korak.model import OwnerRole
from korak.owners.scopes import APPLICATION
from korak.owners.tokens import Credential, create_secret, digest
from korak.store import tokens
from korak.store.database import Database
from tests.support import ledger
from tests.support.calls import Calls
from tests.support.fleet import Fleet, Program
from tests.support.waiting import eventually

STEPS = "tests.e2e.steps"


@dataclass(slots=True)
class Stage:
    """Everything stands: an API, an engine and a waker. `calls_file` has a line for each call of a handler."""

    fleet: Fleet
    api: Program
    engine: Program
    waker: Program
    calls: Calls
    connection: Any
    calls_file: Path
    database: str

    async def reconnect(self) -> None:
        """A new connection of the test's own, once the database is there."""

        async def connect() -> Any:
            try:
                return await ledger.connect(self.database)
            except (OSError, asyncpg.PostgresError):
                return None

        self.connection.terminate()
        self.connection = await eventually(connect, 60, message="the database doesn't come back")

    async def end_all(self, patience: float) -> None:
        """Wait until every instance has ended; another attempt of theirs ends within so many seconds, or none will."""

        async def look() -> bool:
            return await ledger.count_open(self.connection) == 0 or await ledger.count_ended(self.connection) > ended

        while await ledger.count_open(self.connection):
            ended = await ledger.count_ended(self.connection)
            await eventually(look, patience, message="instances are left open, and nothing of them goes on")

    async def assert_rules(self) -> None:
        """Every rule of the ledger holds."""
        assert await ledger.list_breaches(self.connection) == {}

    def count_calls(self, key: str) -> int:
        """How often the handler was called for the visit with this idempotency key."""
        return sum(line.startswith(f"{key} ") for line in self.read_calls())

    def read_calls(self) -> list[str]:
        """A line for each call: key, attempt, process."""
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


async def admit(url: str) -> str:
    """A new app-wide token with the role admin."""
    secret = create_secret()
    credential = Credential.for_owner(APPLICATION, frozenset({OwnerRole.ADMIN}), name="e2e")
    async with Database(url, "korak", pool=1, name="e2e") as database, database.transaction() as connection:
        await tokens.create(connection, digest(secret), credential=credential, now=Clock().now())
    return secret


@asynccontextmanager
async def staged(
    folder: Path, database: str, amqp: str | None, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Stage]:
    """A stage in this folder; where the test fails, the ends of all logs are shown."""
    calls_file = folder / "calls"
    environment = {
        "KORAK_DATABASE__URL": database,
        "KORAK_BROKER__URL": amqp or "",
        "KORAK_STEPS": STEPS,
        "KORAK_TEST_CALLS": str(calls_file),
        **(settings or {}),
    }
    with Fleet(folder, environment) as fleet:
        connection = await ledger.connect(database)
        api, engine, waker = [fleet.start(name) for name in ("api", "engine", "waker")]
        token = await admit(database)
        try:
            await asyncio.gather(*(program.wait_until_ready() for program in fleet.programs))
            async with Calls(api.url, token) as calls:
                stage = Stage(fleet, api, engine, waker, calls, connection, calls_file, database)
                try:
                    yield stage
                finally:
                    stage.connection.terminate()
        except BaseException:
            sys.stdout.write(fleet.show_logs())
            raise
        finally:
            connection.terminate()
