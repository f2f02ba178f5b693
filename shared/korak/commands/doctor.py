"""korak doctor: whether everything that Korak needs is there and well, and which instances are stuck."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import typer

from korak.commands.connecting import read_database_settings
from korak.commands.screen import get_screen


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def doctor(ctx: typer.Context) -> None:
        """Check database, migrations, broker and the wall around effects; list what is stuck."""
        from korak.commands import examining

        findings = asyncio.run(examining.examine(read_database_settings()))
        told = [asdict(finding) for finding in findings]
        get_screen(ctx).show(told, lambda _: examining.draw(findings))
        if examining.is_wrong(findings):
            raise typer.Exit(1)
