"""What `korak dev` sets by itself, and the screen that says what there is."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from korak.client.finding import find_left
from korak.commands import publishing, syncing
from korak.commands.calling import Caller
from korak.commands.publishing import Published, Result
from korak.commands.screen import Screen
from korak.commands.syncing import Synced
from korak.config import Settings
from korak.dev import stack
from korak.graphs.document import TRIGGER
from korak.graphs.inputs import get_input_schema

SAMPLES: Mapping[str, Any] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}
"""Of each type of input a value to try."""


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
    chains: Sequence[str] = ()

    async def __call__(self, running: stack.Running) -> None:
        """Tell it, once."""
        found, synced = await asyncio.to_thread(self._publish, running)
        told = [(str(each.file), each) for each in found] + [(each.module, each) for each in synced]
        for place, each in told if self.screen.is_json else ():
            for line in publishing.draw_notes(each.reason, each.warnings):
                self.screen.tell(f"{place}: {line.plain.removeprefix('  ')}")
        answer = {"url": running.url, "token": running.token}
        self.screen.show(answer, lambda _: draw(running, found, synced))

    def _publish(self, running: stack.Running) -> tuple[list[Published], list[Synced]]:
        caller = Caller(running.url, running.token)
        found = [publishing.publish_file(caller, file) for file in publishing.list_graphs(*self.places)]
        return found, syncing.sync_chains(caller, syncing.load(self.chains), force=True)


def draw(running: stack.Running, found: Sequence[Published], synced: Sequence[Synced] = ()) -> RenderableType:
    """What there is, and what to do next."""
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    facts.add_row("API", Text(running.url, "bold"))
    facts.add_row("token", Text(running.token))
    kept = "Postgres of its own in" if running.is_embedded else "that of KORAK_DATABASE__URL; files in"
    facts.add_row("data", Text(f"{kept} {running.home.directory}"))
    for name, pid in running.pids.items():
        facts.add_row(Text(name), f"process {pid}")
    parts: list[RenderableType] = [
        Text(),
        Text.assemble(("● Korak is running", "bold green"), ("   Ctrl-C stops it", "dim")),
        Text(),
        Padding(facts, (0, 0, 0, 2)),
        Text(),
    ]
    drawn = [publishing.draw(list(found))] if found else []
    drawn += [syncing.draw(synced)] if synced else []
    if drawn:
        parts += [Padding(Group(*drawn), (0, 0, 0, 2)), Text()]
    parts += [Padding(_suggest(running, found, synced), (0, 0, 0, 2)), Text()]
    return Group(*parts)


def _suggest(running: stack.Running, found: Sequence[Published], synced: Sequence[Synced]) -> Text:
    """Commands that work right now, from a second terminal."""
    first = next((each for each in found if each.result is not Result.REFUSED), None)
    chain = next((each for each in synced if each.result is not Result.REFUSED), None)
    start = "publish my-graph.json" if chain is None else f"start {chain.key} --input '{{}}'"
    if first is not None:
        start = f"start {first.key} --input '{orjson.dumps(sample_input(first.file)).decode()}'"
    lines = [f"{get_command()} {rest}" for rest in (start, "list", "show INSTANCE", "--help")]
    if not is_found(running):
        said = {"URL": running.url, "TOKEN": running.token}
        lines = [*(f"export KORAK_CLIENT__{name}={value}" for name, value in said.items()), *lines]
    return Text("\n".join(["In another terminal:", *(f"  {line}" for line in lines)]), "dim")


def is_found(running: stack.Running) -> bool:
    """Whether commands in this directory find the API by what is kept, without being told where it is."""
    left = find_left("client.json")
    return (left.get("url"), left.get("token")) == (running.url, running.token)


def get_command() -> str:
    """How the command is called from a terminal in this directory: by its name where the shell finds it."""
    return "korak" if shutil.which("korak") else sys.argv[0]


def sample_input(file: Path) -> dict[str, Any]:
    """What the published graph in the file may be started with: its required inputs, by their examples or types."""
    document = orjson.loads(file.read_bytes())
    trigger = next(node for node in document["nodes"] if node["type"] == TRIGGER)
    schema: Mapping[str, Any] = get_input_schema(trigger.get("config") or {}) or {}
    members = schema.get("properties") or {}
    return {name: sample_value(members.get(name) or {}) for name in schema.get("required") or ()}


def sample_value(schema: Mapping[str, Any]) -> Any:
    """A value that is likely to fit."""
    for known in (schema.get("examples"), schema.get("enum")):
        if known:
            return known[0]
    kind = schema.get("type")
    return SAMPLES.get(kind if isinstance(kind, str) else "string", "...")
