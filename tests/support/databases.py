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
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg
from psycopg import sql

import korak_migrations

MACHINE = hashlib.sha256(platform.node().encode()).hexdigest()[:8]
PREFIX = f"korak_test_{MACHINE}_"
SCHEMA = "korak"

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
        yield urlsplit(url).path.removeprefix("/")


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
    name = own_name()
    _execute(server, sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield with_database(server, name)
    finally:
        _drop(server, name)


def drop_abandoned(server: str) -> None:
    """Drop what killed runs of this machine have left."""
    with psycopg.connect(server, autocommit=True) as connection:
        rows = connection.execute("select datname from pg_database where starts_with(datname, %s)", [PREFIX]).fetchall()
    for (name,) in rows:
        if is_abandoned(name):
            _drop(server, name)


def _drop(server: str, name: str) -> None:
    _execute(server, sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _execute(server: str, statement: sql.Composed) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(statement)
