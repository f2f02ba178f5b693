"""The runs that the steps of a run have started, and those below them: each with how it stands and where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from korak.chains.nesting import PLACE
from korak.commands.fitting import Kept, Row
from korak.commands.glyphs import draw_glyph
from korak.commands.spans import get_between, read_time, show_span
from korak.commands.values import compact
from korak.commands.wording import list_own_waits


def get_own(instance: Mapping[str, Any], starters: Sequence[str]) -> list[Mapping[str, Any]]:
    """The children that a step has started; `starters` are its names to a child."""
    return [child for child in instance.get("children") or () if _get_starter(child) in starters]


def draw_children(
    instance: Mapping[str, Any], own: Sequence[Mapping[str, Any]], above: str, now: datetime, *, is_last: bool
) -> Iterator[Row]:
    """What a step has started, below the newest attempt of its visit; below the last such step the rest is counted."""
    indent = len(above) - len(above.lstrip()) + 2
    yield from _draw_level(instance, own, indent, now)
    if own and is_last:
        yield from _draw_rest(instance, indent)


def _get_starter(child: Mapping[str, Any]) -> str | None:
    told = (child.get("trigger") or {}).get("payload") or {}
    starter = told.get("execution") or told.get("node")
    return None if starter is None else str(starter)


def _draw_level(
    parent: Mapping[str, Any], children: Sequence[Mapping[str, Any]], indent: int, now: datetime
) -> Iterator[Row]:
    for child in children:
        yield _draw_child(child, parent, " " * indent, now)
        yield from _draw_level(child, child.get("children") or (), indent + 2, now)
        yield from _draw_rest(child, indent + 2)


def _draw_rest(parent: Mapping[str, Any], indent: int) -> Iterator[Row]:
    """The children of a run that are only counted, and how they are listed."""
    counts: Mapping[str, int] = parent.get("more_children") or {}
    if counts:
        count = Text(f"{' ' * indent}{sum(counts.values()):,} more", "dim")
        told = ", ".join(f"{count:,} {status}" for status, count in counts.items())
        yield Text(), count, Text(), Text(), Text(), Text(f"{told}  korak list --parent {parent['id']}", "dim")


def _draw_child(child: Mapping[str, Any], parent: Mapping[str, Any], indent: str, now: datetime) -> Row:
    """A run: its id, by which it is shown itself, how it stands, and what it was given that is its own."""
    took = get_between(child.get("created_at"), read_time(child.get("ended_at")) or now)
    own = _list_own(child, parent)
    return (
        draw_glyph(str(child.get("status"))),
        Text(f"{indent}{child['id']}"),
        Kept(str(child.get("definition")), "dim"),
        Text(),
        Text(show_span(took)),
        Text.assemble(f"{compact(own)}  " if own else "", *_list_parts(child, now)),
    )


def _list_parts(child: Mapping[str, Any], now: datetime) -> Iterator[str | tuple[str, str]]:
    failure = child.get("failure") or {}
    if failure:
        yield str(failure.get("code")), "red"
        yield f"  {failure.get('message') or ''}"
        return
    yield str(child.get("status")), "dim"
    for wait in list_own_waits(child, now):
        yield f" {wait}", "yellow"
        return


def _list_own(child: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    """What a run was given that isn't just as its parent has it, by which it is told from the others."""
    has = {**(parent.get("input") or {}), **(parent.get("state") or {})}
    given = child.get("input") or {}
    return {name: value for name, value in given.items() if name != PLACE and (name, value) not in has.items()}
