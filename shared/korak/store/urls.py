"""The one place that reads database URLs: one address, spelt for each driver."""

from __future__ import annotations

from sqlalchemy.engine import make_url

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
    parsed = make_url(plain(url).replace("postgresql://", "postgresql+asyncpg://", 1))
    if "sslmode" in parsed.query:
        parsed = parsed.difference_update_query(["sslmode"]).update_query_dict({"ssl": parsed.query["sslmode"]})
    return parsed.render_as_string(hide_password=False)


def with_role(url: str, role: str, password: str) -> str:
    """The same database as another role."""
    return make_url(plain(url)).set(username=role, password=password).render_as_string(hide_password=False)
