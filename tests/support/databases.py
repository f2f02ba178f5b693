"""Databases for tests: one template, built by the real migrations, and a clone for each test that commits.

A name carries the machine and the process that made it, so that runs side by side don't meet and what a killed run left
is dropped by the next.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
from psycopg import sql

import korak_migrations

MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
PREFIX = f"korak_test_{MACHINE}_"
SCHEMA = "korak"
ROOT = Path(__file__).parents[2]

_numbers = itertools.count(1)


def own_name() -> str:
    """A new name for a database or a vhost of this process."""
    return f"{PREFIX}{os.getpid()}_{next(_numbers)}"


def is_abandoned(name: str) -> bool:
    """Whether the process of this machine that made it is gone."""
    found = re.fullmatch(re.escape(PREFIX) + r"(\d+)_\d+", name)
    return found is not None and not psutil.pid_exists(int(found[1]))


def with_database(url: str, name: str) -> str:
    """The URL of another database of the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@contextmanager
def migrated(server: str) -> Iterator[str]:
    """The name of a database that the migrations have built, to be cloned and not to be connected to."""
    drop_abandoned(server)
    with empty(server) as url:
        korak_migrations.upgrade(url, SCHEMA)
        yield get_name(url)


@contextmanager
def empty(server: str) -> Iterator[str]:
    """The URL of a new database with nothing in it."""
    with _created(server, "template0") as url:
        yield url


@contextmanager
def cloned(server: str, template: str) -> Iterator[str]:
    """The URL of a new copy of the template."""
    with _created(server, template) as url:
        yield url


@contextmanager
def _created(server: str, template: str) -> Iterator[str]:
    url = create(server, template)
    try:
        yield url
    finally:
        _drop(server, get_name(url))


def create(server: str, template: str = "template0") -> str:
    """The URL of a new copy of the template, which its caller sees to."""
    name = own_name()
    _execute(server, sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template)))
    return with_database(server, name)


def get_name(url: str) -> str:
    """The name of the URL's database."""
    return urlsplit(url).path.removeprefix("/")


def drop_later(server: str, urls: Sequence[str]) -> None:
    """Have them dropped by a process of its own: each drop waits for the server's disk, and nobody waits for that.

    What it doesn't come to is abandoned, and dropped by the next run.
    """
    command = [sys.executable, "-m", "tests.support.databases", server, *map(get_name, urls)]
    apart = ["sh", "-c", '"$@" </dev/null >/dev/null 2>&1 &', "sh", *command]
    subprocess.run(apart, cwd=ROOT, check=True, start_new_session=True)


def drop_abandoned(server: str) -> None:
    """Drop what killed runs of this machine have left."""
    with psycopg.connect(server, autocommit=True) as connection:
        rows = connection.execute("select datname from pg_database where starts_with(datname, %s)", [PREFIX]).fetchall()
    for (name,) in rows:
        if is_abandoned(name):
            _drop(server, name)


def _drop(server: str, name: str) -> None:
    _execute(server, sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _drop_all(server: str, *names: str) -> None:
    for name in names:
        _drop(server, name)


def _execute(server: str, statement: sql.Composed) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement)


if __name__ == "__main__":
    _drop_all(*sys.argv[1:])
