"""What the store loaded for one instance, under its lock: all that a decision may look at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from korak.core.counters import PAGES, Pages
from korak.core.holds import NO_HOLDS, Holds
from korak.core.past import Past
from korak.core.rooms import Denial
from korak.core.rows import Compensation, Delivery, Instance, Scope, StepRun, Wait
from korak.graphs.contracts import RetryPolicy
from korak.graphs.plans import Plan
from korak.model import Json, JsonObject

DEFAULT_RETRY = RetryPolicy(3, (30, 120, 600), 0.1)
"""What holds where node, settings and type say nothing (RT-2)."""

DEFAULT_LIMITS: Mapping[str, int] = {
    "max_steps": 200,
    "max_transitions": 10_000,
    "max_for_each_items": 10_000,
    "max_state_bytes": 1 << 20,
    "max_depth": 3,
    "max_started_workflows": 10_000,
    "max_output_bytes": 64 << 10,
    "max_input_bytes": 64 << 10,
}


@dataclass(frozen=True, slots=True)
class Policy:
    """The engine's own defaults and ceilings. A definition's limits only lower `limits`. Times are seconds."""

    retry: RetryPolicy = DEFAULT_RETRY
    attempts_cap: int = 10
    timeout: float = 300.0
    grace: float = 30.0
    poll: float = 900.0
    """How often a condition is looked at where its wait doesn't say."""
    limits: Mapping[str, int] = field(default_factory=lambda: DEFAULT_LIMITS)
    walk: int = 50
    """How many nodes one decision walks before it queues the next one."""
    pages: Pages = PAGES

    def get_limit(self, name: str, given: Mapping[str, int]) -> int:
        """The limit in force: the engine's, or the definition's where that is lower."""
        ceiling = self.limits[name]
        return min(ceiling, given.get(name, ceiling))

    def find_limit(self, name: str, given: Mapping[str, int]) -> int | None:
        """The same for a limit that the engine may have none of; None where the definition has none either."""
        ceiling, own = self.limits.get(name), given.get(name)
        if ceiling is None or own is None:
            return own if ceiling is None else ceiling
        return min(ceiling, own)


@dataclass(frozen=True, slots=True)
class Claimant:
    """An engine that may make a step running: who it is, under which new token, and what it is able to run.

    `runs` tells whether it has the type (key, version); `queues` are the ones it serves, `holds` what it knows
    not to begin.
    """

    engine_id: int
    token: str
    queues: frozenset[str]
    runs: Callable[[str, int], bool]
    holds: Holds = NO_HOLDS


@dataclass(frozen=True, slots=True)
class Kept:
    """An event that was emitted before anybody waited for it."""

    source_id: str
    name: str
    payload: Json
    created_at: datetime


@dataclass(eq=False)
class Snapshot:
    """One instance. `steps` are its live attempts, `waits` the open ones, `ended` what values read of ended visits.

    `scopes` are the bodies that live, a few that are to be started, and those that have ended where their container may
    be merged. `deliveries` are read afresh under every lock; `kept` are, for a step that was probed, events that it may
    take.
    `failed` is the attempt that ended a failed instance, `halted` where each body in view that is to be started once
    more stood, by scope; `cancelled` are attempts that were closed as they ran. `compensations` are the newest that is
    kept, the one that runs, and the newest that failed (`korak.core.stack`). `past` is there only for a fact that goes
    back.
    `denials` is None until a decision has asked for room under a key that had none: then it is decided once more, and
    nothing that needs room runs in it.
    """

    instance: Instance
    plan: Plan
    policy: Policy
    steps: dict[int, StepRun] = field(default_factory=dict)
    waits: dict[int, Wait] = field(default_factory=dict)
    scopes: dict[int, Scope] = field(default_factory=dict)
    ended: dict[tuple[int | None, str], JsonObject] = field(default_factory=dict)
    deliveries: list[Delivery] = field(default_factory=list)
    kept: dict[int, list[Kept]] = field(default_factory=dict)
    failed: StepRun | None = None
    halted: dict[int, StepRun] = field(default_factory=dict)
    cancelled: dict[int, StepRun] = field(default_factory=dict)
    compensations: dict[int, Compensation] = field(default_factory=dict)
    past: Past | None = None
    denials: tuple[Denial, ...] | None = None
