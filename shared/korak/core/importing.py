"""An exported run as a new one: what has ended stays as it was, what lives goes on, and nothing recorded runs again."""

from __future__ import annotations

from collections.abc import Mapping

from korak.core import commanding
from korak.core.arriving import OPEN, Arrival, Reader
from korak.core.changes import Changes, Leavings
from korak.core.counters import Counters
from korak.core.draft import Draft
from korak.core.exporting import FORMAT, Contents
from korak.core.portable import refuse
from korak.core.rows import Event, StepRun, copy
from korak.core.snapshot import Snapshot
from korak.core.vetting import check, is_live
from korak.core.waiting import AWAITED
from korak.model import (
    EventType,
    Json,
    JsonObject,
    ParkedFor,
    Probe,
    StepRole,
    StepStatus,
    WaitKind,
)


def import_run(document: JsonObject, arrival: Arrival) -> Changes:
    """The new instance, to be written like a start. Raises Invalid("invalid_export"), with its pointer."""
    if document.get("format") != FORMAT:
        raise refuse(("format",), f"it isn't {FORMAT}")
    reader = Reader(document, arrival)
    contents = reader.read()
    check(contents, arrival)
    ready = [step for step in contents.steps if _revive(contents, step, arrival)]
    return _write(contents, ready, arrival, str(reader.source))


def _revive(contents: Contents, step: StepRun, arrival: Arrival) -> bool:
    """Let a live step go on: what ran is queued anew, what waits looks at what lies there. Whether it is ready."""
    if not is_live(step):
        step.probe = None
        return False
    waits = [wait for wait in contents.waits if wait.step_run_id == step.id and wait.status in OPEN]
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
    if contents.instance.paused_at is not None and step.role is StepRole.STEP:
        step.parked_for = ParkedFor.PAUSE if step.status is StepStatus.QUEUED else None
        return False
    step.ready_at = arrival.now if is_ready else None
    return is_ready


def _write(contents: Contents, ready: list[StepRun], arrival: Arrival, source: str) -> Changes:
    instance, plan = contents.instance, arrival.version.plan
    before = Snapshot(copy(instance), plan, arrival.policy)
    before.instance.status = None
    live = {step.id: step for step in contents.steps if is_live(step)}
    waits = {wait.id: wait for wait in contents.waits if wait.status in OPEN}
    after = Snapshot(instance, plan, arrival.policy, live, waits, {scope.id: scope for scope in contents.scopes})
    told: JsonObject = {"source": source, "status": instance.status, "actor": arrival.actor}
    draft = Draft(after, arrival.now)
    commanding.settle_status(draft)
    instance.status = draft.instance.status
    imported = Event(0, len(contents.events) + 1, EventType.INSTANCE_IMPORTED, arrival.now, data=told)
    instance.next_seq, instance.lock_version = imported.seq + 1, 1
    return Changes(
        instance=instance,
        before=before,
        after=after,
        is_new=True,
        new_steps=contents.steps,
        new_waits=contents.waits,
        new_scopes=contents.scopes,
        new_deliveries=contents.signals,
        events=[*contents.events, imported],
        failures=contents.failures,
        leavings=Leavings(contents.artifacts) if contents.artifacts else None,
        ready=ready,
        undone=[step.id for step in contents.steps if step.undone_at is not None],
    )


def count_names(document: Mapping[str, Json]) -> int:
    """How many ULIDs an import may need: of the run, of each attempt, its visit and the one before it, of artifacts."""
    steps, artifacts = document.get("steps"), document.get("artifacts")
    count = 3 * len(steps) if isinstance(steps, list) else 0
    return 1 + count + (len(artifacts) if isinstance(artifacts, list) else 0)
