"""korak settings: every variable with what it means; docs/settings.md is made by it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic.dataclasses import is_pydantic_dataclass
from rich.table import Table
from rich.text import Text

from korak.commands.screen import get_screen
from korak.config import PREFIX, Settings

HEAD = """# Settings

Made by `korak settings --markdown`; a test compares the two.

Every setting is a variable of the environment, `KORAK_<GROUP>__<NAME>`, read once at the start. A duration is seconds
or ISO 8601 (`90`, `PT1M30S`); a list has commas between. A variable that begins with `KORAK_` and isn't here, or whose
value is wrong, stops the start with its name, what was given and what is meant. `KORAK_TEST_*` belongs to the tests.

`korak dev` differs in two: without `KORAK_DATABASE__URL` it runs a Postgres of its own, and `KORAK_RETRY__BACKOFF` is
`1,2,5`.
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def settings(
        ctx: typer.Context,
        markdown: Annotated[bool, typer.Option("--markdown", help="As a page of the documentation.")] = False,
    ) -> None:
        """List the settings with their defaults."""
        if markdown:
            typer.echo(write_page(), nl=False)
            return
        told = [{"name": name, "default": default, "meaning": meaning} for _, name, default, meaning in list_settings()]
        get_screen(ctx).show(told, _draw)


def list_settings() -> Iterator[tuple[str, str, str, str]]:
    """Of every setting the description of its group, its variable, its default and its meaning."""
    for name, field in Settings.model_fields.items():
        group, default = field.annotation, field.default
        if isinstance(group, type) and is_pydantic_dataclass(group):
            about = (group.__doc__ or "").strip().splitlines()[0]
            for member, inner in group.__pydantic_fields__.items():
                shown = write_default(getattr(default, member))
                yield about, f"{PREFIX}{name}__{member}".upper(), shown, inner.description or ""
        else:
            yield "Step code.", f"{PREFIX}{name}".upper(), write_default(default), field.description or ""


def write_default(value: Any) -> str:
    """A default as it would be set; empty where there is none."""
    match value:
        case None | ():
            return ""
        case tuple():
            return ",".join(map(write_default, value))
        case timedelta():
            return _write_span(value)
        case float():
            return f"{value:g}"
        case Path() | str() | int():
            return str(value)
        case _:
            raise TypeError(f"a default of type {type(value).__name__}")


def write_page() -> str:
    """The page of the documentation."""
    lines = [HEAD]
    current = None
    for about, name, default, meaning in list_settings():
        if about != current:
            lines += [f"## {about.rstrip('.')}\n", "| Variable | Default | Meaning |\n| --- | --- | --- |"]
            current = about
        lines.append(f"| `{name}` | {f'`{default}`' if default else ''} | {meaning} |")
    page = "\n".join(lines)
    return page.replace("|\n## ", "|\n\n## ") + "\n"


def _write_span(span: timedelta) -> str:
    days, rest = divmod(int(span.total_seconds()), 86_400)
    hours, rest = divmod(rest, 3_600)
    clock = "".join(f"{count}{unit}" for count, unit in ((hours, "H"), (rest // 60, "M"), (rest % 60, "S")) if count)
    return f"P{f'{days}D' if days else ''}{f'T{clock}' if clock else ''}" if days or clock else "PT0S"


def _draw(told: list[dict[str, str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("variable", "default", "meaning"):
        table.add_column(column, no_wrap=column == "variable")
    for each in told:
        table.add_row(each["name"], Text(each["default"], "cyan"), each["meaning"])
    return table
