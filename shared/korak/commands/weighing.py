"""korak weight: which share of the engines an owner has where many wait for them."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import typer

from korak.commands.calling import open_caller
from korak.commands.screen import get_screen


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(weight)


def weight(
    ctx: typer.Context,
    owner: Annotated[str, typer.Argument(help="The owner, as type:id; * for the application.", metavar="OWNER")],
    to: Annotated[
        int | None,
        typer.Argument(help="How many, 1 to 1000; without it, tell.", metavar="N"),
    ] = None,
) -> None:
    """Tell or set how many steps an owner has in each turn, where many wait for the same engines."""
    caller = open_caller()
    path = f"/v1/owners/{quote(owner, safe='*:')}/weight"
    answer = caller.get(path) if to is None else caller.put(path, {"weight": to})
    get_screen(ctx).show(answer, _draw)


def _draw(told: dict[str, Any]) -> str:
    return f"{told['owner'] or 'the application'} has {told['weight']} in each turn"
