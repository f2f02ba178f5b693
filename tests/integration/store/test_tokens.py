"""Tokens as rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import asyncpg
import pytest

from korak.model import OwnerRole
from korak.owners.scopes import APPLICATION, Owner
from korak.owners.tokens import Credential, Token, digest
from korak.store import tokens

Session: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(hours=1)
TEAM = Credential.for_owner(
    Owner("team", "42"), frozenset({OwnerRole.VIEWER, OwnerRole.STARTER}), user="ana", name="shop"
)
OTHER = Credential.for_owner(Owner("team", "43"), frozenset({OwnerRole.WORKER}), name="erp")
ADMIN = Credential.for_owner(APPLICATION, frozenset({OwnerRole.ADMIN}), name="dev")


@pytest.fixture
async def session(connection: Session) -> Session:
    """The test's transaction, looking at the store's schema."""
    await connection.execute("set local search_path to korak")
    return connection


async def make(session: Session, secret: str, credential: Credential, *, expires_at: datetime | None = None) -> Token:
    token = await tokens.create(session, digest(secret), credential=credential, now=NOW, expires_at=expires_at)
    assert token is not None
    return token


@pytest.mark.parametrize("credential", [TEAM, ADMIN, Credential.for_owner(APPLICATION, frozenset())])
async def test_who_presents_the_secret_is_who_it_was_made_for(session: Session, credential: Credential) -> None:
    made = await make(session, "korak_a", credential)

    assert await tokens.get_by_digest(session, digest("korak_a"), now=LATER) == credential
    assert made == Token(made.id, credential, NOW)
    assert len(made.id) == 26


async def test_an_unknown_secret_opens_nothing(session: Session) -> None:
    await make(session, "korak_a", TEAM)

    assert await tokens.get_by_digest(session, digest("korak_b"), now=NOW) is None
    assert await tokens.get_by_digest(session, "korak_a", now=NOW) is None


async def test_a_secret_is_one_token(session: Session) -> None:
    await make(session, "korak_a", TEAM)

    assert await tokens.create(session, digest("korak_a"), credential=ADMIN, now=NOW) is None
    assert await tokens.get_by_digest(session, digest("korak_a"), now=NOW) == TEAM


async def test_the_secret_is_not_kept(session: Session) -> None:
    await make(session, "korak_secret", TEAM)

    rows = await session.fetch("select tokens::text as row from tokens")
    assert not [row for row in rows if "korak_secret" in row["row"]]


async def test_a_token_ends_at_its_time(session: Session) -> None:
    await make(session, "korak_a", TEAM, expires_at=LATER)

    assert await tokens.get_by_digest(session, digest("korak_a"), now=LATER - timedelta(microseconds=1)) == TEAM
    assert await tokens.get_by_digest(session, digest("korak_a"), now=LATER) is None


async def test_a_revoked_token_opens_nothing_and_is_revoked_once(session: Session) -> None:
    token = await make(session, "korak_a", TEAM)

    assert await tokens.revoke(session, token.id, owner_scope="team:42", now=LATER)
    assert not await tokens.revoke(session, token.id, owner_scope="team:42", now=LATER + timedelta(hours=1))

    assert await tokens.get_by_digest(session, digest("korak_a"), now=LATER) is None
    assert await tokens.list_tokens(session, "team:42") == [Token(token.id, TEAM, NOW, revoked_at=LATER)]
    assert await tokens.create(session, digest("korak_a"), credential=TEAM, now=LATER) is None


async def test_another_owners_token_is_not_there(session: Session) -> None:
    token = await make(session, "korak_a", TEAM)

    assert not await tokens.revoke(session, token.id, owner_scope="team:43", now=LATER)
    assert not await tokens.revoke(session, token.id, owner_scope="*", now=LATER)
    assert await tokens.list_tokens(session, "team:43") == []

    assert await tokens.get_by_digest(session, digest("korak_a"), now=LATER) == TEAM
    assert await tokens.revoke(session, token.id, owner_scope=None, now=LATER)


async def test_a_list_is_read_in_pages(session: Session) -> None:
    made = [await make(session, f"korak_{number}", owner) for number, owner in enumerate([TEAM, OTHER, TEAM, ADMIN])]
    everybody = sorted(made, key=lambda token: token.id)

    assert await tokens.list_tokens(session, None) == everybody
    assert await tokens.list_tokens(session, None, limit=2) == everybody[:2]
    assert await tokens.list_tokens(session, None, after=everybody[1].id) == everybody[2:]
    assert {token.credential for token in await tokens.list_tokens(session, "team:42")} == {TEAM}
    assert {token.credential for token in await tokens.list_tokens(session, "*")} == {ADMIN}


async def test_a_role_of_a_newer_build_grants_nothing(session: Session) -> None:
    await make(session, "korak_a", TEAM)
    await session.execute("""update tokens set roles = '["viewer", "auditor"]'""")

    credential = await tokens.get_by_digest(session, digest("korak_a"), now=NOW)
    assert credential is not None
    assert credential.roles == {OwnerRole.VIEWER}
