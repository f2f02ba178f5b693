"""How far a container is: what decides whether it is done, kept on its visit and raised as its bodies end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from korak.model import JsonObject

Mode: TypeAlias = Literal["all", "first_success", "quorum"]

DONE, FAILED, REDUCING = "done", "failed", "reducing"

AT_A_TIME = 100
"""How many run at a time where nothing is said: every decision looks at all that live."""


@dataclass(frozen=True, slots=True)
class Pages:
    """How many bodies are looked at together: `size` come to be in one decision, and as many of one container may run.

    A container of no more than `small` is loaded with those that have ended, so that it is merged as the last one ends.
    """

    size: int = 500
    small: int = 50

    @property
    def reserve(self) -> int:
        """Fewer bodies than these with a row and without a token: the next page is made."""
        return self.size // 2


PAGES = Pages()


@dataclass(frozen=True)
class Counters:
    """The numbers of one container's visit. `created` have a row, `started` a token or had one, `settled` have ended.

    No body before `next_index` waits for its start. `order` numbers the ends, across retries too. `verdict` stands
    where enough have succeeded: the merge waits until all that ended are loaded (DONE), or for the reducer (REDUCING).
    """

    total: int
    mode: Mode = "all"
    quorum: int = 1
    concurrency: int = AT_A_TIME
    created: int = 0
    next_index: int = 0
    started: int = 0
    settled: int = 0
    succeeded: int = 0
    failed: int = 0
    order: int = 0
    verdict: str | None = None

    @property
    def running(self) -> int:
        """How many bodies have a token."""
        return self.started - self.settled

    @property
    def pending(self) -> int:
        """How many bodies have a row and had no token yet."""
        return self.created - self.started

    def wants_page(self, pages: Pages) -> bool:
        """Whether it is time to make the next page of bodies."""
        return self.created < self.total and self.pending < pages.reserve

    def has_debt(self, pages: Pages) -> bool:
        """Whether the container itself has something to do: rows to make, bodies to start, results to merge."""
        is_behind = self.started < self.total and self.running < self.concurrency
        return self.verdict == DONE or (self.verdict is None and (self.wants_page(pages) or is_behind))

    def has_few(self, in_view: int) -> bool:
        """Whether so many bodies in view are too few, as there are more to be started."""
        return 2 * in_view <= self.concurrency and in_view < self.pending

    def get_room(self, pages: Pages, *, is_asked_for: bool) -> int:
        """How many bodies that are to be started are in view: all of them where the container asked for it."""
        return pages.size + pages.reserve if is_asked_for else min(pages.size, 2 * self.concurrency)

    def judge(self) -> str | None:
        """DONE where enough have succeeded, FAILED where too few still can, else None."""
        needed = {"all": self.total, "first_success": 1, "quorum": self.quorum}[self.mode]
        if self.succeeded >= needed:
            return DONE
        return FAILED if self.succeeded + self.total - self.settled < needed else None

    def settle(self, *, has_succeeded: bool) -> Counters:
        """One more body has ended."""
        return self.change(
            settled=self.settled + 1,
            succeeded=self.succeeded + has_succeeded,
            failed=self.failed + (not has_succeeded),
            order=self.order + 1,
        )

    @property
    def is_decided(self) -> bool:
        """Whether enough have succeeded, so that nothing but the merge and the reducer is left."""
        return self.verdict is not None

    def reopen(self) -> Counters:
        """What a retry begins with: what has succeeded stays, all others wait for their start.

        A container that was decided is merged again, and then its reducer begins.
        """
        if self.is_decided:
            return self.change(verdict=DONE)
        return self.change(next_index=0, started=self.succeeded, settled=self.succeeded, failed=0)

    def change(self, **what: Any) -> Counters:
        """The same with other numbers. Every body's end makes some, so this doesn't check as a constructor does."""
        twin = object.__new__(Counters)
        twin.__dict__.update(self.__dict__, **what)
        return twin

    def to_json(self) -> JsonObject:
        """As it is stored."""
        return dict(self.__dict__)

    @classmethod
    def from_json(cls, stored: JsonObject) -> Counters:
        """Read back what `to_json` wrote."""
        given: dict[str, Any] = stored
        return cls(**given)
