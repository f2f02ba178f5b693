"""Holds: definitions, step types and queues of which nothing begins for now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from korak.core.rows import StepRun
from korak.model import APP_WIDE, HoldKind

Held: TypeAlias = tuple[str, HoldKind, str]
"""Whose, what, and its name. One of the application is for every owner."""


@dataclass(frozen=True, slots=True)
class Holds:
    """The holds in force, as an engine last saw them.

    Whatever changes what is in force raises `version`: what was decided by these holds only while that stands.
    """

    rows: frozenset[Held] = frozenset()
    version: int = 0

    def cover(self, step: StepRun, definition: str) -> bool:
        """Whether one of them is for this step."""
        if not self.rows:
            return False
        named = (
            (HoldKind.DEFINITION, definition),
            (HoldKind.STEP_TYPE, step.node_type),
            (HoldKind.QUEUE, step.queue),
        )
        return any((owner, *what) in self.rows for owner in (step.owner_scope, APP_WIDE) for what in named)


NO_HOLDS: Holds = Holds()
