"""The one place that reads database URLs: one address, spelt for each driver."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from korak.errors import SettingsError

SCHEMES = frozenset({"postgres", "postgresql"})
DRIVERS = frozenset({"", "asyncpg", "psycopg", "psycopg2"})


def plain(url: str) -> str:
    """`url` as libpq, psycopg and asyncpg read it: `postgresql://...`.

    Takes `postgres://`, `postgresql://` and the SQLAlchemy spellings `postgresql+asyncpg://`, `postgresql+psycopg://`.
    Raises SettingsError for anything else; the message names no part of the address, which may hold a password.
    """
    scheme, separator, rest = url.strip().partition("://")
    dialect, _, driver = scheme.partition("+")
    if not separator or dialect not in SCHEMES or driver not in DRIVERS:
        raise SettingsError("invalid_setting", "A database URL begins with postgresql://")
    return f"postgresql://{rest}"


def blocking(url: str) -> str:
    """`url` for SQLAlchemy's blocking engine, over psycopg."""
    return plain(url).replace("postgresql://", "postgresql+psycopg://", 1)


def asynchronous(url: str) -> str:
    """`url` for SQLAlchemy's async engine, over asyncpg, which calls libpq's `sslmode` plain `ssl`."""
    spelt = plain(url).replace("postgresql://", "postgresql+asyncpg://", 1)
    return _with_options(spelt, lambda name: "ssl" if name == "sslmode" else name)


def with_role(url: str, role: str, password: str) -> str:
    """The same database as another role."""
    split = urlsplit(_with_options(plain(url), lambda name: None if name in ("user", "password") else name))
    host = split.netloc.rpartition("@")[2]
    return urlunsplit(split._replace(netloc=f"{quote(role, safe='')}:{quote(password, safe='')}@{host}"))


def _with_options(url: str, rename: Callable[[str], str | None]) -> str:
    address, _, query = url.partition("?")
    given = [(rename(name), value) for name, value in parse_qsl(query, keep_blank_values=True)]
    kept = [(name, value) for name, value in given if name is not None]
    # quote, not quote_plus: libpq reads a plus as a plus.
    return f"{address}?{urlencode(kept, quote_via=quote, safe='/')}" if kept else address
