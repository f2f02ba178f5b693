"""korak tail, chunks, artifacts: an instance followed live, what its steps stream, what it keeps."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from korak.clock import Clock
from korak.commands.calling import Caller, open_caller
from korak.commands.gathering import PAGE
from korak.commands.instances import Instance, Owner
from korak.commands.screen import Screen, get_screen
from korak.commands.spans import show_span
from korak.model import ArtifactKind, InstanceStatus

LONGEST = 120
"""Characters of a line's data."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (tail, chunks, artifacts):
        app.command()(command)


def tail(
    ctx: typer.Context,
    instance: Instance,
    after: Annotated[int, typer.Option(help="Only history behind this number.", min=0)] = 0,
    owner: Owner = None,
) -> None:
    """Follow an instance until it has ended and cleaned up: its history, and what its steps stream; exit with 1 unless
    it completes.
    """
    caller, screen = open_caller(owner), get_screen(ctx)
    teller = Teller(screen)
    status: str | None = None
    for name, data in caller.follow(f"/v1/instances/{instance}/stream", after):
        if name == "end":
            status = data["status"]
        teller.tell(name, data)
    if status != InstanceStatus.COMPLETED:
        raise typer.Exit(1)


class Teller:
    """Writes what a stream tells: chunks as one text, a line for everything else, and nothing twice."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._seen: dict[str, int] = {}
        self._node: str | None = None
        self._is_inside = False

    def tell(self, name: str, data: Mapping[str, Any]) -> None:
        """One event."""
        if name == "chunk" and data["index"] <= self._seen.get(data["execution"], -1):
            return
        if name == "chunk":
            self._seen[data["execution"]] = data["index"]
        if self._screen.is_json:
            self._screen.show({"event": name, **data})
        elif name == "chunk":
            self._tell_chunk(data)
        else:
            self._break()
            self._screen.show(data, draw_end if name == "end" else draw_event)

    def _tell_chunk(self, chunk: Mapping[str, Any]) -> None:
        if self._node != chunk["execution"]:
            self._break()
            self._node = chunk["execution"]
            self._screen.write(f"{chunk['node']}: ")
        self._screen.write(chunk["content"])
        self._is_inside = True

    def _break(self) -> None:
        if self._is_inside:
            self._screen.write("\n")
        self._node, self._is_inside = None, False


def draw_event(event: Mapping[str, Any]) -> RenderableType:
    """A line of history."""
    data = orjson.dumps(event["data"]).decode() if event["data"] else ""
    return Text.assemble(
        (f"{event['at'][11:19]} ", "dim"),
        (f"{event['seq']:>4} ", "dim"),
        (str(event["type"]), "bold"),
        f"  {event['node'] or ''}  ",
        (data if len(data) <= LONGEST else f"{data[: LONGEST - 1]}…", "dim"),
    )


def draw_end(end: Mapping[str, Any]) -> RenderableType:
    """How it ended."""
    is_good = end["status"] == InstanceStatus.COMPLETED
    return Text(str(end["status"]), "bold green" if is_good else "bold red")


def chunks(
    ctx: typer.Context,
    instance: Instance,
    step: Annotated[str | None, typer.Option(help="Only of this node.", metavar="NODE")] = None,
    owner: Owner = None,
) -> None:
    """Show what steps have streamed whose output isn't recorded yet."""
    found = list_all(open_caller(owner), f"/v1/instances/{instance}/chunks", step=step)
    get_screen(ctx).show({"items": found}, lambda told: draw_chunks(told["items"]))


def draw_chunks(items: Iterable[Mapping[str, Any]]) -> RenderableType:
    """The text of each visit."""
    parts: list[RenderableType] = []
    for (node, visit, _), found in groupby(items, lambda each: (each["node"], each["visit"], each["execution"])):
        listed = list(found)
        attempts = sorted({each["attempt"] for each in listed})
        tried = f", attempts {', '.join(map(str, attempts))}" if len(attempts) > 1 else ""
        parts.append(Text.assemble((f"{node} #{visit}", "bold"), (f"  {len(listed)} chunks{tried}", "dim")))
        parts.append(Text("".join(each["content"] for each in listed)))
    return Group(*parts) if parts else Text("Nothing is being streamed.", "dim")


def artifacts(
    ctx: typer.Context,
    instance: Instance,
    key: Annotated[str | None, typer.Argument(help="The key of the one to read.", metavar="KEY")] = None,
    output: Annotated[Path | None, typer.Option(help="Write what it holds to this file.", metavar="FILE")] = None,
    owner: Owner = None,
) -> None:
    """List what an instance keeps beside its state, or read one of it."""
    caller, screen = open_caller(owner), get_screen(ctx)
    if key is None:
        found = list_all(caller, f"/v1/instances/{instance}/artifacts")
        screen.show({"items": found}, lambda told: draw_artifacts(told["items"]))
        return
    artifact = caller.get(f"/v1/instances/{instance}/artifacts/{key}")
    if output is not None:
        output.write_bytes(get_content(artifact))
        screen.tell(f"{artifact['size']} bytes in {output}")
    elif screen.is_json:
        screen.show(artifact)
    elif artifact["kind"] == ArtifactKind.JSON:
        screen.show(artifact["content"])
    else:
        screen.write_raw(get_content(artifact))


def get_content(artifact: Mapping[str, Any]) -> bytes:
    """What an artifact holds, as it was given."""
    match artifact["kind"]:
        case ArtifactKind.BYTES:
            return base64.b64decode(artifact["content"])
        case ArtifactKind.TEXT:
            return str(artifact["content"]).encode()
        case _:
            return orjson.dumps(artifact["content"])


def draw_artifacts(items: Iterable[Mapping[str, Any]]) -> RenderableType:
    """A line an artifact."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for name in ("key", "kind", "bytes", "from", "age"):
        table.add_column(name)
    now = Clock().now()
    for item in items:
        source = "outside" if item["node"] is None else f"{item['node']} #{item['visit']}"
        age = show_span(now - datetime.fromisoformat(item["updated_at"]))
        table.add_row(Text(item["key"], "bold"), item["kind"], str(item["size"]), source, age)
    return table if table.row_count else Text("It keeps no artifacts.", "dim")


def list_all(caller: Caller, path: str, **params: Any) -> list[dict[str, Any]]:
    """Every item of a list, page by page."""
    items: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = caller.get(path, limit=PAGE, cursor=cursor, **params)
        items += page["items"]
        cursor = page.get("next")
        if cursor is None:
            return items
