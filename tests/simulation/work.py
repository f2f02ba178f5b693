"""What a simulated engine holds: jobs cut where others may come between, granted steps, nudges, results."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias, TypeVar

from korak.core.changes import Grant
from korak.core.facts import Claimed, Finished
from korak.core.rows import StepRun
from korak.core.snapshot import Snapshot

T = TypeVar("T")

Job: TypeAlias = Generator[None, None, T]
"""Work that is cut where others may come between."""

LEASE = timedelta(seconds=60)
SLOTS = 6
IN_A_ROW = 8


@dataclass(eq=False)
class Work:
    """A granted step, from its claim to its record. `is_reported`: its result is on its way."""

    grant: Grant
    snapshot: Snapshot
    in_a_row: int
    has_effect: bool = False
    is_reported: bool = False

    @property
    def step(self) -> StepRun:
        """The attempt."""
        return self.grant.step


@dataclass(eq=False)
class Nudge:
    """A step to claim. Its token is made once."""

    step_id: int
    fact: Claimed | None = None
    instance_id: int = 0


@dataclass(eq=False)
class Result:
    """What a handler came to, until it is recorded."""

    work: Work
    fact: Finished

    @property
    def instance_id(self) -> int:
        """Whose it is."""
        return self.work.step.instance_id


Entry: TypeAlias = Nudge | Result
