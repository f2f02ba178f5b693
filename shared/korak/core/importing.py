"""An exported run as a new one: what has ended stays as it was, what lives goes on, and nothing recorded runs again."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from korak.core import commanding, exporting
from korak.core.changes import Changes, Leavings
from korak.core.counters import DONE, Counters
from korak.core.draft import Draft
from korak.core.exporting import FORMAT, Family
from korak.core.opening import Owner, Version
from korak.core.portable import Place, read_row, read_time, refuse
from korak.core.rows import Artifact, Delivery, Event, Failure, Instance, Scope, StepRun, Wait, copy
from korak.core.snapshot import Policy, Snapshot
from korak.core.waiting import AWAITED, get_digest
from korak.graphs.hygiene import size
from korak.model import (
    EventType,
    InstanceStatus,
    Json,
    JsonObject,
    ParkedFor,
    Probe,
    ScopeStatus,
    StepRole,
    StepStatus,
    WaitKind,
    WaitStatus,
)

Row = TypeVar("Row")

LABEL = "imported_from:"
"""With the id that the run had where it was exported, a label of every import."""

ELSEWHERE = (WaitKind.CHILD, WaitKind.WORKFLOWS, WaitKind.TASK)
"""Waits on what isn't in the document: while one is open the run can't go on here."""

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

OPEN = (WaitStatus.PENDING, WaitStatus.SUSPENDED)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a document comes in: the version that it runs, whose it is, who brought it, and ULIDs that are free."""

    version: Version
    owner: Owner
    actor: JsonObject | None
    ulids: Iterator[str]
    policy: Policy
    now: datetime


def admit(document: JsonObject, arrival: Arrival) -> Changes:
    """The new instance, to be written like a start. Raises Invalid("invalid_export"), with its pointer."""
    if document.get("format") != FORMAT:
        raise refuse(("format",), f"it isn't {FORMAT}")
    reader = _Reader(document, arrival)
    family = reader.read()
    _check(family, arrival)
    ready = [step for step in family.steps if _revive(family, step, arrival.now)]
    return _write(family, ready, arrival, str(reader.source))


class _Reader:
    """Reads the rows, with ids of the draft's own in place of the document's references."""

    def __init__(self, document: JsonObject, arrival: Arrival) -> None:
        self._document, self._arrival = document, arrival
        self._shift: timedelta = arrival.now - read_time(document.get("exported_at"), ("exported_at",))
        self._ulid = next(arrival.ulids)
        self._names: dict[str, str] = {}
        self._steps: dict[str, StepRun] = {}
        self.source: Json = None

    def read(self) -> Family:
        """Everything in the document."""
        family = Family(self._read_instance())
        heads = self._list("scopes")
        for number, (raw, place) in enumerate(self._list("steps")):
            family.steps.append(self._read_step(raw, place, number, len(heads)))
        family.scopes = [self._read_scope(raw, place, number, len(heads)) for number, (raw, place) in enumerate(heads)]
        for step in family.steps:
            if step.scope_id is not None:
                step.parent_step_run_id = family.scopes[-step.scope_id - 1].step_run_id
        family.waits = [self._read_wait(raw, place, number) for number, (raw, place) in enumerate(self._list("waits"))]
        for raw, place in self._list("signals"):
            columns = self._read(Delivery, raw, exporting.SIGNAL, place)
            wait = self._find_number(raw, "wait", place, len(family.waits))
            made = Delivery(
                0, 0, self._arrival.owner.scope, step_run_id=self._find(raw, place), wait_id=wait, **columns
            )
            family.signals.append(made)
        for raw, place in self._list("events"):
            columns = self._read(Event, raw, exporting.EVENT, place)
            columns["data"] = self._rename(columns["data"])
            family.events.append(Event(0, step_run_id=self._find(raw, place), **columns))
        for raw, place in self._list("failures"):
            columns = self._read(Failure, raw, exporting.FAILURE, place)
            family.failures.append(Failure(0, step_run_id=self._find(raw, place), **columns))
        family.artifacts = [self._read_artifact(raw, place) for raw, place in self._list("artifacts")]
        return family

    def _read_artifact(self, raw: JsonObject, place: Place) -> Artifact:
        columns = self._read(Artifact, raw, exporting.ARTIFACT, place)
        execution = None if raw.get("execution") is None else self._give(self._name(raw, "execution", place))
        try:
            content = b64decode(str(raw.get("content")), validate=True)
        except ValueError:
            raise refuse((*place, "content"), "it isn't base64") from None
        return Artifact(0, content=content, execution_id=execution, **columns)

    def _read_instance(self) -> Instance:
        raw, arrival = self._document.get("instance"), self._arrival
        columns = read_row(Instance, raw, exporting.INSTANCE, ("instance",))
        self.source = raw.get("id") if isinstance(raw, dict) else None
        if not isinstance(self.source, str) or len(self.source) != len(self._ulid):
            raise refuse(("instance", "id"), "it is no id of an instance")
        columns |= {"created_at": arrival.now, "updated_at": arrival.now}
        if columns["deadline_at"] is not None:
            columns["deadline_at"] += self._shift
        columns["labels"] = list(dict.fromkeys([*columns["labels"], f"{LABEL}{self.source}"]))
        return Instance(
            0,
            self._ulid,
            arrival.version.definition_id,
            arrival.version.version_id,
            arrival.owner.type,
            arrival.owner.id,
            arrival.owner.scope,
            definition_hash=arrival.version.checksum,
            **columns,
        )

    def _read_step(self, raw: JsonObject, place: Place, number: int, scopes: int) -> StepRun:
        columns = self._read(StepRun, raw, exporting.STEP, place)
        name, execution = (self._name(raw, member, place) for member in ("id", "execution"))
        if name in self._steps:
            raise refuse((*place, "id"), "it is used twice")
        step = self._steps[name] = StepRun(
            id=-number - 1,
            instance_id=0,
            owner_scope=self._arrival.owner.scope,
            idempotency_key=f"wf:{self._ulid}:{columns['node_id']}:{columns['visit']}",
            ulid=self._give(name),
            execution_id=self._give(execution),
            retry_of=None if raw.get("retry_of") is None else self._give(self._name(raw, "retry_of", place)),
            scope_id=self._find_number(raw, "scope", place, scopes),
            **columns,
        )
        if step.scheduled_for is not None and step.status is StepStatus.QUEUED:
            step.scheduled_for += self._shift
        return step

    def _read_scope(self, raw: JsonObject, place: Place, number: int, scopes: int) -> Scope:
        columns = self._read(Scope, raw, exporting.SCOPE, place)
        parent = self._find_number(raw, "parent", place, scopes)
        return Scope(-number - 1, 0, self._find_known(raw, place), parent_scope_id=parent, **columns)

    def _read_wait(self, raw: JsonObject, place: Place, number: int) -> Wait:
        columns = self._read(Wait, raw, exporting.WAIT, place)
        owner = self._arrival.owner.scope
        wait = Wait(-number - 1, 0, self._find_known(raw, place), owner, **columns)
        if wait.status in OPEN and wait.due_at is not None and not wait.is_date:
            wait.due_at += self._shift
        if wait.match is not None and wait.event_key is not None and wait.kind is WaitKind.EVENT:
            wait.match_digest = get_digest(owner, wait.event_key, wait.match)
        return wait

    def _list(self, member: str) -> list[tuple[JsonObject, Place]]:
        rows = self._document.get(member)
        if not isinstance(rows, list):
            raise refuse((member,), "it is no list")
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                raise refuse((member, number), "it is no object")
        return [(row, (member, number)) for number, row in enumerate(rows) if isinstance(row, dict)]

    def _read(self, row: type[Any], raw: JsonObject, names: tuple[str, ...], place: Place) -> dict[str, Any]:
        columns = read_row(row, raw, names, place)
        if "status" in columns and columns["status"] is None:
            raise refuse((*place, "status"), "it is missing")
        return columns

    def _name(self, raw: JsonObject, member: str, place: Place) -> str:
        name = raw.get(member)
        if not isinstance(name, str) or not name:
            raise refuse((*place, member), "it is no id of a step")
        return name

    def _give(self, name: str) -> str:
        if name not in self._names:
            self._names[name] = next(self._arrival.ulids)
        return self._names[name]

    def _find(self, raw: JsonObject, place: Place) -> int | None:
        return None if raw.get("step") is None else self._find_known(raw, place)

    def _find_known(self, raw: JsonObject, place: Place) -> int:
        step = self._steps.get(self._name(raw, "step", place))
        if step is None:
            raise refuse((*place, "step"), "there is no such step")
        return step.id

    def _find_number(self, raw: JsonObject, member: str, place: Place, count: int) -> int | None:
        number = raw.get(member)
        if number is None:
            return None
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < count:
            raise refuse((*place, member), f"there is no such {member}")
        return -number - 1

    def _rename(self, data: JsonObject | None) -> JsonObject | None:
        """Where history names a place to go back to, it is the new run's."""
        to = None if data is None else data.get("to")
        if data is None or not isinstance(to, dict) or not isinstance(to.get("step"), str):
            return data
        return {**data, "to": {**to, "step": self._names.get(str(to["step"]), to["step"])}}


def _check(family: Family, arrival: Arrival) -> None:
    """What rows say together. What the database alone knows it refuses itself."""
    instance = family.instance
    if instance.status is None or (instance.ended_at is not None) != instance.status.is_ended:
        raise refuse(("instance", "status"), "it doesn't fit ended_at")
    if (instance.closed_reason is not None) != instance.is_ended:
        raise refuse(("instance", "closed_reason"), "it doesn't fit the status")
    if instance.status is InstanceStatus.FAILED and instance.failure_code is None:
        raise refuse(("instance", "failure_code"), "it is missing")
    limit = arrival.policy.get_limit("max_state_bytes", arrival.version.plan.settings.limits)
    if size(instance.state) > limit:
        raise refuse(("instance", "state"), f"it is over {limit} bytes")
    for number, event in enumerate(family.events):
        if event.seq != number + 1:
            raise refuse(("events", number, "seq"), f"{number + 1} is expected")
    _check_steps(family, arrival)
    _check_tokens(family)
    _check_waits(family)


def _check_steps(family: Family, arrival: Arrival) -> None:
    seen: set[tuple[Any, ...]] = set()
    for number, step in enumerate(family.steps):
        place: Place = ("steps", number)
        key = (step.node_id, step.visit, step.attempt, step.role, step.call)
        if key in seen:
            raise refuse(place, "the same attempt is there already")
        seen.add(key)
        if step.node_id not in arrival.version.plan.nodes:
            raise refuse((*place, "node_id"), "the version has no such node")
        if (step.finished_at is not None) == _is_live(step):
            raise refuse((*place, "finished_at"), "it doesn't fit the status")
        if step.counters is not None:
            _check_counters(step, family.scopes, (*place, "counters"))


def _check_counters(step: StepRun, scopes: Sequence[Scope], place: Place) -> None:
    """The numbers of a container, which must be those of its bodies while it lives."""
    stored = step.counters or {}
    numbers = [stored.get(name) for name in COUNTS]
    is_whole = all(isinstance(number, int) and not isinstance(number, bool) and number >= 0 for number in numbers)
    if (
        stored.keys() != COUNTERS
        or not is_whole
        or stored["mode"] not in MODES
        or stored["verdict"] not in (None, DONE)
    ):
        raise refuse(place, "they are no counters of a container")
    counters, mine = Counters.from_json(stored), [scope for scope in scopes if scope.step_run_id == step.id]
    running = sum(scope.status is ScopeStatus.RUNNING for scope in mine)
    if _is_live(step) and (len(mine), running) != (counters.created, counters.running) and counters.verdict is None:
        raise refuse(place, "they don't fit the bodies that are in the document")


def _check_tokens(family: Family) -> None:
    """An open run and each body that runs have one live step, all else none."""
    live = Counter(step.scope_id for step in family.steps if _is_live(step) and step.role is StepRole.STEP)
    running = [scope.id for scope in family.scopes if scope.status is ScopeStatus.RUNNING]
    places: Counter[int | None] = Counter([] if family.instance.is_ended else [None, *running])
    if live != places:
        raise refuse(("steps",), "an open instance and each body that runs have one live step, and nothing else has")


def _check_waits(family: Family) -> None:
    live = {step.id for step in family.steps if _is_live(step)}
    for number, wait in enumerate(family.waits):
        if wait.status not in OPEN:
            continue
        if wait.step_run_id not in live:
            raise refuse(("waits", number, "status"), "its step has ended")
        if wait.kind in ELSEWHERE:
            raise refuse(("waits", number, "kind"), f"what a {wait.kind} waits for isn't in the document")


def _is_live(step: StepRun) -> bool:
    return step.status is not None and step.status.is_live


def _revive(family: Family, step: StepRun, now: datetime) -> bool:
    """Let a live step go on: what ran is queued anew, what waits looks at what lies there. Whether it is ready."""
    if not _is_live(step):
        step.probe = None
        return False
    waits = [wait for wait in family.waits if wait.step_run_id == step.id and wait.status in OPEN]
    if step.status is StepStatus.RUNNING:
        step.status = StepStatus.QUEUED
        step.release_claim()
    if step.status is StepStatus.QUEUED:
        step.probe = None
        is_ready = all(wait.kind is not WaitKind.RETRY for wait in waits)
    elif step.counters is not None and not waits:
        is_ready = Counters.from_json(step.counters).has_debt
    else:
        if any(wait.kind in AWAITED for wait in waits):
            step.probe = step.probe or Probe.LOOK
        is_ready = step.probe is not None
    if family.instance.paused_at is not None and step.role is StepRole.STEP:
        step.parked_for = ParkedFor.PAUSE if step.status is StepStatus.QUEUED else None
        return False
    step.ready_at = now if is_ready else None
    return is_ready


def _write(family: Family, ready: list[StepRun], arrival: Arrival, source: str) -> Changes:
    instance, plan = family.instance, arrival.version.plan
    before = Snapshot(copy(instance), plan, arrival.policy)
    before.instance.status = None
    live = {step.id: step for step in family.steps if _is_live(step)}
    waits = {wait.id: wait for wait in family.waits if wait.status in OPEN}
    after = Snapshot(instance, plan, arrival.policy, live, waits, {scope.id: scope for scope in family.scopes})
    told: JsonObject = {"source": source, "status": instance.status, "actor": arrival.actor}
    draft = Draft(after, arrival.now)
    commanding.settle_status(draft)
    instance.status = draft.instance.status
    imported = Event(0, len(family.events) + 1, EventType.INSTANCE_IMPORTED, arrival.now, data=told)
    instance.next_seq, instance.lock_version = imported.seq + 1, 1
    return Changes(
        instance=instance,
        before=before,
        after=after,
        is_new=True,
        new_steps=family.steps,
        new_waits=family.waits,
        new_scopes=family.scopes,
        new_deliveries=family.signals,
        events=[*family.events, imported],
        failures=family.failures,
        leavings=Leavings(family.artifacts) if family.artifacts else None,
        ready=ready,
        undone=[step.id for step in family.steps if step.undone_at is not None],
    )


def count_names(document: Mapping[str, Json]) -> int:
    """How many ULIDs an import may need: of the run, of each attempt, its visit and the one before it, of artifacts."""
    steps, artifacts = document.get("steps"), document.get("artifacts")
    count = 3 * len(steps) if isinstance(steps, list) else 0
    return 1 + count + (len(artifacts) if isinstance(artifacts, list) else 0)
