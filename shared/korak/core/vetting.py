"""What the rows of an import must say together, so that a run which goes on from them can."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from korak.core.arriving import OPEN, Arrival
from korak.core.counters import DONE, REDUCING, Counters
from korak.core.exporting import Contents
from korak.core.portable import Place, refuse
from korak.core.rows import Scope, StepRun
from korak.graphs.document import REDUCED
from korak.graphs.hygiene import size
from korak.model import (
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


def check(contents: Contents, arrival: Arrival) -> None:
    """What rows say together. What the database alone knows it refuses itself."""
    instance = contents.instance
    if instance.status is None or (instance.ended_at is not None) != instance.status.is_ended:
        raise refuse(("instance", "status"), "it doesn't fit ended_at")
    if (instance.closed_reason is not None) != instance.is_ended:
        raise refuse(("instance", "closed_reason"), "it doesn't fit the status")
    if instance.status is InstanceStatus.FAILED and instance.failure_code is None:
        raise refuse(("instance", "failure_code"), "it is missing")
    if instance.priority not in set(Priority):
        raise refuse(("instance", "priority"), f"it is none of {', '.join(str(each.value) for each in Priority)}")
    limit = arrival.policy.get_limit("max_state_bytes", arrival.version.plan.settings.limits)
    if size(instance.state) > limit:
        raise refuse(("instance", "state"), f"it is over {limit} bytes")
    for number, event in enumerate(contents.events):
        if event.seq != number + 1:
            raise refuse(("events", number, "seq"), f"{number + 1} is expected")
    _check_steps(contents, arrival)
    _check_tokens(contents)
    _check_waits(contents)


def _check_steps(contents: Contents, arrival: Arrival) -> None:
    seen: set[tuple[Any, ...]] = set()
    for number, step in enumerate(contents.steps):
        place: Place = ("steps", number)
        key = (step.node_id, step.visit, step.attempt, step.role, step.call)
        if key in seen:
            raise refuse(place, "the same attempt is there already")
        seen.add(key)
        if step.node_id not in arrival.version.plan.nodes:
            raise refuse((*place, "node_id"), "the version has no such node")
        if (step.finished_at is not None) == is_live(step):
            raise refuse((*place, "finished_at"), "it doesn't fit the status")
        if step.counters is not None:
            _check_counters(step, contents.scopes, (*place, "counters"))


def _check_counters(step: StepRun, scopes: Sequence[Scope], place: Place) -> None:
    """The numbers of a container, which must be those of its bodies while it lives."""
    stored = step.counters or {}
    numbers = [stored.get(name) for name in COUNTS]
    is_whole = all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers)
    if stored.keys() != COUNTERS or not is_whole or stored["mode"] not in MODES or stored["verdict"] not in VERDICTS:
        raise refuse(place, "they are no counters of a container")
    counters, mine = Counters.from_json(stored), [scope for scope in scopes if scope.step_run_id == step.id]
    if is_live(step) and not _fit(counters, mine):
        raise refuse(place, "they don't fit the bodies that are in the document")


def _fit(counters: Counters, scopes: Sequence[Scope]) -> bool:
    """Whether a container that lives has the bodies that it counts; the last one is its reducer."""
    running = [scope for scope in scopes if scope.status is ScopeStatus.RUNNING]
    if counters.verdict == REDUCING:
        return [scope.name for scope in running] == [REDUCED]
    return counters.verdict == DONE or (len(scopes), len(running)) == (counters.created, counters.running)


def _check_tokens(contents: Contents) -> None:
    """An open run and each body that runs have one live step, all else none."""
    live = Counter(step.scope_id for step in contents.steps if is_live(step) and step.role is StepRole.STEP)
    running = [scope.id for scope in contents.scopes if scope.status is ScopeStatus.RUNNING]
    places: Counter[int | None] = Counter([] if contents.instance.is_ended else [None, *running])
    if live != places:
        raise refuse(("steps",), "an open instance and each body that runs have one live step, and nothing else has")


def _check_waits(contents: Contents) -> None:
    live = {step.id for step in contents.steps if is_live(step)}
    known: set[tuple[int, WaitKind, str | None]] = set()
    for number, wait in enumerate(contents.waits):
        if wait.status not in OPEN:
            continue
        if wait.step_run_id not in live:
            raise refuse(("waits", number, "status"), "its step has ended")
        if wait.kind in ABSENT:
            raise refuse(("waits", number, "kind"), ABSENT[wait.kind])
        name = wait.step_run_id, wait.kind, wait.event_key
        if name in known:
            raise refuse(("waits", number), "its step waits for the same already")
        known.add(name)


def is_live(step: StepRun) -> bool:
    """Whether the attempt has yet to end."""
    return step.status is not None and step.status.is_live
