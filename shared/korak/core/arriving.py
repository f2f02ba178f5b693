"""An exported document as rows of a new run: every reference that it holds becomes an id of that run's own."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from korak.core import exporting
from korak.core.exporting import Contents
from korak.core.opening import Owner, Version
from korak.core.portable import Place, read_row, read_time, refuse
from korak.core.rows import Artifact, Delivery, Event, Failure, Instance, Scope, StepRun, Wait
from korak.core.snapshot import Policy
from korak.core.waiting import get_digest
from korak.model import (
    Json,
    JsonObject,
    StepStatus,
    WaitKind,
    WaitStatus,
)

LABEL = "imported_from:"
"""With the id that the run had where it was exported, a label of every import."""

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


class Reader:
    """Reads the rows, with ids of the draft's own in place of the document's references."""

    def __init__(self, document: JsonObject, arrival: Arrival) -> None:
        self._document, self._arrival = document, arrival
        self._shift: timedelta = arrival.now - read_time(document.get("exported_at"), ("exported_at",))
        self._ulid = next(arrival.ulids)
        self._names: dict[str, str] = {}
        self._steps: dict[str, StepRun] = {}
        self.source: Json = None

    def read(self) -> Contents:
        """Everything in the document."""
        found = Contents(self._read_instance())
        heads = self._list("scopes")
        for number, (raw, place) in enumerate(self._list("steps")):
            found.steps.append(self._read_step(raw, place, number, len(heads)))
        found.scopes = [self._read_scope(raw, place, number, len(heads)) for number, (raw, place) in enumerate(heads)]
        for step in found.steps:
            if step.scope_id is not None:
                step.parent_step_run_id = found.scopes[-step.scope_id - 1].step_run_id
        found.waits = [self._read_wait(raw, place, number) for number, (raw, place) in enumerate(self._list("waits"))]
        for raw, place in self._list("signals"):
            columns = self._read(Delivery, raw, exporting.SIGNAL, place)
            wait = self._find_number(raw, "wait", place, len(found.waits))
            made = Delivery(
                0, 0, self._arrival.owner.scope, step_run_id=self._find(raw, place), wait_id=wait, **columns
            )
            found.signals.append(made)
        for raw, place in self._list("events"):
            columns = self._read(Event, raw, exporting.EVENT, place)
            columns["data"] = self._rename(columns["data"])
            found.events.append(Event(0, step_run_id=self._find(raw, place), **columns))
        for raw, place in self._list("failures"):
            columns = self._read(Failure, raw, exporting.FAILURE, place)
            found.failures.append(Failure(0, step_run_id=self._find(raw, place), **columns))
        found.artifacts = [self._read_artifact(raw, place) for raw, place in self._list("artifacts")]
        return found

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
