"""A run as one document: everything that is known of it, with references in it instead of row ids, and no secret."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from korak.core.portable import write_row
from korak.core.rows import Artifact, Delivery, Event, Failure, Instance, Scope, StepRun, Wait
from korak.model import Json, JsonObject

FORMAT = "korak.run/v1"

INSTANCE = (
    "trigger_type", "trigger_key", "trigger_payload", "input", "actor_mode", "starter_type", "starter_id", "status",
    "state", "result", "walk", "closed_reason", "cancel_reason", "failure_code", "failure_message", "failure_params",
    "failure_category", "failed_node_id", "steps_count", "transitions_count", "labels", "priority", "queue",
    "paused_at", "deadline_at", "deadline_seconds", "created_at", "started_at", "ended_at",
)  # fmt: skip
STEP = (
    "node_id", "node_type", "type_version", "visit", "attempt", "role", "call", "hook_order", "status", "outcome",
    "input", "output", "resume_signal", "error_code", "error_message", "error_params", "error_retryable",
    "error_category", "backoff_seconds", "queue", "priority", "scheduled_for", "created_at", "started_at",
    "finished_at", "probe", "counters", "undone_at",
)  # fmt: skip
SCOPE = (
    "name", "item_index", "item", "status", "state", "walk", "outcome", "output", "error", "finish_order",
    "created_at", "ended_at",
)  # fmt: skip
WAIT = (
    "kind", "status", "event_key", "match", "correlation", "mode", "condition", "poll_seconds", "payload", "outcome",
    "looks_back", "due_at", "is_date", "remaining", "fired_at", "created_at",
)  # fmt: skip
SIGNAL = ("kind", "name", "payload", "source_id", "sender", "taken_at", "created_at")
ARTIFACT = ("key", "kind", "metadata", "node_id", "visit", "created_at")
EVENT = ("seq", "type", "node_id", "data", "created_at")
FAILURE = (
    "node_id", "source", "category", "propagation", "non_retryable", "handled", "code", "type", "message", "params",
    "trace", "created_at",
)  # fmt: skip
"""The columns that travel. Tokens, leases, keys and ids of rows are the installation's own."""

INSIDE = ("engine",)
"""Members of an event's data that are row ids."""


@dataclass(eq=False)
class Contents:
    """An instance and everything below it, each kind in the order in which it came to be."""

    instance: Instance
    steps: list[StepRun] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    signals: list[Delivery] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    artifacts: list[Artifact] = field(default_factory=list)


def write_document(contents: Contents, definition: JsonObject, now: datetime) -> JsonObject:
    """The document. `definition` tells which version runs; steps are named by their ids, scopes and waits by number."""
    steps = {step.id: step.ulid for step in contents.steps}
    scopes = {scope.id: number for number, scope in enumerate(contents.scopes)}
    waits = {wait.id: number for number, wait in enumerate(contents.waits)}
    document: JsonObject = {
        "format": FORMAT,
        "exported_at": now.isoformat(),
        "definition": definition,
        "instance": {"id": contents.instance.ulid, **write_row(contents.instance, INSTANCE)},
        "steps": [_write_step(step, scopes) for step in contents.steps],
        "scopes": [
            {"step": steps[row.step_run_id], "parent": _find(scopes, row.parent_scope_id), **write_row(row, SCOPE)}
            for row in contents.scopes
        ],
        "waits": [{"step": steps[row.step_run_id], **write_row(row, WAIT)} for row in contents.waits],
        "signals": [
            {"step": _find(steps, row.step_run_id), "wait": _find(waits, row.wait_id), **write_row(row, SIGNAL)}
            for row in contents.signals
        ],
        "events": _write_events(contents.events, steps),
        "failures": [{"step": _find(steps, row.step_run_id), **write_row(row, FAILURE)} for row in contents.failures],
        "artifacts": [
            {"execution": row.execution_id, "content": b64encode(row.content).decode(), **write_row(row, ARTIFACT)}
            for row in contents.artifacts
        ],
    }
    return document


def _write_step(step: StepRun, scopes: Mapping[int, int]) -> Json:
    names: JsonObject = {"id": step.ulid, "execution": step.execution_id, "retry_of": step.retry_of}
    return {**names, "scope": _find(scopes, step.scope_id), **write_row(step, STEP)}


def _write_events(events: Iterable[Event], steps: Mapping[int, str]) -> list[Json]:
    written: list[Json] = []
    for event in events:
        row = write_row(event, EVENT)
        data = row["data"]
        if isinstance(data, dict):
            row["data"] = {name: value for name, value in data.items() if name not in INSIDE}
        written.append({"step": _find(steps, event.step_run_id), **row})
    return written


def _find(names: Mapping[int, Any], row_id: int | None) -> Any:
    return None if row_id is None else names.get(row_id)
