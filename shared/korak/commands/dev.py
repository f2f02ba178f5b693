"""korak dev: everything on this machine."""

from __future__ import annotations

import asyncio
import shlex
import signal
from pathlib import Path
from typing import Annotated

import typer

from korak import logs
from korak.commands import running
from korak.commands.screen import get_screen
from korak.dev import home


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def dev(
        ctx: typer.Context,
        port: Annotated[int | None, typer.Option(help="The API's port; 0 takes a free one.", min=0, max=65_535)] = None,
        data: Annotated[Path, typer.Option(help="Where everything is kept; made where missing.")] = home.DEFAULT,
        token: Annotated[
            str | None, typer.Option(help="The administrator's token; else one is made and kept.", metavar="TOKEN")
        ] = None,
        steps: Annotated[
            str | None, typer.Option(help="Modules with step types, with commas between.", metavar="A.B")
        ] = None,
        chains: Annotated[
            str | None, typer.Option(help="Modules with chains to publish, with commas between.", metavar="A.B")
        ] = None,
        publish: Annotated[
            list[Path] | None, typer.Option(help="A directory of graphs to publish; may be repeated.", exists=True)
        ] = None,
        beside: Annotated[
            list[str] | None,
            typer.Option(
                "--with", help="A module to run beside Korak, with arguments; may be repeated.", metavar="MODULE"
            ),
        ] = None,
    ) -> None:
        """Run everything on this machine: Postgres, API, engine, waker, escalator."""
        from korak.commands import welcoming
        from korak.dev import stack

        screen = get_screen(ctx)
        settings = welcoming.choose(running.read_settings(steps, chains), is_json=screen.is_json)
        logs.configure(settings.logs)
        options = stack.Options(data, port, token, tuple(tuple(shlex.split(each)) for each in beside or ()))
        ready = welcoming.Welcome(screen, tuple(publish or ()), settings.chains)

        async def main(stop: asyncio.Event) -> None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, stop.set)
            await stack.run(stop, options, settings, ready)

        raise typer.Exit(running.run(main))
