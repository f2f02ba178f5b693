"""korak publish: graphs from files into the API, each once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import orjson
import typer
from rich.console import Group, RenderableType
from rich.text import Text

from korak.chains import Chain
from korak.commands.calling import Caller, Refusal, describe, open_caller, refusing
from korak.commands.reasons import Reason
from korak.commands.screen import get_screen
from korak.graphs.document import SCHEMA
from korak.model import VersionStatus

Warnings: TypeAlias = Sequence[Mapping[str, Any]]
"""What is odd about a graph, as the API answers it."""


class Result(StrEnum):
    """What publishing a file came to."""

    PUBLISHED = "published"
    UNCHANGED = "unchanged"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Published:
    """One file, the definition in it, what became of it, why it was refused, and what is odd about it."""

    file: Path
    result: Result
    key: str = ""
    version: int | None = None
    reason: Reason | None = None
    warnings: Warnings = ()

    def to_json(self) -> dict[str, Any]:
        """As the command answers it under --json."""
        told = {"file": str(self.file), "key": self.key, "version": self.version, "result": self.result.value}
        return {**told, **show_notes(self.reason, self.warnings)}


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def publish(
        ctx: typer.Context,
        files: Annotated[list[Path], typer.Argument(help="Graph documents, or directories of them.", exists=True)],
        owner: Annotated[str | None, typer.Option(help="Whose they are, as type:id.")] = None,
    ) -> None:
        """Publish graphs; one that is published as it stands is left alone."""
        caller = open_caller(owner)
        found = [publish_file(caller, file) for file in list_graphs(*files)]
        get_screen(ctx).show([each.to_json() for each in found], lambda _: draw(found))
        if not found or any(each.result is Result.REFUSED for each in found):
            raise typer.Exit(1)


def list_graphs(*places: Path) -> Iterator[Path]:
    """The files that are named, and in the directories that are named every JSON file that says it is a graph."""
    for place in places:
        if place.is_file():
            yield place
        else:
            files = sorted(file for file in place.rglob("*.json") if not _is_hidden(file.relative_to(place)))
            yield from (file for file in files if _is_graph(file))


def publish_file(caller: Caller, file: Path) -> Published:
    """Publish the graph in the file, unless its definition's published version is the same."""
    try:
        document = orjson.loads(file.read_bytes())
    except OSError as error:
        return Published(file, Result.REFUSED, reason=Reason.of("unreadable", f"It can't be read: {error.strerror}"))
    except orjson.JSONDecodeError as error:
        return Published(file, Result.REFUSED, reason=Reason.of("invalid_json", f"This isn't JSON: {error}"))
    key = document.get("key") if isinstance(document, dict) else None
    if not isinstance(key, str):
        reason = Reason.of("invalid_document", "This is no graph: it has no key.", "/key")
        return Published(file, Result.REFUSED, reason=reason)
    try:
        return publish_document(caller, file, document)
    except Refusal as refusal:
        return Published(file, Result.REFUSED, key, reason=Reason.from_refusal(refusal))


def publish_document(caller: Caller, file: Path, document: dict[str, Any]) -> Published:
    """The same for a document. Raises Refusal."""
    result, version, warnings = put_graph(caller, document)
    return Published(file, result, document["key"], version, warnings=warnings)


def put_graph(
    caller: Caller, graph: Chain | Mapping[str, Any], *, only_newer: bool = False
) -> tuple[Result, int, Warnings]:
    """Make a graph the current version, its number, and what is odd about it.

    Raises Refusal; one for an older version where asked so.
    """
    with refusing():
        version = caller.korak.publish(graph, current=False)
        if version["status"] == VersionStatus.PUBLISHED:
            return Result.UNCHANGED, version["number"], version.get("warnings", ())
        version = caller.korak.publish(graph, only_newer=only_newer)
    return Result.PUBLISHED, version["number"], version.get("warnings", ())


def draw(found: list[Published]) -> RenderableType:
    """A line a file, and below it why it was refused."""
    if not found:
        return Text("There is no graph here.", "yellow")
    return Group(*(line for each in found for line in _draw(each)))


def draw_result(key: str, version: int | None, result: Result, where: object) -> Text:
    """A line on what became of a definition."""
    glyph, style = {"published": ("●", "green"), "unchanged": ("○", "dim"), "refused": ("✗", "red")}[result]
    number = f" version {version}" if version else ""
    return Text.assemble((glyph, style), f" {key}{number} ", (f"{result} · {where}", "dim"))


def draw_notes(reason: Reason | None, warnings: Warnings) -> list[Text]:
    """Below it why it was refused, and what is odd about it."""
    lines = () if reason is None else reason.lines
    return [
        *(Text(f"  {line}", "red") for line in lines),
        *(Text(describe(each), "yellow") for each in warnings),
    ]


def show_notes(reason: Reason | None, warnings: Warnings) -> dict[str, Any]:
    """The same as fields; none where there is nothing to say."""
    told: dict[str, Any] = {} if reason is None else {"problems": list(reason.problems)}
    return {**told, "warnings": list(warnings)} if warnings else told


def _draw(each: Published) -> list[Text]:
    head = draw_result(each.key or str(each.file), each.version, each.result, each.file)
    return [head, *draw_notes(each.reason, each.warnings)]


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") or part in {"node_modules", "__pycache__"} for part in file.parts)


def _is_graph(file: Path) -> bool:
    try:
        raw = file.read_bytes()
        document = orjson.loads(raw)
    except OSError:
        return False
    except orjson.JSONDecodeError:
        return SCHEMA.encode() in raw  # a graph with a slip in it is told, a file of another kind is none of ours
    return isinstance(document, dict) and document.get("schema") == SCHEMA
