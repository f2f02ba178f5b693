"""The routes of tokens: made and ended by an admin, for the owner that the request is about."""

from __future__ import annotations

from typing import Any, Final, cast

from korak.errors import NotFound
from korak.model import OwnerRole
from korak.owners.roles import Verb, parse_roles
from korak.owners.tokens import Credential, create_secret, digest
from korak.store import tokens
from korak_api.operations import Answer, Body, Call, Operation
from korak_api.parameters import PAGE, make_page, read_page
from korak_api.rendering import show_token

TOKEN: Final = Body(
    {
        "name": {"type": "string", "minLength": 1, "maxLength": 100},
        "roles": {"type": "array", "items": {"enum": [role.value for role in OwnerRole]}, "minItems": 1},
        "user": {"type": "string", "minLength": 1, "maxLength": 191},
        "expires_at": {"type": "string", "format": "date-time"},
    },
    ("name", "roles"),
)


async def create(call: Call) -> Answer:
    """POST /v1/tokens."""
    body = cast("dict[str, Any]", call.body)
    secret = create_secret()
    credential = Credential.for_owner(
        call.reach.owner, parse_roles(body["roles"]), user=body.get("user"), name=body["name"]
    )
    expires_at = call.get_later("expires_at")
    async with call.resources.database.transaction() as connection:
        made = await tokens.create(
            connection, digest(secret), credential=credential, now=call.now, expires_at=expires_at
        )
    if made is None:
        raise RuntimeError("a new secret is known already")
    # The secret isn't kept: a repeat under the same key shows the token without it.
    return Answer(show_token(made, secret=secret), 201, kept=show_token(made))


async def list_tokens(call: Call) -> Answer:
    """GET /v1/tokens."""
    page = read_page(call.query, (str,), most=call.resources.settings.api.max_page)
    after = page.after[0] if page.after else None
    async with call.resources.database.acquire() as connection:
        rows = await tokens.list_tokens(connection, call.scope_or_all, after=after, limit=page.asked)
    return Answer(make_page(page, rows, [show_token(row) for row in rows], lambda row: (row.id,)))


async def revoke(call: Call) -> Answer:
    """DELETE /v1/tokens/{id}."""
    token_id = call.path["id"]
    async with call.resources.database.transaction() as connection:
        is_ended = await tokens.revoke(connection, token_id, owner_scope=call.scope_or_all, now=call.now)
    if not is_ended:
        raise NotFound("not_found", what="token", key=token_id)
    call.resources.credentials.forget()
    return Answer(status=204)


MANAGE: Final = Verb.TOKENS_MANAGE

OPERATIONS: Final = (
    Operation("GET", "/v1/tokens", list_tokens, "List tokens, the oldest first.", MANAGE, "TokenPage", query=PAGE),
    Operation(
        "POST",
        "/v1/tokens",
        create,
        "Make a token; its secret is shown once.",
        MANAGE,
        "NewToken",
        (201,),
        body=TOKEN,
        is_kept=True,
    ),
    Operation("DELETE", "/v1/tokens/{id}", revoke, "End a token.", MANAGE, None, (204,), (404,)),
)
