"""korak wake: one wake pass by hand."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, is_dataclass
from typing import Any

import typer
from rich.text import Text

from korak import logs
from korak.commands.connecting import read_database_settings
from korak.commands.screen import get_screen
from korak.config import Settings
from korak.service import get_pass


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def wake(ctx: typer.Context) -> None:
        """Wake what is due, once, and take over what lost engines hold."""
        settings = read_database_settings()
        logs.configure(settings.logs)
        report = asyncio.run(_pass(settings))
        counts: dict[str, Any] = asdict(report) if is_dataclass(report) and not isinstance(report, type) else {}
        get_screen(ctx).show(counts, lambda _: Text(str(report)))
        if counts.get("errors"):
            raise typer.Exit(1)


async def _pass(settings: Settings) -> object:
    from korak import surveying
    from korak.store.database import Database

    group = settings.database
    async with Database(group.require_url(), group.schema, pool=1, name="korak wake") as database:
        await surveying.require(database)
    return await get_pass("waker")(settings)
