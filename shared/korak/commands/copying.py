"""korak export, import: a whole instance as lines of JSON, and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from korak.commands.calling import open_caller
from korak.commands.instances import Instance, Owner, present
from korak.commands.screen import get_screen


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(export)
    app.command("import")(bring)


def export(
    ctx: typer.Context,
    instance: Instance,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write, else the standard output.", dir_okay=False)
    ] = None,
    owner: Owner = None,
) -> None:
    """Write everything that is known of an instance, one JSON object a line."""
    screen = get_screen(ctx)
    pieces = open_caller(owner).download(f"/v1/instances/{instance}/export")
    if output is None:
        for piece in pieces:
            screen.write_raw(piece)
        return
    first, size = next(pieces, b""), 0
    try:
        with output.open("wb") as file:
            size += file.write(first)
            for piece in pieces:
                size += file.write(piece)
    except OSError as error:
        raise typer.BadParameter(f"{output} can't be written: {error.strerror}", param_hint="--output") from None
    screen.tell(f"{size:,} bytes are in {output}")


def bring(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="What korak export wrote; - for the standard input.", metavar="FILE")],
    owner: Owner = None,
) -> None:
    """Bring in an exported instance. It keeps its id where no instance there has it."""
    try:
        lines = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file} can't be read: {error.strerror}", param_hint="FILE") from None
    caller = open_caller(owner)
    present(caller, caller.upload("/v1/instances/import", lines), get_screen(ctx))
