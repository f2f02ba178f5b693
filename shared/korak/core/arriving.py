"""The lines of an exported run as rows of a new one: every name that they hold becomes an id of that run's own."""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from korak.core import exporting
from korak.core.exporting import FORMAT, Kind
from korak.core.naming import Ids, find_name, find_number, read_name, read_text
from korak.core.opening import Owner, Version
from korak.core.portable import Place, move_time, read_row, read_time, refuse
from korak.core.rooms import shorten
from korak.core.rows import (
    Artifact,
    Chunk,
    Compensation,
    Delivery,
    Effect,
    Event,
    Failure,
    Instance,
    Scope,
    StepRun,
    Wait,
)
from korak.core.snapshot import Policy
from korak.core.waiting import get_digest
from korak.model import Json, JsonObject, StepRole, StepStatus, WaitKind, WaitStatus

LABEL = "imported_from:"
"""With the id that the run had where it was exported, a label of an import that got another one."""

SEPARATOR: Final = "\x1f"

DIGEST: Final = re.compile(r"[0-9a-f]{64}")

OPEN = (WaitStatus.PENDING, WaitStatus.SUSPENDED)


@dataclass(frozen=True, slots=True)
class Arrival:
    """Where a document comes in: the version that it runs, whose it is, who brought it, and what the run is there.

    Where it `keeps` the names that it has, `ulid` is its own and `ulids`, which are free ones, aren't needed. `take`
    gives the next row id of a table.
    """

    version: Version
    owner: Owner
    actor: JsonObject | None
    instance_id: int
    ulid: str
    ulids: Iterator[str]
    keeps: bool
    take: Callable[[str], int]
    policy: Policy
    now: datetime


@dataclass(frozen=True, slots=True)
class Head:
    """The first line: which version runs, and the run itself."""

    exported_at: datetime
    source: str
    key: str
    checksum: str
    instance: JsonObject
    parent: str | None
    parent_step: str | None


def read_head(line: Json) -> Head:
    """What the first line says. Raises Invalid("invalid_export"), as everything here does, with the place."""
    place: Place = (0, exporting.HEAD)
    head = line.get(exporting.HEAD) if isinstance(line, dict) and len(line) == 1 else None
    if not isinstance(head, dict):
        raise refuse((0,), "it doesn't begin as an exported run does")
    if head.get("format") != FORMAT:
        raise refuse((*place, "format"), f"it isn't {FORMAT}")
    instance, definition = head.get("instance"), head.get("definition")
    if not isinstance(instance, dict):
        raise refuse((*place, "instance"), "it is no object")
    if not isinstance(definition, dict):
        raise refuse((*place, "definition"), "it is no object")
    if instance.get("parent") == instance.get("id"):
        raise refuse((*place, "instance", "parent"), "it is the run itself")
    return Head(
        read_time(head.get("exported_at"), (*place, "exported_at")),
        read_name(instance, "id", (*place, "instance")),
        read_text(definition, "key", (*place, "definition")),
        read_text(definition, "checksum", (*place, "definition")),
        instance,
        find_name(instance, "parent", (*place, "instance")),
        find_name(instance, "parent_step", (*place, "instance")),
    )


class Reader:
    """Reads lines behind the first one. What they name before it came must have come by the end."""

    def __init__(self, head: Head, arrival: Arrival) -> None:
        self._head, self._arrival = head, arrival
        self._shift: timedelta = arrival.now - head.exported_at
        self._names: dict[str, str] = {}
        self._steps: Ids[str] = Ids(lambda: arrival.take("workflow_step_runs"), "step")
        self._scopes: Ids[int] = Ids(lambda: arrival.take("workflow_scopes"), "scope")
        self._waits: Ids[int] = Ids(lambda: arrival.take("workflow_waits"), "wait")
        self._containers: dict[int, int] = {}
        self._count: dict[str, int] = {}

    def read_instance(self) -> Instance:
        """The run."""
        arrival, place = self._arrival, (0, exporting.HEAD, "instance")
        columns = read_row(Instance, self._head.instance, exporting.INSTANCE, place)
        columns["updated_at"], columns["queue"] = arrival.now, arrival.version.plan.settings.queue
        if columns["deadline_at"] is not None:
            columns["deadline_at"] = move_time(columns["deadline_at"], self._shift, (*place, "deadline_at"))
        if not arrival.keeps:
            columns["business_id"], columns["run_number"] = None, 1
            columns["labels"] = list(dict.fromkeys([*columns["labels"], f"{LABEL}{self._head.source}"]))
        return Instance(
            arrival.instance_id,
            arrival.ulid,
            arrival.version.definition_id,
            arrival.version.version_id,
            arrival.owner.type,
            arrival.owner.id,
            arrival.owner.scope,
            definition_hash=arrival.version.checksum,
            **columns,
        )

    def read(self, kind: Kind, raw: Json, number: int) -> tuple[Any, Place]:
        """The row of a line, and its place."""
        place: Place = (number, kind.name)
        columns = read_row(kind.row, raw, kind.columns, place)
        if "status" in columns and columns["status"] is None:
            raise refuse((*place, "status"), "it is missing")
        given: JsonObject = raw if isinstance(raw, dict) else {}
        return READERS[kind](self, given, columns, place), place

    def check(self) -> None:
        """Whether all that lines have named has come."""
        for ids in (self._steps, self._scopes, self._waits):
            ids.check()

    def get_container(self, scope_id: int | None) -> int | None:
        """The attempt of the container that a body belongs to."""
        return None if scope_id is None else self._containers.get(scope_id)

    def read_step(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> StepRun:
        """An attempt. What it was claimed under is left behind."""
        name, execution = read_name(raw, "id", place), read_name(raw, "execution", place)
        retry_of, scope_id = find_name(raw, "retry_of", place), self._find_scope(raw, "scope", place)
        key = f"wf:{self._arrival.ulid}:{columns['node_id']}:{columns['visit']}"
        if columns["role"] is StepRole.COMPENSATE:
            key += f":{StepRole.COMPENSATE}"
        if columns["resume_signal"] is not None:
            columns["resume_signal"] = self._read_signal(columns["resume_signal"], (*place, "resume_signal"))
        columns["flow"] = columns["flow"] and [shorten(key) for key in columns["flow"]]
        step = StepRun(
            id=self._steps.define(name, (*place, "id")),
            instance_id=self._arrival.instance_id,
            owner_scope=self._arrival.owner.scope,
            idempotency_key=key,
            ulid=self._rename(name),
            execution_id=self._rename(execution),
            retry_of=None if retry_of is None else self._rename(retry_of),
            scope_id=scope_id,
            parent_step_run_id=self.get_container(scope_id),
            **columns,
        )
        if step.scheduled_for is not None and step.status is StepStatus.QUEUED:
            step.scheduled_for = move_time(step.scheduled_for, self._shift, (*place, "scheduled_for"))
        return step

    def read_scope(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> Scope:
        """A body; scopes are named by their place among the scopes."""
        step_id = self._read_step_id(raw, place)
        halted = find_name(raw, "halted", place)
        scope = Scope(
            self._scopes.define(self._get_number("scope"), place),
            self._arrival.instance_id,
            step_id,
            parent_scope_id=self._find_scope(raw, "parent", place),
            halted_step_run_id=None if halted is None else self._steps.mention(halted, (*place, "halted")),
            **columns,
        )
        self._containers[scope.id] = step_id
        return scope

    def read_wait(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> Wait:
        """What a step waits for, with the time that remained."""
        owner, number = self._arrival.owner.scope, self._get_number("wait")
        step_id, wait_id = self._read_step_id(raw, place), self._waits.define(number, place)
        wait = Wait(wait_id, self._arrival.instance_id, step_id, owner, **columns)
        if wait.status in OPEN and wait.due_at is not None and not wait.is_date:
            wait.due_at = move_time(wait.due_at, self._shift, (*place, "due_at"))
        if wait.match is not None and wait.event_key is not None and wait.kind is WaitKind.EVENT:
            wait.match_digest = get_digest(owner, wait.event_key, wait.match)
        return wait

    def read_signal(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> Delivery:
        """What was addressed to the run. Who asked to be told of its end was a run where it comes from."""
        number = find_number(raw, "wait", place)
        if columns["sender"] is not None:
            columns["sender"] = {name: value for name, value in columns["sender"].items() if name != "asks"}
        return Delivery(
            0,
            self._arrival.instance_id,
            self._arrival.owner.scope,
            step_run_id=self._find_step_id(raw, place),
            wait_id=None if number is None else self._waits.mention(number, (*place, "wait")),
            **columns,
        )

    def read_event(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> Event:
        """A line of history. Where it names a place to go back to, it is the new run's."""
        data = columns["data"]
        to = None if data is None else data.get("to")
        if isinstance(to, dict) and isinstance(to.get("step"), str):
            columns["data"] = {**data, "to": {**to, "step": self._names.get(str(to["step"]), to["step"])}}
        return Event(self._arrival.instance_id, step_run_id=self._find_step_id(raw, place), **columns)

    def read_failure(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> Failure:
        """A failure."""
        return Failure(self._arrival.instance_id, step_run_id=self._find_step_id(raw, place), **columns)

    def read_compensation(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> Compensation:
        """What undoes a visit."""
        scope_id = self._find_scope(raw, "scope", place)
        columns |= read_row(Compensation, {"call": 1, **raw}, ("call",), place)
        return Compensation(
            self._arrival.instance_id, step_run_id=self._read_step_id(raw, place), scope_id=scope_id, **columns
        )

    def read_artifact(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> Artifact:
        """What the run keeps under a name."""
        execution = find_name(raw, "execution", place)
        if len({each is None for each in (execution, columns["node_id"], columns["visit"])}) > 1:
            raise refuse((*place, "execution"), "node_id, visit and execution go together")
        try:
            content = b64decode(str(raw.get("content")), validate=True)
        except ValueError:
            raise refuse((*place, "content"), "it isn't base64") from None
        columns["updated_at"] = columns["updated_at"] or columns["created_at"]
        left_by = None if execution is None else self._rename(execution)
        return Artifact(self._arrival.instance_id, content=content, execution_id=left_by, **columns)

    def read_chunk(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> Chunk:
        """A part of a stream."""
        execution = self._rename(read_name(raw, "execution", place))
        return Chunk(self._arrival.instance_id, execution, **columns)

    def read_effect(self, raw: JsonObject, columns: dict[str, Any], place: Place) -> Effect:
        """What a visit has done once where the run comes from, under a key that only this run's steps look for."""
        digest = read_text(raw, "digest", place)
        if not DIGEST.fullmatch(digest):
            raise refuse((*place, "digest"), "it is no digest")
        key = hashlib.sha256(SEPARATOR.join(("carried", self._arrival.ulid, digest)).encode()).hexdigest()
        return Effect(self._arrival.instance_id, key, fingerprint=digest, **columns)

    def _read_signal(self, raw: JsonObject, place: Place) -> JsonObject:
        number = find_number(raw, "wait", place)
        return {**raw, "wait": None if number is None else self._waits.mention(number, (*place, "wait"))}

    def _rename(self, name: str) -> str:
        if self._arrival.keeps:
            return name
        if name not in self._names:
            self._names[name] = next(self._arrival.ulids)
        return self._names[name]

    def _get_number(self, kind: str) -> int:
        self._count[kind] = self._count.get(kind, -1) + 1
        return self._count[kind]

    def _read_step_id(self, raw: JsonObject, place: Place) -> int:
        return self._steps.mention(read_name(raw, "step", place), (*place, "step"))

    def _find_step_id(self, raw: JsonObject, place: Place) -> int | None:
        return None if raw.get("step") is None else self._read_step_id(raw, place)

    def _find_scope(self, raw: JsonObject, member: str, place: Place) -> int | None:
        number = find_number(raw, member, place)
        return None if number is None else self._scopes.mention(number, (*place, member))


READERS: Final[Mapping[Kind, Callable[[Reader, JsonObject, dict[str, Any], Place], Any]]] = {
    exporting.WAITS: Reader.read_wait,
    exporting.SCOPES: Reader.read_scope,
    exporting.STEPS: Reader.read_step,
    exporting.SIGNALS: Reader.read_signal,
    exporting.EVENTS: Reader.read_event,
    exporting.FAILURES: Reader.read_failure,
    exporting.COMPENSATIONS: Reader.read_compensation,
    exporting.ARTIFACTS: Reader.read_artifact,
    exporting.CHUNKS: Reader.read_chunk,
    exporting.EFFECTS: Reader.read_effect,
}
