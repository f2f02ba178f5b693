"""How often something began in the last minute, or another span: sixty counters that the time moves along."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

SECONDS = 60
"""The counters of a window; of one over a minute each counts a second."""


@dataclass(slots=True)
class Window:
    """What began in the window. `counted_at` is the unit, since 1970, up to which the counters are right.

    `width` is the length of a unit in seconds.
    """

    counters: list[int] = field(default_factory=lambda: [0] * SECONDS)
    counted_at: int = 0
    width: float = 1.0

    @property
    def total(self) -> int:
        """How often it began in the window."""
        return sum(self.counters)

    def advance(self, now: datetime) -> None:
        """Forget what is older than the window. A clock that went back changes nothing."""
        second = int(now.timestamp() / self.width)
        for passed in range(max(self.counted_at + 1, second - SECONDS + 1), second + 1):
            self.counters[passed % SECONDS] = 0
        self.counted_at = max(second, self.counted_at)

    def take(self, limit: int) -> bool:
        """Count one more, if the limit allows it. A refused one doesn't count (LM-10)."""
        if self.total >= limit:
            return False
        self.counters[self.counted_at % SECONDS] += 1
        return True

    def get_pause(self, limit: int) -> int:
        """In how many units, of a second each by default, one more will be allowed."""
        over = self.total - limit + 1
        for seconds in range(1, SECONDS + 1):
            over -= self.counters[(self.counted_at + seconds) % SECONDS]
            if over <= 0:
                return seconds
        return SECONDS
