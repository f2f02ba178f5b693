"""delay: waits for a duration or until a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from korak.errors import Issue, StepFailed
from korak.graphs import instants
from korak.graphs.contracts import Scope
from korak.graphs.values import Value, compile_value
from korak.model import JsonObject
from korak.steps import moments
from korak.steps.builtin import shapes
from korak.steps.pure import Completed, Entry, Parked, PureResult, PureType
from korak.steps.waits import Due, WaitSpec

MEMBERS = ("for", "until")


@dataclass(frozen=True, slots=True)
class Pause:
    """What a delay is given, by the name of its member."""

    member: str
    value: Value


class Delay(PureType[Pause]):
    """Leaves by `next` when the time has come; at once where it has passed."""

    key = "delay"
    label = "Delay"
    description: str | None = "Waits for a duration or until a time."
    parks = True
    config_schema: JsonObject = shapes.shape(
        {
            "for": shapes.titled(shapes.DURATION, "For"),
            "until": shapes.titled(shapes.VALUE, "Until"),
        }
    )
    output_schema: JsonObject | None = shapes.shape(
        {"due_at": {"type": "string", "format": "date-time"}}, required=["due_at"]
    )

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """One of the two."""
        return [*shapes.exactly_one(config, MEMBERS), *check_time(config, "until")]

    def compile(self, config: JsonObject) -> Pause:
        """The one that is written."""
        return compile_pause(config)

    def begin(self, program: Pause, entry: Entry) -> PureResult:
        """Park until the time, unless it has passed."""
        return park_until(program, entry)


def compile_pause(config: JsonObject) -> Pause:
    """The `for` or `until` of a config."""
    member = "for" if "for" in config else "until"
    return Pause(member, compile_value(config.get(member)))


def park_until(pause: Pause, entry: Entry) -> Parked | Completed:
    """Parked with its due time, or completed where that isn't ahead."""
    raw = pause.value.resolve(entry.roots)
    pointer = f"/{pause.member}"
    due: Due
    at: datetime
    if pause.member == "for":
        due, at = raw, moments.read_duration(raw, pointer=pointer, now=entry.now, timezone=entry.timezone)
    else:
        due = at = moments.read_time(raw, pointer=pointer, timezone=entry.timezone)
    output: JsonObject = {"due_at": instants.render(at)}
    return Parked(WaitSpec.timer(due), output) if at > entry.now else Completed(output=output)


def check_time(config: JsonObject, member: str) -> list[Issue]:
    """What is wrong with a time that is written out."""
    value = config.get(member)
    if value is None or shapes.is_form(value):
        return []
    try:
        moments.read_time(value, pointer=f"/{member}", timezone="UTC")
    except StepFailed as error:
        return [shapes.wrong(f"/{member}", str(error.params["detail"]))]
    return []
