"""Whether a waker may take leases for over: only where it has seen the database without a break for one lease."""

from __future__ import annotations


class Steadiness:
    """Watches one waker's passes. An outage of the database, or a freeze of the waker, must not expire the fleet.

    Times are seconds of a clock that never goes back.
    """

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._since: float | None = None
        self._seen: float | None = None

    def begin(self, now: float) -> bool:
        """A pass begins; whether the passes before it went on without a break for one lease."""
        if self._since is None or self._seen is None or now - self._seen > self._lease / 2:
            self._since = now
        self._seen = now
        return now - self._since >= self._lease

    def see(self, now: float) -> None:
        """The database has answered."""
        self._seen = now

    def lose(self) -> None:
        """The database could not be reached."""
        self._since = None
