"""What an instance waits for, and until when, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from rich.text import Text

from korak.commands.arranging import MOST
from korak.commands.spans import read_time, show_span
from korak.model import ParkedFor, WaitKind

PHRASES: Final[Mapping[str, str]] = {
    ParkedFor.LIMIT: "for room under the limit {names}",
    ParkedFor.HOLD: "until {names} is released",
    ParkedFor.PAUSE: "until it is resumed",
    ParkedFor.ENGINE: "for an engine that has its type",
    WaitKind.CHILD: "for the run {names}",
    WaitKind.WORKFLOWS: "for the runs {names}",
}
"""How the kinds are told whose names alone say too little; of `waiting_for`, as the API has them."""

RUNS: Final = frozenset({WaitKind.CHILD, WaitKind.WORKFLOWS})
NAMED: Final = 3
"""Runs that are named where many are waited for."""


def list_waits(instance: Mapping[str, Any], now: datetime, step: Mapping[str, Any] | None = None) -> Iterator[str]:
    """What an instance waits for, with the node of each; or what one of its steps does."""
    for wait in instance.get("waiting_for") or ():
        if step is not None and (wait.get("node"), wait.get("branch")) != (step["node"], step.get("branch")):
            continue
        path = f" [{wait['branch']}]" if wait.get("branch") else ""
        where = "" if step is not None or not wait.get("node") else f"at {wait['node']}{path} "
        yield f"{where}{_tell(wait)}{_tell_limit(wait, now)}"


def _tell_limit(wait: Mapping[str, Any], now: datetime) -> str:
    due, left = read_time(wait.get("due_at")), wait.get("remaining_seconds")
    if due is None:
        return "" if left is None else f", {_tell_left(left)}"
    return f", due in {show_span(due - now)}" if due > now else ", due now"


def _tell(wait: Mapping[str, Any]) -> str:
    kind = str(wait.get("kind"))
    names = [str(name) for name in wait.get("remaining") or wait.get("names") or ()]
    runs = wait.get("runs") or {}
    count = max(len(names), runs.get("total", 0) - runs.get("completed", 0) - runs.get("failed", 0))
    if kind in RUNS and count > NAMED:
        names = [*names[:NAMED], f"{count - NAMED:,} more"]
    told = (" or " if wait.get("mode") == "any" else ", ").join(names)
    told = told.replace("step_type ", "step type ") if kind in (ParkedFor.HOLD, ParkedFor.ENGINE) else told
    if kind == ParkedFor.ENGINE and told:
        return f"for an engine: none that lives serves {told}"
    if kind in PHRASES and (told or "{names}" not in PHRASES[kind]):
        why = f" ({wait['reason']})" if wait.get("reason") else ""
        return f"{PHRASES[kind].format(names=told)}{why}"
    return f"for {kind}{f' {told}' if told else ''}"


def list_own_waits(instance: Mapping[str, Any], now: datetime) -> Iterator[str]:
    """The same without other runs: those are shown themselves."""
    own = [wait for wait in instance.get("waiting_for") or () if wait.get("kind") not in RUNS]
    yield from list_waits({"waiting_for": own}, now)


def draw_waits(instance: Mapping[str, Any], now: datetime) -> Iterator[Text]:
    """What an instance waits for; what many items wait for isn't told for each."""
    lines = list(list_waits(instance, now))
    for line in lines[:MOST]:
        yield Text.assemble(("waits ", "yellow"), line)
    if len(lines) > MOST:
        yield Text(f"and waits {len(lines) - MOST:,} times more", "dim")


def draw_deadline(instance: Mapping[str, Any], now: datetime) -> Iterator[Text]:
    """When an open instance must have ended, or how much of that a pause has left."""
    due, left = read_time(instance.get("deadline_at")), instance.get("deadline_remaining_seconds")
    if instance.get("ended_at"):
        return
    if left is not None:
        yield Text.assemble(("deadline ", "yellow"), _tell_left(left))
    elif due is not None:
        yield Text.assemble(("deadline ", "yellow"), f"in {show_span(due - now)}" if due > now else "now")


def _tell_left(seconds: float) -> str:
    """What a pause has left of a time."""
    return f"{show_span(timedelta(seconds=seconds)) or 'nothing'} left when it is resumed"
