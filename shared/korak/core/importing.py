"""An exported run as a new one: what has ended stays as it was, what lives goes on, and nothing recorded runs again."""

from __future__ import annotations

from typing import Any

from korak.core import commanding, nesting, telling, undoing
from korak.core.arriving import Arrival, Head, Reader
from korak.core.counters import Counters
from korak.core.draft import Draft
from korak.core.exporting import END, HEAD, KINDS, STEPS, Kind
from korak.core.portable import refuse
from korak.core.rows import Event, Instance, StepRun, Wait
from korak.core.snapshot import Snapshot
from korak.core.vetting import Vetting, check_instance, is_live
from korak.core.waiting import AWAITED
from korak.model import EventType, Json, JsonObject, ParkedFor, Probe, StepRole, StepStatus, WaitKind

ORDER: dict[str, int] = {kind.name: place for place, kind in enumerate(KINDS)}


class Import:
    """A document that comes in line by line. Raises Invalid("invalid_export") with the place of what is wrong.

    The first element of a place is the number of its line, from 0 on.
    """

    def __init__(self, head: Head, arrival: Arrival) -> None:
        self._head, self._arrival = head, arrival
        self._reader = Reader(head, arrival)
        self._instance: Instance = self._reader.read_instance()
        check_instance(self._instance, arrival)
        self._vetting = Vetting(self._instance, arrival)
        self._lines = 0
        self._kind = 0
        self._is_whole = False

    def take(self, line: Json) -> tuple[Kind, Any] | None:
        """The next line's row, to be written; None for the last line."""
        number = self._lines + 1 + self._is_whole
        if not isinstance(line, dict) or len(line) != 1:
            raise refuse((number,), "it is no object with one member")
        [(name, raw)] = line.items()
        if self._is_whole:
            raise refuse((number,), "it stands behind the last line")
        if name == END:
            self._end(raw, number)
            return None
        place = ORDER.get(name, -1)
        if place < self._kind:
            raise refuse((number,), f"a line of this kind can't stand here: {', '.join((HEAD, *ORDER, END))}")
        self._kind, self._lines = place, number
        kind = KINDS[place]
        row, at = self._reader.read(kind, raw, number)
        self._vetting.look(kind, row, at)
        if kind is STEPS:
            _settle(self._instance, row, self._arrival)
            _revive(self._instance, row, self._vetting.waits.get(row.id, []), self._arrival)
        return kind, row

    def finish(self) -> tuple[Instance, Event]:
        """The run as it goes on, and the line of its history that tells where it came from."""
        if not self._is_whole:
            raise refuse((self._lines + 1,), "the document is cut off")
        self._reader.check()
        self._vetting.finish()
        instance, arrival = self._instance, self._arrival
        _part(instance)
        live, waits = self._vetting.live, [wait for waits in self._vetting.waits.values() for wait in waits]
        after = Snapshot(instance, arrival.version.plan, arrival.policy, live, {wait.id: wait for wait in waits})
        draft = Draft(after, arrival.now)
        commanding.settle_status(draft)
        told: JsonObject = {"source": self._head.source, "status": instance.status, "actor": arrival.actor}
        instance.status = draft.instance.status
        seq = self._vetting.events + 1
        instance.next_seq, instance.lock_version = seq + 1, 1
        return instance, Event(instance.id, seq, EventType.INSTANCE_IMPORTED, arrival.now, data=told)

    def _end(self, raw: Json, number: int) -> None:
        lines = raw.get("lines") if isinstance(raw, dict) else None
        if lines != self._lines:
            raise refuse((number, END, "lines"), f"{self._lines} lines have come")
        self._is_whole = True


def _part(instance: Instance) -> None:
    """What is between it and other runs stays where it was: their row ids, their promises, the room that it held.

    What it owes are hooks that there are.
    """
    walk: JsonObject = dict(instance.walk or {})
    cleaning, flow = walk.pop(telling.CLEANING, None), walk.get("flow")
    if isinstance(cleaning, dict) and cleaning.get("children"):
        raise refuse((0, HEAD, "instance", "walk"), "it waits until runs that it has started have cleaned up")
    if undoing.OWED in walk:
        owed = walk[undoing.OWED]
        walk[undoing.OWED] = {role.value: True for role in undoing.ORDER if isinstance(owed, dict) and role in owed}
    if isinstance(flow, dict):
        walk["flow"] = {**flow, "is_in": False}
    instance.walk = walk if instance.walk is not None else None


def _settle(instance: Instance, step: StepRun, arrival: Arrival) -> None:
    """What an attempt runs, and for whom it waits, is what the version says here: holds go by that."""
    node = arrival.version.plan.find(step.node_id, step.role)
    assert node is not None, "it was vetted"
    step.node_type, step.type_version = node.type, node.type_version
    step.queue = node.queue or instance.queue or "default"


def _revive(instance: Instance, step: StepRun, waits: list[Wait], arrival: Arrival) -> None:
    """Let a live step go on: what ran is queued anew, what waits looks at what lies there."""
    if not is_live(step):
        step.probe = None
        if nesting.is_childs(step) and step.status is not StepStatus.COMPLETED:
            step.resume_signal = None  # a retry can't bid that run go on from here: it starts another one
        return
    if step.status is StepStatus.RUNNING:
        step.status = StepStatus.QUEUED
        step.release_claim()
    if step.status is StepStatus.QUEUED:
        step.probe = None
        is_ready = all(wait.kind is not WaitKind.RETRY for wait in waits)
    elif step.counters is not None and not waits:
        is_ready = Counters.from_json(step.counters).has_debt(arrival.policy.pages)
    else:
        if any(wait.kind in AWAITED for wait in waits):
            step.probe = step.probe or Probe.LOOK
        is_ready = step.probe is not None
    if instance.paused_at is not None and step.role is StepRole.STEP:
        step.parked_for = ParkedFor.PAUSE if step.status is StepStatus.QUEUED else None
        return
    step.ready_at = arrival.now if is_ready else None
