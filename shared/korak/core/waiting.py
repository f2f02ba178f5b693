"""Having a step wait, and stopping and starting the clocks of what it waits for."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from typing import Any

from korak.core.draft import Draft
from korak.core.rows import StepRun, Wait
from korak.graphs.conditions import compile_condition
from korak.graphs.durations import compile_duration
from korak.graphs.hygiene import canonical
from korak.graphs.paths import parse
from korak.model import (
    EventType,
    Json,
    JsonObject,
    Probe,
    StepStatus,
    WaitKind,
    WaitStatus,
)
from korak.steps.waits import WaitItem, WaitSpec

POLL_FLOOR = 60.0
"""Seconds between two looks at a condition: by default, and at the least."""

AWAITED = (WaitKind.SIGNAL, WaitKind.EVENT)


def park(draft: Draft, step: StepRun, spec: WaitSpec, output: JsonObject) -> None:
    """Let the step wait for `spec`. What came before it waited is looked at right after the commit, if it can matter.

    Raises a KorakError where the spec can't be waited for, before anything is changed.
    """
    items = [(item, _get_columns(draft, item)) for item in spec.correlate(draft.get_state(step.scope_id)).items]
    draft.cancel_waits(step)
    step = draft.move(step, StepStatus.WAITING) if step.status is not StepStatus.WAITING else draft.edit(step)
    step.output = output
    step.started_at = step.started_at or draft.now
    for item, columns in items:
        wait = draft.add_wait(step, item.kind, **columns)
        if draft.instance.paused_at is not None:
            suspend(draft, wait)
    draft.record(EventType.STEP_WAITING, step, {"visit": step.visit, "for": [item.kind for item, _ in items]})
    draft.clear_ready(step)
    if spec.wants_probe:
        step.probe = Probe.RESUME
    elif any(item.kind in AWAITED for item, _ in items):
        step.probe = Probe.LOOK
    if step.probe is not None:
        draft.make_ready(step)


def _get_columns(draft: Draft, item: WaitItem) -> dict[str, Any]:
    mode = item.mode if item.group else None
    columns: dict[str, Any] = {"event_key": item.key, "outcome": item.outcome, "mode": mode}
    if item.kind in AWAITED:
        match = dict(item.match or {})
        columns["match"] = match
        for path in match:
            parse(path)
        if item.kind is WaitKind.EVENT and item.key is not None:
            columns["looks_back"] = bool(match) and item.since != "now"
            columns["match_digest"] = get_digest(draft.instance.owner_scope, item.key, match)
    if item.kind is WaitKind.CONDITION:
        compile_condition(item.condition)
        poll = draft.policy.poll if item.poll is None else _count_seconds(draft, item.poll)
        columns |= {"condition": item.condition, "poll_seconds": max(POLL_FLOOR, poll)}
        columns["due_at"] = draft.now + timedelta(seconds=max(POLL_FLOOR, poll))
    if item.due is not None:
        columns["due_at"] = _get_due(draft, item.due)
        columns["is_date"] = not item.is_relative
    return columns


def _get_due(draft: Draft, due: datetime | Json) -> datetime:
    if isinstance(due, datetime):
        return due
    return compile_duration(due).after(draft.now, draft.plan.settings.timezone)


def _count_seconds(draft: Draft, duration: Json) -> float:
    return (_get_due(draft, duration) - draft.now).total_seconds()


def get_digest(owner_scope: str, name: str, match: JsonObject) -> str:
    """What an event wait and an event that it takes have in common: owner, key, and the values at `match`'s paths."""
    return hashlib.sha256(canonical([owner_scope, name, match])).hexdigest()


def suspend(draft: Draft, wait: Wait) -> None:
    """Stop a wait's clock while the run is paused; a date that the author gave stays and fires at the resume."""
    if wait.status is not WaitStatus.PENDING or wait.is_date:
        return
    wait = draft.move_wait(wait, WaitStatus.SUSPENDED)
    if wait.due_at is not None:
        wait.remaining, wait.due_at = max(0.0, (wait.due_at - draft.now).total_seconds()), None


def unsuspend(draft: Draft, wait: Wait) -> None:
    """Let a suspended wait's clock go on with what remained."""
    if wait.status is not WaitStatus.SUSPENDED:
        return
    remaining = wait.remaining
    wait = draft.move_wait(wait, WaitStatus.PENDING)
    wait.remaining = None
    if remaining is not None:
        wait.due_at = draft.now + timedelta(seconds=remaining)
        if wait.kind is WaitKind.RETRY and (step := draft.get_step(wait.step_run_id)) is not None:
            draft.edit(step).scheduled_for = wait.due_at
