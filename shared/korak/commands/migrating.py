"""korak migrate: the schema, and the role behind once()."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from korak.commands.connecting import read_database_settings
from korak.commands.screen import get_screen
from korak.errors import SettingsError


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def migrate(
        ctx: typer.Context,
        effect_role: Annotated[
            str | None,
            typer.Option(
                help="Make this role too, for once(): it may do nothing but what an effect needs.", metavar="ROLE"
            ),
        ] = None,
        effect_password: Annotated[
            str | None, typer.Option(help="Its password.", envvar="EFFECT_PASSWORD", metavar="PASSWORD")
        ] = None,
    ) -> None:
        """Bring the database to this build's schema."""
        import korak_migrations

        database = read_database_settings().database
        before = korak_migrations.current(database.url, database.schema)
        korak_migrations.upgrade(database.url, database.schema)
        after = korak_migrations.current(database.url, database.schema)
        wall = None
        if effect_role is not None:
            if not effect_password:
                raise SettingsError(message="Give the role's password in --effect-password or EFFECT_PASSWORD.")
            wall = korak_migrations.grant_effects(database.url, database.schema, effect_role, effect_password)
        told = {"schema": database.schema, "before": before, "after": after, "effect_url": wall}
        get_screen(ctx).show(told, lambda _: _draw(before, after, effect_role, wall))
        if effect_role is not None and wall is None:
            raise typer.Exit(1)


def _draw(before: str | None, after: str | None, role: str | None, wall: str | None) -> Text:
    text = Text(f"at revision {after}" if before == after else f"from {before or 'nothing'} to revision {after}")
    if role is not None and wall is not None:
        text.append(f"\n{role} may run effects: set KORAK_DATABASE__EFFECT_URL to the database's address as {role}")
    elif role is not None:
        text.append(f"\n{role} was not made: this login may make no roles or grants", "red")
    return text
