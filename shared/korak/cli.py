"""The command `korak`: reads the command line, hands over to a module of `korak.commands`, tells errors in one line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib import metadata
from typing import Annotated, Final, cast

import orjson
import typer

from korak import commands
from korak.commands import panels
from korak.commands.calling import Refusal
from korak.commands.screen import Screen, defuse
from korak.errors import KorakError, MissingModule, Problem, SettingsError

UsageError: Final = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])
"""What the command line raises where it can't be read; Typer doesn't name it."""

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
    is_json = "--json" in given
    try:
        code = build()(hoist(given, "--json"), prog_name="korak", standalone_mode=not is_json)
    except UsageError as error:
        tell(KorakError("invalid_usage", error.format_message()), is_json=is_json)
        sys.exit(MISCONFIGURED)
    except (SettingsError, MissingModule) as error:
        tell(error, is_json=is_json, has_code=False)
        sys.exit(MISCONFIGURED)
    except KorakError as error:
        tell(error, is_json=is_json)
        sys.exit(REFUSED)
    sys.exit(code if isinstance(code, int) else 0)


def tell(error: KorakError, *, is_json: bool, has_code: bool = True) -> None:
    """Write what went wrong: under --json as a problem, what the API refused as it came; else a line for each thing."""
    match error:
        case Refusal():
            body, lines = error.body, error.lines
        case _:
            issues = error.issues if isinstance(error, Problem) else ()
            body = {"code": error.code, "detail": error.message, "errors": [issue.to_json() for issue in issues]}
            lines = [f"{error.message} ({error.code})" if has_code else error.message]
    shown = [orjson.dumps(body).decode()] if is_json else map(defuse, lines)
    sys.stderr.write("".join(f"{line}\n" for line in shown))


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
