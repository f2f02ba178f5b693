"""What is told of an attempt beside its name."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from rich.text import Text

from korak.commands.spans import get_between, read_time, show_span
from korak.commands.values import compact
from korak.commands.wording import list_waits
from korak.model import StepStatus

DEFAULT_QUEUE: Final = "default"


def draw_note(instance: Mapping[str, Any], step: Mapping[str, Any], now: datetime) -> Text:
    """Why it failed, what it waits for, how far it is, or what it has come to."""
    status, error = step["status"], step.get("error")
    if step.get("undone_at"):
        return Text("undone by a rewind", "dim")
    if error:
        return Text.assemble((str(error.get("code")), "red"), f"  {error.get('message', '')}")
    if status == StepStatus.QUEUED:
        return _note_queued(instance, step, now)
    if status == StepStatus.WAITING:
        return Text("; ".join(list_waits(instance, now, step)) or "waiting", "yellow")
    if status == StepStatus.RUNNING and step.get("progress") is not None:
        return Text.assemble(compact(step["progress"]), (f"  {_tell_beat(step, now)}", "dim"))
    if status != StepStatus.COMPLETED:
        return Text("")
    outcome, output = step.get("outcome"), get_told_output(step)
    way = "" if outcome in (None, "next") else f"→ {outcome}  "
    return Text.assemble(way, (compact(output) if output else "", "dim"), no_wrap=True, overflow="ellipsis")


def _note_queued(instance: Mapping[str, Any], step: Mapping[str, Any], now: datetime) -> Text:
    """Why it doesn't run yet, where that is known; else in which queue it stands."""
    due, queue = read_time(step.get("scheduled_for")), step.get("queue") or DEFAULT_QUEUE
    if due is not None and due > now and not step.get("parked_for"):
        return Text(f"again in {show_span(due - now)}", "yellow")
    waits = "; ".join(list_waits(instance, now, step))
    if waits:
        return Text(waits, "yellow")
    return Text("queued" if queue == DEFAULT_QUEUE else f"queued in {queue}", "dim")


def get_told_output(step: Mapping[str, Any]) -> Any:
    """What is told of an output: of a change what it wrote, of an end nothing, since the result stands below.

    Keys that begin with `_` are for the engine or for nobody: the state hasn't got them either.
    """
    output = step.get("output") or {}
    if not isinstance(output, dict):
        return output
    match step.get("type"):
        case "set_field":
            return output.get("new")
        case "end":
            return None
        case _:
            return {key: value for key, value in output.items() if not str(key).startswith("_")}


def _tell_beat(step: Mapping[str, Any], now: datetime) -> str:
    """How long ago a step said how far it is."""
    ago = show_span(get_between(step.get("heartbeat_at"), now))
    return f"{ago} ago" if ago else ""
