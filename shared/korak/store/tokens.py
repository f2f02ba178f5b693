"""Tokens as rows: made, looked up by digest, listed, revoked."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import asyncpg
import orjson
from ulid import ULID

from korak.model import OwnerRole
from korak.owners.tokens import Credential, Token
from korak.store.database import Connection

ROLES: Final = frozenset(role.value for role in OwnerRole)

_COLUMNS: Final = (
    "ulid, name, owner_type, owner_id, owner_scope, roles::text as roles, user_id, created_at, expires_at, revoked_at"
)

_CREATE: Final = f"""
insert into tokens (ulid, digest, name, owner_type, owner_id, owner_scope, roles, user_id, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8, $9, $10)
on conflict (digest) do nothing returning {_COLUMNS}
"""

_GET: Final = f"select {_COLUMNS} from tokens where digest = $1"

_LIST: Final = f"""
select {_COLUMNS} from tokens
where ($1::text is null or owner_scope = $1) and ($2::text is null or ulid > $2) order by ulid limit $3
"""

_REVOKE: Final = """
update tokens set revoked_at = $3 where ulid = $1 and ($2::text is null or owner_scope = $2) and revoked_at is null
"""


async def create(
    connection: Connection, digest: str, *, credential: Credential, now: datetime, expires_at: datetime | None = None
) -> Token | None:
    """Keep a token for the secret with that digest; None where that secret is known already, valid or not."""
    row = await connection.fetchrow(
        _CREATE,
        str(ULID.from_datetime(now)),
        digest,
        credential.name,
        credential.owner_type,
        credential.owner_id,
        credential.owner_scope,
        orjson.dumps(sorted(credential.roles)).decode(),
        credential.user,
        now,
        expires_at,
    )
    return _token(row) if row else None


async def get_by_digest(connection: Connection, digest: str, *, now: datetime) -> Credential | None:
    """Who presents the secret with that digest; None where it is unknown, revoked or past its time."""
    row = await connection.fetchrow(_GET, digest)
    token = _token(row) if row else None
    return token.credential if token and token.is_valid(now) else None


async def list_tokens(
    connection: Connection, owner_scope: str | None, *, after: str | None = None, limit: int = 50
) -> list[Token]:
    """An owner's tokens, everybody's where it is None, from the id `after` on, oldest first; revoked ones too."""
    rows = await connection.fetch(_LIST, owner_scope, after, limit)
    return [_token(row) for row in rows]


async def revoke(connection: Connection, token_id: str, *, owner_scope: str | None, now: datetime) -> bool:
    """End a token of that owner, of any where it is None. False where there is none that is still standing."""
    status = await connection.execute(_REVOKE, token_id, owner_scope, now)
    return bool(status == "UPDATE 1")


def _token(row: asyncpg.Record) -> Token:
    # A role that this build doesn't know grants nothing.
    known = frozenset(OwnerRole(name) for name in orjson.loads(row["roles"]) if name in ROLES)
    credential = Credential(
        owner_scope=row["owner_scope"],
        owner_type=row["owner_type"],
        owner_id=row["owner_id"],
        roles=known,
        user=row["user_id"],
        name=row["name"],
    )
    return Token(row["ulid"], credential, row["created_at"], row["expires_at"], row["revoked_at"])
