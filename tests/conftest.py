"""The servers of a test run, a database and a vhost for each test, and what is said when there is no broker."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import asyncpg
import pytest
from hypothesis import settings

from tests.support import databases, servers
from tests.support.clones import Clones
from tests.support.vhosts import Vhosts

settings.register_profile("korak", deadline=None)
settings.load_profile("korak")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Async tests run on asyncio, as Korak does."""
    return "asyncio"


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A Postgres in which databases may be made: the URL of its `postgres` database."""
    with servers.postgres() as url:
        yield url


@pytest.fixture(scope="session")
def database_template(postgres_url: str) -> Iterator[str]:
    """The name of the database that the migrations have built once for this run."""
    with databases.migrated(postgres_url) as name:
        yield name


@pytest.fixture(scope="session")
def clones(postgres_url: str, database_template: str) -> Iterator[Clones]:
    """The databases of this run that tests have one after another."""
    clones = Clones(postgres_url, database_template)
    yield clones
    clones.close()


@pytest.fixture
def database_url(clones: Clones) -> Iterator[str]:
    """A migrated database of the test's own, in which it may commit."""
    with clones.lend() as url:
        yield url


@pytest.fixture
def empty_database_url(clones: Clones) -> str:
    """A database of the test's own with nothing in it: for tests of the migrations."""
    return clones.make_empty()


@pytest.fixture(scope="session")
def shared_database_url(clones: Clones) -> Iterator[str]:
    """The migrated database of the tests that roll back."""
    with clones.lend() as url:
        yield url


@pytest.fixture
async def connection(shared_database_url: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    """A connection inside a transaction that is rolled back after the test."""
    connection = await asyncpg.connect(shared_database_url)
    transaction = connection.transaction()
    await transaction.start()
    try:
        yield connection
    finally:
        await transaction.rollback()
        await connection.close()


@pytest.fixture(scope="session")
def vhosts() -> Iterator[Vhosts | None]:
    """The RabbitMQ of this run, or None where there is none."""
    with servers.rabbitmq() as broker:
        vhosts = Vhosts(broker) if broker else None
        yield vhosts
        if vhosts:
            vhosts.close()


@pytest.fixture
def amqp_url(vhosts: Vhosts | None) -> str:
    """The URL of an empty vhost of the test's own."""
    if vhosts is None and os.environ.get("KORAK_TEST_REQUIRE_AMQP") == "1":
        pytest.fail(f"KORAK_TEST_REQUIRE_AMQP=1, and {servers.NO_BROKER}", pytrace=False)
    if vhosts is None:
        pytest.skip(servers.NO_BROKER)
    return vhosts.take()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What asks for a broker carries the mark `amqp`."""
    for item in items:
        if "amqp_url" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.amqp)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line that, and why, brokered tests didn't run."""
    skipped = terminalreporter.stats.get("skipped", [])
    count = sum(servers.NO_BROKER in str(report.longrepr) for report in skipped)
    if count:
        terminalreporter.write_line(f"{count} brokered tests skipped: {servers.NO_BROKER}", yellow=True)
