"""Secrets, digests and credentials."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from korak.model import OwnerRole
from korak.owners.scopes import APPLICATION, Owner
from korak.owners.tokens import Credential, Token, create_secret, digest

NOW = datetime(2026, 3, 1, tzinfo=UTC)
CREDENTIAL = Credential.for_owner(Owner("team", "42"), frozenset({OwnerRole.STARTER}), user="ana", name="shop")


def test_a_secret_tells_what_it_is_and_is_never_the_same() -> None:
    made = {create_secret() for _ in range(100)}
    assert len(made) == 100
    assert all(re.fullmatch(r"korak_[A-Za-z0-9_-]{43}", secret) for secret in made)


def test_a_digest_is_sha_256_of_whatever_is_presented() -> None:
    assert digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert digest("č\ud800") != digest("č")
    assert len(digest("")) == 64


def test_a_credential_speaks_for_its_owner() -> None:
    assert (CREDENTIAL.owner_scope, CREDENTIAL.owner_type, CREDENTIAL.owner_id) == ("team:42", "team", "42")
    assert CREDENTIAL.owner == Owner("team", "42")
    assert not CREDENTIAL.is_app_wide
    assert Credential.for_owner(APPLICATION, frozenset()).is_app_wide


def test_a_token_is_valid_until_it_expires_or_is_revoked() -> None:
    later = NOW + timedelta(seconds=1)
    assert Token("a", CREDENTIAL, NOW).is_valid(later)
    assert Token("a", CREDENTIAL, NOW, expires_at=later).is_valid(NOW)
    assert not Token("a", CREDENTIAL, NOW, expires_at=later).is_valid(later)
    assert not Token("a", CREDENTIAL, NOW, revoked_at=NOW).is_valid(NOW)
