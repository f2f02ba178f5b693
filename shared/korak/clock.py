"""The only place that reads a clock: the process's, corrected to the database's."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta


class Clock:
    """Tells the time of the database. Everything that decides gets it as `now`."""

    def __init__(self) -> None:
        self._offset = timedelta()

    @property
    def offset(self) -> timedelta:
        """How far the database is ahead of this process."""
        return self._offset

    def now(self) -> datetime:
        """The time, aware, in UTC."""
        return datetime.now(UTC) + self._offset

    def monotonic(self) -> float:
        """Seconds of a clock that never goes back: for deadlines and durations inside one process."""
        return time.monotonic()

    def adjust(self, offset: timedelta) -> None:
        """Move by `offset`, by which the database was found ahead of `now()`; negative where it is behind.

        `korak.store` measures it at connect and every 30 s: the database's time less the middle of the `now()` before
        the question and the one after the answer.
        """
        self._offset += offset


class ManualClock(Clock):
    """A clock that stands still until a test moves it."""

    def __init__(self, start: datetime = datetime(2030, 1, 1, tzinfo=UTC)) -> None:
        super().__init__()
        self._now = start
        self._elapsed = 0.0

    def now(self) -> datetime:
        """Where the test has put it."""
        return self._now + self._offset

    def monotonic(self) -> float:
        """The seconds by which it was moved forward."""
        return self._elapsed

    def advance(self, by: timedelta | float) -> datetime:
        """Move it forward by a span, or by seconds, and tell the new time."""
        span = by if isinstance(by, timedelta) else timedelta(seconds=by)
        if span < timedelta():
            raise ValueError("a clock goes forward; set() moves it back")
        self._now += span
        self._elapsed += span.total_seconds()
        return self.now()

    def set(self, now: datetime) -> None:
        """Put it anywhere, also back, as a wall clock may be. The monotonic one doesn't follow."""
        self._now = now - self._offset
