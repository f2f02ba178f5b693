"""Keys with limits: who asks for room under one, who gets it, and when there will be some again. Plain arithmetic."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from korak.core.rates import SECONDS, Window
from korak.core.rows import StepRun
from korak.graphs.limiting import FlowRule
from korak.model import FlowKind

LONGEST_KEY = 128
"""Characters of a key that are stored as they are; a longer one is stored as its digest."""


@dataclass(frozen=True, slots=True)
class FlowKey:
    """What a limit is counted under. `name` is the author's key, with a rate's span before it."""

    owner_scope: str
    kind: FlowKind
    name: str


@dataclass(frozen=True, slots=True)
class Demand:
    """Room that a step needs to run: `weight` of `limit`. `is_of_run`: its run keeps it until it ends.

    `is_inline`: it wants to begin where the step before it is recorded. `width` is the unit of a rate's window.
    """

    key: FlowKey
    step: StepRun
    limit: int
    weight: int = 1
    width: float = 0.0
    is_of_run: bool = False
    is_inline: bool = False

    @property
    def ceiling(self) -> int:
        """How much may be taken at most for this to fit."""
        return self.limit - self.weight


@dataclass(frozen=True, slots=True)
class Denial:
    """A demand that didn't fit, under the key with that id. `until`: when it may, as far as time alone decides it.

    `is_behind`: others are parked for the key already; this one takes its turn instead of slipping in before them.
    """

    key: FlowKey
    key_id: int
    ceiling: int
    weight: int
    until: datetime | None = None
    is_behind: bool = False


@dataclass(slots=True)
class Needs:
    """What a decision asks of keys with limits: `demands`, steps that it parks, and whether the run itself leaves."""

    demands: list[Demand] = field(default_factory=list)
    parkings: list[tuple[StepRun, Denial]] = field(default_factory=list)
    leaves: bool = False


@dataclass(frozen=True, slots=True)
class Parked:
    """A step that is parked for a key, best first where several are."""

    step_id: int
    ceiling: int
    weight: int


@dataclass(slots=True)
class Room:
    """One key's row, locked. `freed` is what was given back since. `has_parked`: steps are parked for it."""

    id: int
    key: FlowKey
    in_use: int = 0
    window: Window = field(default_factory=Window)
    has_parked: bool = False
    freed: int = 0

    @property
    def taken(self) -> int:
        """How much of the limit is taken."""
        return self.in_use if self.key.kind is FlowKind.CONCURRENCY else self.window.total

    def refuse(self, demand: Demand) -> Denial | None:
        """Why the demand doesn't fit now; None where it does."""
        is_behind = demand.is_inline and self.has_parked
        if not is_behind and self.taken <= demand.ceiling:
            return None
        until = None if self.key.kind is FlowKind.CONCURRENCY else self.get_next(demand.limit)
        return Denial(self.key, self.id, demand.ceiling, demand.weight, until, is_behind)

    def get_next(self, limit: int) -> datetime:
        """When the window lets one more begin. A little after the unit's end, so that rounding never makes it early."""
        units = self.window.counted_at + self.window.get_pause(limit)
        return datetime.fromtimestamp(units * self.window.width + 0.001, UTC)

    def add(self, weight: int) -> None:
        """Take room, or give back what was just taken (negative)."""
        if self.key.kind is FlowKind.CONCURRENCY:
            self.in_use += weight
        else:
            self.window.counters[self.window.counted_at % SECONDS] += weight

    def give_back(self, weight: int) -> None:
        """A holder has ended."""
        self.in_use -= weight
        self.freed += weight

    def choose(self, parked: Sequence[Parked]) -> list[int]:
        """Which of the parked steps, best first, there is room for: one that doesn't fit holds up nobody behind it."""
        taken, chosen = self.taken, []
        for step in parked:
            if taken <= step.ceiling:
                taken += step.weight
                chosen.append(step.step_id)
        return chosen


def take(demands: Iterable[Demand], rooms: Mapping[FlowKey, Room]) -> Denial | None:
    """Take room for all that one step needs, or for none of it: then why."""
    taken: list[Demand] = []
    for demand in demands:
        denial = rooms[demand.key].refuse(demand)
        if denial is not None:
            for other in taken:
                rooms[other.key].add(-other.weight)
            return denial
        rooms[demand.key].add(demand.weight)
        taken.append(demand)
    return None


def get_rank(demands: Sequence[Demand]) -> tuple[int, bool, datetime, int]:
    """Who of several is asked first: by priority, then by age; a step that has no id yet is the youngest."""
    step = demands[0].step
    return -step.priority, step.id < 0, step.created_at, abs(step.id)


def shorten(key: str) -> str:
    """A key as it is stored: an index holds no long one."""
    return key if len(key) <= LONGEST_KEY else hashlib.sha256(key.encode()).hexdigest()


def list_demands(rule: FlowRule, name: str, step: StepRun, *, is_of_run: bool, is_inline: bool) -> list[Demand]:
    """What one entry of `flow` asks of a step under a key."""
    owner, demands, name = step.owner_scope, [], shorten(name)
    if rule.concurrency is not None:
        key = FlowKey(owner, FlowKind.CONCURRENCY, name)
        demands.append(Demand(key, step, rule.concurrency, rule.weight, is_of_run=is_of_run, is_inline=is_inline))
    if rule.rate is not None:
        key = FlowKey(owner, FlowKind.RATE, f"{rule.per:g} {name}")
        width = get_width(rule.per)
        demands.append(Demand(key, step, rule.rate, width=width, is_of_run=is_of_run, is_inline=is_inline))
    return demands


def get_width(per: float) -> float:
    """The unit of a window that never lets more through in `per` seconds: sixty of them are one more than it."""
    return per / (SECONDS - 1)
