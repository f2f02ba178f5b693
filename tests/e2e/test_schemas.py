"""A build on a database that an older or a newer one has left: one line that says what to do, or work that goes on."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from korak.service import list_services
from korak_migrations import head
from tests.support import devs
from tests.support.fleet import Fleet

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def newer_url(database_url: str) -> str:
    """A database that a build of some later day has migrated."""
    with psycopg.connect(database_url) as connection:
        connection.execute("update korak.alembic_version set version_num = '9999'")
    return database_url


def refuse(directory: Path, url: str, *arguments: str) -> str:
    """What a command says that can't do its work, which is one line."""
    done = subprocess.run(
        [devs.find_korak(), *arguments],
        cwd=directory,
        env=devs.get_environ(KORAK_DATABASE__URL=url),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize("command", [*list_services(), "wake", "token list"])
def test_nothing_works_on_a_schema_that_was_not_migrated(tmp_path: Path, empty_database_url: str, command: str) -> None:
    told = refuse(tmp_path, empty_database_url, *command.split())
    assert (
        told
        == f"The schema korak is at revision none, and this build needs {head()}: run korak migrate. (schema_older)"
    )


def test_a_revision_before_this_builds_is_an_older_one(tmp_path: Path, database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("update korak.alembic_version set version_num = '0001'")
    assert "(schema_older)" in refuse(tmp_path, database_url, "api")


@pytest.mark.parametrize("command", ["migrate", "dev --port 0"])
def test_what_a_newer_build_has_migrated_is_not_migrated(tmp_path: Path, newer_url: str, command: str) -> None:
    told = refuse(tmp_path, newer_url, *command.split())
    assert "revision 9999, which a newer build has made" in told
    assert told.endswith("(schema_newer)")


async def test_services_go_on_over_the_next_schema_and_say_so(tmp_path: Path, newer_url: str) -> None:
    with Fleet(tmp_path, {"KORAK_DATABASE__URL": newer_url}) as fleet:
        for program in [fleet.start(name) for name in ("api", "engine", "waker")]:
            await program.wait_until_ready()
            assert "schema_newer" in program.read_log()


def test_the_doctor_notes_it(tmp_path: Path, newer_url: str) -> None:
    doctor = subprocess.run(
        [devs.find_korak(), "doctor"],
        env=devs.get_environ(KORAK_DATABASE__URL=newer_url),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "! migrations The schema korak is at revision 9999" in doctor.stdout


def test_a_database_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    gone = "postgresql://me:hush@127.0.0.1:9/x"
    assert refuse(tmp_path, gone, "migrate") == "The database can't be reached now. (unavailable)"
