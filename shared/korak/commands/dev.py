"""korak dev: everything on this machine, and a screen that says what there is."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from korak import logs
from korak.commands import publishing, running
from korak.commands.calling import Caller
from korak.commands.publishing import Published, Result
from korak.commands.screen import Screen, get_screen
from korak.config import Settings
from korak.dev import home, stack


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(rich_help_panel="Services")
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
        screen = get_screen(ctx)
        settings = choose(running.read_settings(steps), is_json=screen.is_json)
        logs.configure(settings.logs)
        options = stack.Options(data, port, token, tuple(tuple(shlex.split(each)) for each in beside or ()))
        ready = Welcome(screen, tuple(publish or ()))

        async def main(stop: asyncio.Event) -> None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, stop.set)
            await stack.run(stop, options, settings, ready)

        raise typer.Exit(running.run(main))


def choose(settings: Settings, *, is_json: bool) -> Settings:
    """What a developer wants where nothing is set: short pauses between attempts, logs that a person reads."""
    retry, log = settings.retry, settings.logs
    if not os.environ.get("KORAK_RETRY__BACKOFF"):
        retry = replace(retry, backoff=stack.BACKOFF)
    if not is_json and not os.environ.get("KORAK_LOGS__FORMAT"):
        log = replace(log, format="console")
    if not is_json and not os.environ.get("KORAK_LOGS__LEVEL"):
        log = replace(log, level="warning")
    return settings.model_copy(update={"retry": retry, "logs": log})


@dataclass(frozen=True, slots=True)
class Welcome:
    """Publishes what was asked for, then says that everything is ready."""

    screen: Screen
    places: Sequence[Path]

    async def __call__(self, running: stack.Running) -> None:
        """Tell it, once."""
        found = await asyncio.to_thread(self._publish, running)
        for each in found if self.screen.is_json else ():
            for line in each.lines:
                self.screen.tell(f"{each.file}: {line}")
        answer = {"url": running.url, "token": running.token}
        self.screen.show(answer, lambda _: draw(running, found))

    def _publish(self, running: stack.Running) -> list[Published]:
        caller = Caller(running.url, running.token)
        return [publishing.publish_file(caller, file) for file in publishing.list_graphs(*self.places)]


def draw(running: stack.Running, found: Sequence[Published]) -> RenderableType:
    """What there is, and what to do next."""
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts.add_row("API", Text(running.url, "bold"))
    facts.add_row("token", running.token)
    kept = "Postgres of its own in" if running.is_embedded else "that of KORAK_DATABASE__URL; files in"
    facts.add_row("data", f"{kept} {running.home.directory}")
    for name, pid in running.pids.items():
        facts.add_row(name, f"process {pid}")
    parts: list[RenderableType] = [
        Text(),
        Text.assemble(("● Korak is running", "bold green"), ("   Ctrl-C stops it", "dim")),
        Text(),
        Padding(facts, (0, 0, 0, 2)),
        Text(),
    ]
    if found:
        parts += [Padding(publishing.draw(list(found)), (0, 0, 0, 2)), Text()]
    parts += [Padding(_suggest(found), (0, 0, 0, 2)), Text()]
    return Group(*parts)


def _suggest(found: Sequence[Published]) -> Text:
    """Commands that work right now, from a second terminal."""
    key = next((each.key for each in found if each.result is not Result.REFUSED), None)
    first = ["korak publish my-graph.json"] if key is None else [f"korak start {key} --input '{{...}}'"]
    lines = [*first, "korak list", "korak show INSTANCE", "korak --help"]
    return Text("\n".join(["In another terminal:", *(f"  {line}" for line in lines)]), "dim")
