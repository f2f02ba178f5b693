"""The history of an instance as far as it decides where it stood: loaded for the few facts that go back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from korak.core.rows import StepRun
from korak.model import EventType

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
class Past:
    """The lines in their order, and the newest visit that each node ever had."""

    lines: tuple[Line, ...]
    visits: Mapping[str, int]
