"""Bearer tokens: the secret that is shown once, the digest that is kept, and who a caller is."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from korak.model import OwnerRole
from korak.owners.scopes import Owner

PREFIX: Final = "korak_"
ENTROPY: Final = 32
"""Bytes: enough that a plain digest can't be searched."""

MAX_SECRET: Final = 512
"""Characters of a secret that somebody else made up (`korak dev --token`)."""


@dataclass(frozen=True, slots=True)
class Credential:
    """Who a caller is: the owner that it speaks for, its roles, and the user who acts, if it is one's."""

    owner_scope: str
    owner_type: str | None
    owner_id: str | None
    roles: frozenset[OwnerRole]
    user: str | None = None
    name: str = ""

    @classmethod
    def for_owner(
        cls, owner: Owner, roles: frozenset[OwnerRole], *, user: str | None = None, name: str = ""
    ) -> Credential:
        """A credential of `owner`."""
        return cls(owner.scope, owner.type, owner.id, roles, user, name)

    @property
    def owner(self) -> Owner:
        """The owner that it speaks for."""
        return Owner(self.owner_type, self.owner_id)

    @property
    def is_app_wide(self) -> bool:
        """Whether it is the application's and may name any owner."""
        return self.owner.is_app_wide


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is listed: everything but its secret. `id` is a ULID."""

    id: str
    credential: Credential
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it opens anything at `now`."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def create_secret() -> str:
    """A new secret, `korak_...`; it is shown once and only its digest is kept."""
    return PREFIX + secrets.token_urlsafe(ENTROPY)


def digest(secret: str) -> str:
    """What is stored of a secret and looked up: SHA-256, 64 hex digits."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
