"""One address of a database, spelt for each driver."""

from __future__ import annotations

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from korak.errors import SettingsError
from korak.store import urls

SPELLINGS = [
    "postgres://ana:s%40c@db:5433/shop?sslmode=require",
    "postgresql://ana:s%40c@db:5433/shop?sslmode=require",
    "postgresql+asyncpg://ana:s%40c@db:5433/shop?sslmode=require",
    "postgresql+psycopg://ana:s%40c@db:5433/shop?sslmode=require",
    "  postgresql+psycopg2://ana:s%40c@db:5433/shop?sslmode=require\n",
]
SOCKET = "postgresql:///shop?host=/run/postgresql&user=ana"


@pytest.mark.parametrize("url", SPELLINGS)
def test_every_spelling_is_the_same_address(url: str) -> None:
    rest = "://ana:s%40c@db:5433/shop"
    assert urls.plain(url) == f"postgresql{rest}?sslmode=require"
    assert urls.blocking(url) == f"postgresql+psycopg{rest}?sslmode=require"
    assert urls.asynchronous(url) == f"postgresql+asyncpg{rest}?ssl=require"


@pytest.mark.parametrize("spell", [urls.plain, urls.blocking, urls.asynchronous])
def test_a_socket_and_several_hosts_come_through(spell: type[str]) -> None:
    assert spell(SOCKET).partition("://")[2] == "/shop?host=/run/postgresql&user=ana"
    assert spell("postgres://a:1,b:2/shop").partition("://")[2] == "a:1,b:2/shop"


@pytest.mark.parametrize(
    "url", ["", "shop", "mysql://ana:s3cret@db/shop", "postgresql+pg8000://ana:s3cret@db", "postgres:"]
)
def test_another_address_is_refused_without_being_told(url: str) -> None:
    with pytest.raises(SettingsError, match="postgresql://") as refused:
        urls.plain(url)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("password", ["plain", "it's s3cret", "p@ss:w/rd?#[]%+&=", "čšž", ""])
@pytest.mark.parametrize("url", [*SPELLINGS, "postgresql://db:5433/shop?application_name=a%20b%2Bc"])
def test_another_role_is_read_back_by_every_driver(url: str, password: str) -> None:
    changed = urls.with_role(url, 'eff "ects', password)

    read = conninfo_to_dict(changed)
    assert (read["user"], read.get("password", ""), read["host"], read["dbname"]) == (
        'eff "ects',
        password,
        "db",
        "shop",
    )
    parsed = make_url(urls.asynchronous(changed))
    assert (parsed.username, parsed.password, parsed.port) == ('eff "ects', password, 5433)


def test_another_role_replaces_the_one_in_the_options() -> None:
    assert urls.with_role(SOCKET, "bo", "x") == "postgresql://bo:x@/shop?host=/run/postgresql"
    assert conninfo_to_dict(urls.with_role("postgresql://db/a?options=-c%20x%3D1", "bo", "x"))["options"] == "-c x=1"
