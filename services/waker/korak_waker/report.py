"""What one wake pass did: the counters of WK-1 and a few more."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(eq=True)
class Report:
    """Counts of rows. `requeued` are deliveries and steps sent again, `reclaimed` attempts taken from lost engines,
    `cascaded` children that a command of their parent's went to, `roused` steps that found room under their limits,
    `unheld` what holds had kept.

    `interrupted` are stages that the next pass does, since the database couldn't now.
    """

    timers: int = 0
    retries: int = 0
    timeouts: int = 0
    polls: int = 0
    escalations: int = 0
    schedules: int = 0
    reclaimed: int = 0
    requeued: int = 0
    roused: int = 0
    unheld: int = 0
    deliveries: int = 0
    deadlines: int = 0
    released: int = 0
    matched: int = 0
    cascaded: int = 0
    inbox: int = 0
    expired: int = 0
    errors: int = 0
    interrupted: int = 0

    def __str__(self) -> str:
        """The counters that aren't zero, or that there was nothing to do."""
        counts = [f"{field.name} {value}" for field in fields(self) if (value := getattr(self, field.name))]
        return ", ".join(counts) or "nothing was due"
