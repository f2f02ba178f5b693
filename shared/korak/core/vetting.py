"""What the rows of an import must say together, so that a run which goes on from them can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

from korak.core import exporting, nesting
from korak.core.arriving import OPEN, Arrival
from korak.core.counters import DONE, REDUCING, Counters
from korak.core.exporting import Kind
from korak.core.portable import LARGEST, Place, refuse
from korak.core.rows import Compensation, Event, Instance, Scope, StepRun, Wait
from korak.core.undoing import MOST_CALLS
from korak.graphs.document import REDUCED
from korak.graphs.hygiene import size
from korak.model import (
    ActorMode,
    CompensationStatus,
    EventType,
    InstanceStatus,
    Priority,
    ScopeStatus,
    StepRole,
    WaitKind,
)

ABSENT: Final[Mapping[WaitKind, str]] = {
    WaitKind.CHILD: "it waits for a run that it has started, which isn't in the document",
    WaitKind.WORKFLOWS: "it waits for other runs, which aren't in the document",
    WaitKind.TASK: "it waits for a task, which isn't in the document",
}
"""Waits on what can't be in a document: while one is open the run can't go on here."""

COUNTS = (
    "total",
    "quorum",
    "concurrency",
    "created",
    "next_index",
    "started",
    "settled",
    "succeeded",
    "failed",
    "order",
)
COUNTERS = {*COUNTS, "mode", "verdict"}
MODES = ("all", "first_success", "quorum")
VERDICTS = (None, DONE, REDUCING)


def check_instance(instance: Instance, arrival: Arrival) -> None:
    """What the run says of itself."""
    place: Place = (0, exporting.HEAD, "instance")
    if instance.status is None or (instance.ended_at is not None) != instance.status.is_ended:
        raise refuse((*place, "status"), "it doesn't fit ended_at")
    if (instance.closed_reason is not None) != instance.is_ended:
        raise refuse((*place, "closed_reason"), "it doesn't fit the status")
    if instance.status is InstanceStatus.FAILED and instance.failure_code is None:
        raise refuse((*place, "failure_code"), "it is missing")
    _check_actor(instance, arrival, place)
    if instance.priority not in set(Priority):
        raise refuse((*place, "priority"), f"it is none of {', '.join(str(each.value) for each in Priority)}")
    limit = arrival.policy.get_limit("max_state_bytes", arrival.version.plan.settings.limits)
    if size(instance.state) > limit:
        raise refuse((*place, "state"), f"it is over {limit} bytes")


def _check_actor(instance: Instance, arrival: Arrival, place: Place) -> None:
    """As whom a run acts is the version's to say, and for whom is not to be left open (AU-1, AU-2)."""
    if instance.actor_mode is not ActorMode(arrival.version.plan.settings.actor):
        raise refuse((*place, "actor_mode"), "it isn't the version's")
    if instance.starter_type != (None if instance.starter_id is None else "user"):
        raise refuse((*place, "starter_type"), "it doesn't fit starter_id")
    if instance.actor_mode is ActorMode.ON_BEHALF_OF and instance.starter_id is None:
        raise refuse((*place, "starter_id"), "it is missing: the version acts on behalf of a user")


class Vetting:
    """Looks at rows as they come, and at the end at what they say together. What the database knows it refuses itself.

    Keeps what is open, and of all else no more than it needs: `waits` are the open ones by step, `live` the live
    attempts with their places.
    """

    def __init__(self, instance: Instance, arrival: Arrival) -> None:
        self._instance, self._plan = instance, arrival.version.plan
        self.waits: dict[int, list[Wait]] = {}
        self.live: dict[int, StepRun] = {}
        self.events: int = 0
        self._awaited: set[tuple[int, WaitKind, str | None]] = set()
        self._attempts: set[tuple[Any, ...]] = set()
        self._created: Counter[int] = Counter()
        self._running: dict[int, list[Scope]] = {}
        self._halted: dict[int, tuple[int, Place]] = {}
        self._waiting: dict[int, Place] = {}
        self._undoing: dict[int, Place] = {}

    def look(self, kind: Kind, row: Any, place: Place) -> None:
        """Look at one row. Raises Invalid("invalid_export"), as everything here does."""
        check = CHECKS.get(kind)
        if check is not None:
            check(self, row, place)

    def look_at_wait(self, wait: Wait, place: Place) -> None:
        """A step waits once for one thing, and for what can come here."""
        if wait.status not in OPEN:
            return
        if wait.kind in ABSENT:
            raise refuse((*place, "kind"), ABSENT[wait.kind])
        name = wait.step_run_id, wait.kind, wait.event_key
        if name in self._awaited:
            raise refuse(place, "its step waits for the same already")
        self._awaited.add(name)
        self._waiting[wait.step_run_id] = place
        self.waits.setdefault(wait.step_run_id, []).append(wait)

    def look_at_scope(self, scope: Scope, place: Place) -> None:
        """Bodies are counted by their containers."""
        self._created[scope.step_run_id] += 1
        if scope.status is ScopeStatus.RUNNING:
            self._running.setdefault(scope.step_run_id, []).append(scope)
        if scope.halted_step_run_id is not None:
            self._halted[scope.halted_step_run_id] = scope.id, (*place, "halted")

    def look_at_step(self, step: StepRun, place: Place) -> None:
        """An attempt is there once, at a node that the version has, and is over if its status says so."""
        self._check_attempt(step, place)
        if step.counters is not None:
            self._check_counters(step, (*place, "counters"))
        if step.id in self._halted:
            self._check_halted(step, *self._halted.pop(step.id))
        at = self._waiting.pop(step.id, None)
        if is_live(step):
            self.live[step.id] = step
        elif at is not None:
            raise refuse((*at, "status"), "its step has ended")

    def look_at_event(self, event: Event, place: Place) -> None:
        """History has no gap, and goes back only to what it has told."""
        self.events += 1
        if event.seq != self.events:
            raise refuse((*place, "seq"), f"{self.events} is expected")
        if event.type is EventType.INSTANCE_REWOUND:
            to = (event.data or {}).get("seq")
            if type(to) is not int or not 1 <= to < event.seq:
                raise refuse((*place, "data", "seq"), "it is no line before this one")

    def look_at_compensation(self, row: Compensation, place: Place) -> None:
        """It was kept with a line of history, of a node that can be undone."""
        if self._plan.find(row.node_id, StepRole.COMPENSATE) is None:
            raise refuse((*place, "node_id"), "the version undoes no such node")
        if not 1 <= row.seq <= self.events:
            raise refuse((*place, "seq"), "it is no line of history")
        if not 1 <= row.call < MOST_CALLS:
            raise refuse((*place, "call"), f"it isn't between 1 and {MOST_CALLS - 1}")
        if row.status is CompensationStatus.UNDOING:
            self._undoing[row.seq] = place

    def finish(self) -> None:
        """An open run and each body that runs have one live step, all else none; what is undone has its hook."""
        places: Counter[int | None] = Counter() if self._instance.is_ended else Counter([None])
        places.update(scope.id for scopes in self._running.values() for scope in scopes)
        live = Counter(step.scope_id for step in self.live.values() if step.role is StepRole.STEP)
        if live != places:
            detail = "an open instance and each body that runs have one live step, and nothing else has"
            raise refuse((), detail)
        hooks = {step.hook_order for step in self.live.values() if step.role is StepRole.COMPENSATE}
        for seq, place in self._undoing.items():
            if seq not in hooks:
                raise refuse((*place, "status"), "no step undoes it")

    def _check_attempt(self, step: StepRun, place: Place) -> None:
        key = (step.node_id, step.visit, step.attempt, step.role, step.call)
        if key in self._attempts:
            raise refuse(place, "the same attempt is there already")
        self._attempts.add(key)
        if self._plan.find(step.node_id, step.role) is None:
            raise refuse((*place, "node_id"), "the version has no such node")
        if (step.finished_at is not None) == is_live(step):
            raise refuse((*place, "finished_at"), "it doesn't fit the status")
        if is_live(step) and nesting.is_childs(step):
            raise refuse((*place, "resume_signal"), "it tries again what a run failed at that isn't in the document")

    def _check_halted(self, step: StepRun, scope_id: int, place: Place) -> None:
        is_its = step.scope_id == scope_id and step.role is StepRole.STEP
        if not is_its or is_live(step) or step.outcome is not None:
            raise refuse(place, "it is no attempt at which the body stood")

    def _check_counters(self, step: StepRun, place: Place) -> None:
        """The numbers of a container, which must be those of its bodies while it lives."""
        stored = step.counters or {}
        numbers = [stored.get(name) for name in COUNTS]
        is_whole = all(type(number) is int and 0 <= number <= LARGEST for number in numbers)
        if not is_whole or stored.keys() != COUNTERS:
            raise refuse(place, "they are no counters of a container")
        if stored["mode"] not in MODES or stored["verdict"] not in VERDICTS:
            raise refuse(place, "they are no counters of a container")
        if is_live(step) and not self._fit(step, Counters.from_json(stored)):
            raise refuse(place, "they don't fit the bodies that are in the document")

    def _fit(self, step: StepRun, counters: Counters) -> bool:
        """Whether a container that lives has the bodies that it counts; the last one is its reducer."""
        running = self._running.get(step.id, [])
        if counters.verdict == REDUCING:
            return [scope.name for scope in running] == [REDUCED]
        return counters.verdict == DONE or (
            (self._created[step.id], len(running)) == (counters.created, counters.running)
        )


CHECKS: Final[Mapping[Kind, Callable[[Vetting, Any, Place], None]]] = {
    exporting.WAITS: Vetting.look_at_wait,
    exporting.SCOPES: Vetting.look_at_scope,
    exporting.STEPS: Vetting.look_at_step,
    exporting.EVENTS: Vetting.look_at_event,
    exporting.COMPENSATIONS: Vetting.look_at_compensation,
}


def is_live(step: StepRun) -> bool:
    """Whether the attempt has yet to end."""
    return step.status is not None and step.status.is_live
