"""korak token: made, listed, revoked, in the database."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from korak.clock import Clock
from korak.commands.connecting import read_database_settings, with_database
from korak.commands.screen import get_screen
from korak.errors import NotFound
from korak.model import APP_WIDE, OwnerRole
from korak.owners.roles import parse_roles
from korak.owners.scopes import parse_owner
from korak.owners.tokens import Credential, Token, create_secret, digest
from korak.parsing import parse_interval

if TYPE_CHECKING:
    from korak.store.database import Database

ROLES = ", ".join(OwnerRole)
PAGE = 500


def register(app: typer.Typer) -> None:
    """Add the command and its three verbs."""
    token = typer.Typer(help="Make, list and revoke tokens.", no_args_is_help=True)
    token.command("create")(create)
    token.command("list")(list_tokens)
    token.command("revoke")(revoke)
    app.add_typer(token, name="token")


def create(
    ctx: typer.Context,
    role: Annotated[list[str], typer.Option(help=f"What it may do: {ROLES}; may be repeated.", metavar="ROLE")],
    owner: Annotated[str, typer.Option(help="Whose it is, as type:id; * for the application.")] = APP_WIDE,
    user: Annotated[str | None, typer.Option(help="The user who acts with it.")] = None,
    name: Annotated[str, typer.Option(help="What it is for.")] = "",
    expires: Annotated[
        str | None, typer.Option(help="How long it is good for: seconds, or P30D.", metavar="DURATION")
    ] = None,
) -> None:
    """Make a token. Its secret is shown this once."""
    credential = Credential.for_owner(parse_owner(owner), parse_roles(role), user=user, name=name)
    secret, now = create_secret(), Clock().now()
    lifetime = _read_lifetime(expires)

    from korak.store import tokens

    async def work(database: Database) -> Token | None:
        until = None if lifetime is None else now + lifetime
        async with database.transaction() as connection:
            return await tokens.create(connection, digest(secret), credential=credential, now=now, expires_at=until)

    made = with_database(read_database_settings(), work)
    assert made is not None, "a secret of 32 random bytes is new"
    get_screen(ctx).show({**_tell(made), "token": secret}, lambda told: Text(told["token"], overflow="ignore"))


def list_tokens(
    ctx: typer.Context, owner: Annotated[str | None, typer.Option(help="Only this owner's, as type:id.")] = None
) -> None:
    """List tokens, the oldest first."""
    scope = None if owner is None else parse_owner(owner).scope

    from korak.store import tokens

    async def work(database: Database) -> list[Token]:
        async with database.acquire() as connection:
            return await tokens.list_tokens(connection, scope, limit=PAGE)

    found = with_database(read_database_settings(), work)
    get_screen(ctx).show([_tell(each) for each in found], _draw)


def revoke(ctx: typer.Context, token: Annotated[str, typer.Argument(help="The token's id.", metavar="TOKEN")]) -> None:
    """End a token."""
    from korak.store import tokens

    async def work(database: Database) -> bool:
        async with database.transaction() as connection:
            return await tokens.revoke(connection, token, owner_scope=None, now=Clock().now())

    if not with_database(read_database_settings(), work):
        raise NotFound("not_found", what="token", key=token)
    get_screen(ctx).show({"id": token, "revoked": True}, lambda _: "revoked")


def _read_lifetime(text: str | None) -> timedelta | None:
    try:
        return None if text is None else parse_interval(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--expires") from None


def _tell(token: Token) -> dict[str, Any]:
    credential = token.credential
    return {
        "id": token.id,
        "name": credential.name,
        "owner": credential.owner_scope,
        "roles": sorted(credential.roles),
        "user": credential.user,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
    }


def _draw(found: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("token", "name", "owner", "roles", "user", "state"):
        table.add_column(column, no_wrap=column == "token")
    for each in found:
        state = (
            "revoked" if each["revoked_at"] else f"until {each['expires_at']:%Y-%m-%d}" if each["expires_at"] else ""
        )
        cells = (each["id"], each["name"], each["owner"], ", ".join(each["roles"]), each["user"] or "", state)
        table.add_row(*map(Text, cells), style="dim" if each["revoked_at"] else None)
    return table
