"""How many starts there were in the last minute: sixty one-second counters that the time moves along."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

SECONDS = 60
"""The length of the window."""


@dataclass(slots=True)
class Window:
    """The starts of the last minute. `counted_at` is the second, since 1970, up to which the counters are right."""

    counters: list[int] = field(default_factory=lambda: [0] * SECONDS)
    counted_at: int = 0

    @property
    def total(self) -> int:
        """The starts in the window."""
        return sum(self.counters)

    def advance(self, now: datetime) -> None:
        """Forget what is older than a minute. A clock that went back changes nothing."""
        second = int(now.timestamp())
        for passed in range(max(self.counted_at + 1, second - SECONDS + 1), second + 1):
            self.counters[passed % SECONDS] = 0
        self.counted_at = max(second, self.counted_at)

    def take(self, limit: int) -> bool:
        """Count one more start, if the limit allows it. A refused one doesn't count (LM-10)."""
        if self.total >= limit:
            return False
        self.counters[self.counted_at % SECONDS] += 1
        return True

    def get_pause(self, limit: int) -> int:
        """In how many seconds one more start will be allowed."""
        over = self.total - limit + 1
        for seconds in range(1, SECONDS + 1):
            over -= self.counters[(self.counted_at + seconds) % SECONDS]
            if over <= 0:
                return seconds
        return SECONDS
