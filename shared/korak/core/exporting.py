"""A run as lines, each a JSON object: all that is known of it, with names in place of row ids, and no secret."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, cast

from korak.core.portable import write_row
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
from korak.model import Json, JsonObject

FORMAT: Final = "korak.run/v2"

HEAD, END = "run", "end"
"""The kinds of the first line and of the last one, without which a document isn't whole."""

INSTANCE = (
    "trigger_type", "trigger_key", "trigger_payload", "input", "actor_mode", "starter_type", "starter_id", "status",
    "state", "result", "walk", "closed_reason", "cancel_reason", "failure_code", "failure_message", "failure_params",
    "failure_category", "failed_node_id", "steps_count", "transitions_count", "labels", "priority", "queue", "depth",
    "business_id", "run_number", "paused_at", "deadline_at", "deadline_seconds", "created_at", "started_at", "ended_at",
)  # fmt: skip
STEP = (
    "node_id", "node_type", "type_version", "visit", "attempt", "role", "call", "hook_order", "status", "outcome",
    "input", "output", "resume_signal", "error_code", "error_message", "error_params", "error_retryable",
    "error_category", "backoff_seconds", "queue", "priority", "scheduled_for", "created_at", "started_at",
    "finished_at", "probe", "counters", "flow", "undone_at",
)  # fmt: skip
SCOPE = (
    "name", "item_index", "item", "status", "state", "walk", "outcome", "output", "error", "finish_order",
    "created_at", "ended_at",
)  # fmt: skip
WAIT = (
    "kind", "status", "event_key", "match", "correlation", "mode", "condition", "poll_seconds", "payload", "outcome",
    "looks_back", "due_at", "is_date", "remaining", "fired_at", "created_at",
)  # fmt: skip
SIGNAL = ("kind", "name", "payload", "source_id", "sender", "buffered_at", "taken_at", "discarded_at", "created_at")
COMPENSATION = ("seq", "node_id", "visit", "status", "input", "state", "error", "created_at")
ARTIFACT = ("key", "kind", "metadata", "node_id", "visit", "created_at", "updated_at")
CHUNK = ("index", "node_id", "visit", "attempt", "content", "created_at")
EFFECT = ("result", "created_at")
EVENT = ("seq", "type", "node_id", "data", "created_at")
FAILURE = (
    "node_id", "source", "category", "propagation", "non_retryable", "handled", "code", "type", "message", "params",
    "trace", "created_at",
)  # fmt: skip
"""The columns that travel. Tokens, leases, keys and ids of rows are the installation's own."""

INSIDE = ("engine",)
"""Members of an event's data that are row ids."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of row: what its lines are called, and the columns that travel."""

    name: str
    row: type[Any]
    columns: tuple[str, ...]


WAITS: Final = Kind("wait", Wait, WAIT)
SCOPES: Final = Kind("scope", Scope, SCOPE)
STEPS: Final = Kind("step", StepRun, STEP)
SIGNALS: Final = Kind("signal", Delivery, SIGNAL)
EVENTS: Final = Kind("event", Event, EVENT)
FAILURES: Final = Kind("failure", Failure, FAILURE)
COMPENSATIONS: Final = Kind("compensation", Compensation, COMPENSATION)
ARTIFACTS: Final = Kind("artifact", Artifact, ARTIFACT)
CHUNKS: Final = Kind("chunk", Chunk, CHUNK)
EFFECTS: Final = Kind("effect", Effect, EFFECT)
KINDS: Final = (WAITS, SCOPES, STEPS, SIGNALS, EVENTS, FAILURES, COMPENSATIONS, ARTIFACTS, CHUNKS, EFFECTS)
"""In the order of the lines."""


def write_head(instance: Instance, definition: JsonObject, kin: JsonObject, now: datetime) -> JsonObject:
    """The first line. `definition` tells which version runs, `kin` which runs this one comes from."""
    return {
        HEAD: {
            "format": FORMAT,
            "exported_at": now.isoformat(),
            "definition": definition,
            "instance": {"id": instance.ulid, **kin, **write_row(instance, INSTANCE)},
        }
    }


def write_end(lines: int) -> JsonObject:
    """The last line; `lines` are those between it and the first."""
    return {END: {"lines": lines}}


@dataclass(eq=False)
class Writer:
    """Writes rows as lines. `steps` are the ULIDs of all attempts by row id; waits and scopes have their numbers."""

    steps: Mapping[int, str]
    scopes: Mapping[int, int]
    lines: int = 0
    _waits: dict[int, int] = field(default_factory=dict)

    def write(self, kind: Kind, row: Any) -> JsonObject:
        """One line."""
        self.lines += 1
        names = NAMES[kind](self, row)
        return {kind.name: {**names, **write_row(row, kind.columns)}}

    def name_wait(self, row: Wait) -> JsonObject:
        """A wait names its step, and is named by its place among the waits."""
        self._waits[row.id] = len(self._waits)
        return self.name_step(row)

    def name_scope(self, row: Scope) -> JsonObject:
        """A body names its container, the body around it, and where it was halted."""
        parent, halted = _find(self.scopes, row.parent_scope_id), _find(self.steps, row.halted_step_run_id)
        return {"step": self.steps[row.step_run_id], "parent": parent, "halted": halted}

    def name_attempt(self, row: StepRun) -> JsonObject:
        """An attempt, its visit, the one before it, and its body. The signal that woke it names its wait."""
        if row.resume_signal is not None:
            number = self._waits.get(cast("int", row.resume_signal.get("wait")))
            row.resume_signal = {**row.resume_signal, "wait": number}
        names: JsonObject = {"id": row.ulid, "execution": row.execution_id, "retry_of": row.retry_of}
        return {**names, "scope": _find(self.scopes, row.scope_id)}

    def name_signal(self, row: Delivery) -> JsonObject:
        """What a delivery is for."""
        return {**self.name_step(row), "wait": _find(self._waits, row.wait_id)}

    def name_step(self, row: Any) -> JsonObject:
        """The attempt that a row belongs to, if any."""
        return {"step": _find(self.steps, row.step_run_id)}

    def name_event(self, row: Event) -> JsonObject:
        """The same for a line of history, whose data lose what is the installation's own."""
        if row.data is not None:
            row.data = {name: value for name, value in row.data.items() if name not in INSIDE}
        return self.name_step(row)

    def name_compensation(self, row: Compensation) -> JsonObject:
        """The visit that it undoes, and its body; documents that are older than a second call have none."""
        return {**self.name_step(row), "scope": _find(self.scopes, row.scope_id), "call": row.call}

    def name_artifact(self, row: Artifact) -> JsonObject:
        """The visit that left it, and what it holds."""
        return {"execution": row.execution_id, "content": b64encode(row.content).decode()}

    def name_chunk(self, row: Chunk) -> JsonObject:
        """The visit that streams."""
        return {"execution": row.execution_id}

    def name_effect(self, row: Effect) -> JsonObject:
        """The visit and the effect, as one digest: no name of anybody's is stored."""
        return {"digest": row.fingerprint or row.key}


NAMES: Final[Mapping[Kind, Callable[[Writer, Any], JsonObject]]] = {
    WAITS: Writer.name_wait,
    SCOPES: Writer.name_scope,
    STEPS: Writer.name_attempt,
    SIGNALS: Writer.name_signal,
    EVENTS: Writer.name_event,
    FAILURES: Writer.name_step,
    COMPENSATIONS: Writer.name_compensation,
    ARTIFACTS: Writer.name_artifact,
    CHUNKS: Writer.name_chunk,
    EFFECTS: Writer.name_effect,
}


def _find(names: Mapping[int, Any], row_id: int | None) -> Json:
    return None if row_id is None else names.get(row_id)
