"""korak api, engine, waker, escalator: one service each."""

from __future__ import annotations

from typing import Annotated

import typer

from korak.commands import running

Steps = Annotated[
    str | None,
    typer.Option(help="Modules with step types, with commas between; goes before KORAK_STEPS.", metavar="A.B"),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""

    @app.command()
    def api(steps: Steps = None) -> None:
        """Answer HTTP."""
        raise typer.Exit(running.run_service("api", steps))

    @app.command()
    def engine(steps: Steps = None) -> None:
        """Claim, run and record steps."""
        raise typer.Exit(running.run_service("engine", steps))

    @app.command()
    def waker(steps: Steps = None) -> None:
        """Wake what is due."""
        raise typer.Exit(running.run_service("waker", steps))

    @app.command()
    def escalator(steps: Steps = None) -> None:
        """Run what escalates."""
        raise typer.Exit(running.run_service("escalator", steps))
