"""The history of an instance as far as it decides where it stood: loaded for the few facts that go back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from korak.core.rows import StepRun
from korak.model import CompensationStatus, EventType

TURNS = (EventType.INSTANCE_STARTED, EventType.STEP_COMPLETED, EventType.STEP_FAILED, EventType.INSTANCE_REWOUND)
"""What moves an instance's position: only events that are about no step or about one in no body are read."""


@dataclass(frozen=True, slots=True)
class Line:
    """One event, with its data and the attempt that it is about."""

    seq: int
    type: EventType
    told: Mapping[str, Any]
    step: StepRun | None


@dataclass(frozen=True, slots=True)
class Compensated:
    """A completed visit that is kept to be undone, at the number of the event that tells of its completion, and how far
    its undoing has come.
    """

    seq: int
    node: str
    visit: int
    status: CompensationStatus


@dataclass(frozen=True, slots=True)
class Begun:
    """Runs that were started inside of a container, at the number of the first event of the visit that did."""

    seq: int
    ulids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stored:
    """An artifact, at the number of the first event of the visit that left it; None where it came from outside."""

    key: str
    seq: int | None


@dataclass(frozen=True, slots=True)
class Past:
    """The lines in their order, and the newest visit that each node ever had; of whatever place in the graph, what is
    kept to be undone or was, which runs were started in bodies, and what is kept beside the state.
    """

    lines: tuple[Line, ...]
    visits: Mapping[str, int]
    compensated: tuple[Compensated, ...] = ()
    begun: tuple[Begun, ...] = ()
    artifacts: tuple[Stored, ...] = ()

    def stands(self, seq: int, until: int) -> bool:
        """Whether an event belongs to what led to the line `until`: no rewind has left it behind."""
        return seq <= until and not any(
            line.type is EventType.INSTANCE_REWOUND and int(line.told["seq"]) < seq < line.seq for line in self.lines
        )
