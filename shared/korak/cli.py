"""The command `korak`: reads the command line, hands over to a module of `korak.commands`, tells errors in one line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated

import orjson
import typer

from korak import commands
from korak.commands import panels
from korak.commands.calling import Refusal
from korak.commands.screen import Screen, defuse
from korak.errors import KorakError, MissingModule, SettingsError

MISCONFIGURED = 2
REFUSED = 1


def build() -> typer.Typer:
    """The whole command line, with what the modules of `korak.commands` register."""
    app = typer.Typer(
        name="korak", cls=panels.Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )

    @app.callback()
    def korak(
        ctx: typer.Context,
        as_json: Annotated[
            bool, typer.Option("--json", help="Answer in one line of JSON (anywhere on the line).")
        ] = False,
        version: Annotated[
            bool, typer.Option("--version", help="Tell the version.", is_eager=True, callback=tell_version)
        ] = False,
    ) -> None:
        """Korak, a durable workflow engine on Postgres."""
        ctx.obj = Screen(is_json=as_json)

    for module in commands.MODULES:
        importlib.import_module(f"{commands.__name__}.{module}").register(app)
    panels.arrange(app)
    return app


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code: 0 done, 1 refused or crashed, 2 wrongly called or set."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        build()(hoist(given, "--json"), prog_name="korak")
    except (SettingsError, MissingModule) as error:
        sys.stderr.write(f"{error.message}\n")
        sys.exit(MISCONFIGURED)
    except Refusal as refusal:
        tell_refusal(refusal, is_json="--json" in given)
        sys.exit(REFUSED)
    except KorakError as error:
        sys.stderr.write(f"{defuse(error.message)} ({error.code})\n")
        sys.exit(REFUSED)


def tell_refusal(refusal: Refusal, *, is_json: bool) -> None:
    """Write what the API refused: its problem as it came, or a line for each thing that is wrong."""
    lines = [orjson.dumps(refusal.body).decode()] if is_json else map(defuse, refusal.lines)
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def tell_version(is_asked: bool) -> None:
    """Write the version and end."""
    if is_asked:
        typer.echo(f"korak {metadata.version('korak')}")
        raise typer.Exit


def hoist(arguments: Sequence[str], flag: str) -> list[str]:
    """The arguments with the flag before the command, wherever it stood before a `--`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    head = [argument for argument in arguments[:end] if argument != flag]
    return [flag] * (len(head) < end) + head + list(arguments[end:])
