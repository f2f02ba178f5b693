"""korak export, import: a whole instance as a document, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import orjson
import typer

from korak.commands.calling import open_caller
from korak.commands.instances import Instance, Owner, present
from korak.commands.reading import read_json
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
    """Write everything that is known of an instance as one document."""
    screen = get_screen(ctx)
    document = open_caller(owner).get(f"/v1/instances/{instance}/export")
    if output is None:
        screen.write_raw(orjson.dumps(document) + b"\n")
        return
    try:
        output.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n")
    except OSError as error:
        raise typer.BadParameter(f"{output} can't be written: {error.strerror}", param_hint="--output") from None
    screen.tell(f"{len(document['steps'])} attempts and {len(document['events'])} events are in {output}")


def bring(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="What korak export wrote; - for the standard input.", metavar="FILE")],
    owner: Owner = None,
) -> None:
    """Bring in an exported instance as a new one."""
    caller = open_caller(owner)
    document = read_json(f"@{file}", option="FILE")
    present(caller, caller.post("/v1/instances/import", document), get_screen(ctx))
