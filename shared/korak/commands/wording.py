"""What an instance waits for, and what a person may do about it, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from rich.text import Text

from korak.commands.arranging import MOST
from korak.commands.spans import read_time, show_span
from korak.model import InstanceStatus, ParkedFor, WaitKind

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

ANSWERS: Final[Mapping[str, str]] = {
    "approval": "korak approve {id} answers it",
    "decision": "korak approve {id} or korak reject {id} answers it",
    "input": "korak input {id} --data JSON answers it",
}


def list_waits(instance: Mapping[str, Any], now: datetime, step: Mapping[str, Any] | None = None) -> Iterator[str]:
    """What an instance waits for, with the node of each; or what one of its steps does."""
    for wait in instance.get("waiting_for") or ():
        if step is not None and (wait.get("node"), wait.get("branch")) != (step["node"], step.get("branch")):
            continue
        due = read_time(wait.get("due_at"))
        limit = f", due in {show_span(due - now)}" if due and due > now else ", due now" if due else ""
        path = f" [{wait['branch']}]" if wait.get("branch") else ""
        where = "" if step is not None or not wait.get("node") else f"at {wait['node']}{path} "
        yield f"{where}{_tell(wait)}{limit}"


def _tell(wait: Mapping[str, Any]) -> str:
    kind = str(wait.get("kind"))
    names = [str(name) for name in wait.get("remaining") or wait.get("names") or ()]
    if kind in RUNS and len(names) > NAMED:
        names = [*names[:NAMED], f"{len(names) - NAMED:,} more"]
    told = (" or " if wait.get("mode") == "any" else ", ").join(names)
    if kind in PHRASES and (told or "{names}" not in PHRASES[kind]):
        return PHRASES[kind].format(names=told.replace("step_type", "step type"))
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


def list_hints(instance: Mapping[str, Any]) -> Iterator[Text]:
    """The commands by which it, and the runs below it, go on."""
    asked = {wait.get("human"): None for wait in instance.get("waiting_for") or ()}
    hints = [hint for human, hint in ANSWERS.items() if human in asked]
    if instance.get("status") == "paused":
        hints = ["korak resume {id} lets it go on"]
    if instance.get("status") == InstanceStatus.FAILED and (instance.get("actions") or {}).get("retry") is True:
        hints = ["korak retry {id} tries it again"]
    for hint in hints:
        yield Text(hint.format(id=instance["id"]), "dim")
    for child in instance.get("children") or ():
        yield from list_hints(child)
