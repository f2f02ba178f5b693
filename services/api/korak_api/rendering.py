"""The shapes of answers: rows as DESIGN 8 shows them, without row ids, and without what only operators may read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypeAlias

from korak.codes import MESSAGES, render
from korak.core.rows import StepRun
from korak.core.states import WROTE, list_written
from korak.graphs.plans import Plan
from korak.model import APP_WIDE, EventType, JsonObject, StepStatus
from korak.owners.tokens import Token
from korak.steps import artifacts
from korak.store.definitions import Definition
from korak.store.versions import Version

Shown: TypeAlias = dict[str, Any]
"""An object of an answer."""

HIDDEN = "exception"
"""The code of an unknown exception: its text and trace may hold anything, so only some see them."""

INSIDE = frozenset({"engine"})
"""What history keeps for the engine itself: row ids."""


def show_time(moment: datetime | None) -> str | None:
    """A time as ISO 8601 in UTC."""
    return None if moment is None else moment.isoformat().replace("+00:00", "Z")


def show_owner(scope: str) -> str | None:
    """An owner; None for what is the application's."""
    return None if scope == APP_WIDE else scope


def show_message(code: str, message: str | None, params: Mapping[str, Any] | None, *, sees_failures: bool) -> str:
    """A message: one of ours is rendered, a step's own is its author's, an unknown exception's text is shown to few."""
    if code == HIDDEN:
        return message if sees_failures and message else render(code)
    if code in MESSAGES and not message:
        return render(code, params)
    return message or render(code, params)


def show_params(code: str, params: Mapping[str, Any] | None, *, sees_failures: bool) -> Shown:
    """What a message is made of: the pointer of what was wrong, the limit that was passed."""
    return {} if params is None or (code == HIDDEN and not sees_failures) else dict(params)


def show_step(
    step: StepRun, *, branch: str | None = None, beat: JsonObject | None = None, sees_failures: bool
) -> Shown:
    """One attempt, with its last heartbeat. `id` is its own, `execution` is the same for all attempts of a visit."""
    return {
        "id": step.ulid,
        "execution": step.execution_id,
        "node": step.node_id,
        "type": step.node_type,
        "type_version": step.type_version,
        "branch": branch,
        "role": step.role,
        "order": step.hook_order,
        "visit": step.visit,
        "attempt": step.attempt,
        "retry": _show_retry(step),
        "status": step.status,
        "parked_for": step.parked_for,
        "outcome": step.outcome if step.status is not StepStatus.FAILED or step.outcome else None,
        "input": step.input,
        "output": step.output,
        "error": _show_error(step, sees_failures=sees_failures),
        "progress": None if beat is None else beat.get("progress"),
        "heartbeat_at": None if beat is None else show_time(datetime.fromisoformat(str(beat["at"]))),
        "idempotency_key": step.idempotency_key,
        "queue": step.queue,
        "created_at": show_time(step.created_at),
        "started_at": show_time(step.started_at),
        "finished_at": show_time(step.finished_at),
        "scheduled_for": show_time(step.scheduled_for),
        "undone_at": show_time(step.undone_at),
    }


def _show_retry(step: StepRun) -> Shown | None:
    if step.retry_of is None:
        return None
    return {
        "of": step.execution_id,
        "after_attempt_id": step.retry_of,
        "after_attempt": step.attempt - 1,
        "backoff_seconds": step.backoff_seconds,
    }


def _show_error(step: StepRun, *, sees_failures: bool) -> Shown | None:
    if step.error_code is None:
        return None
    message = show_message(step.error_code, step.error_message, step.error_params, sees_failures=sees_failures)
    return {
        "code": step.error_code,
        "message": message,
        "params": show_params(step.error_code, step.error_params, sees_failures=sees_failures),
        "retryable": step.error_retryable,
        "category": step.error_category,
    }


def show_event(row: Mapping[str, Any], plan: Plan | None) -> Shown:
    """One line of history. That of a completed step tells which keys of the state it wrote, and with what."""
    data = {name: value for name, value in (row["data"] or {}).items() if name not in INSIDE}
    if row["type"] == EventType.STEP_COMPLETED and plan is not None:
        data[WROTE] = list_written(plan.nodes.get(row["node_id"]), row["output"], data)
    return {
        "seq": row["seq"],
        "type": row["type"],
        "node": row["node_id"],
        "step": row["step"],
        "data": data,
        "at": show_time(row["created_at"]),
    }


def show_chunk(row: Mapping[str, Any]) -> Shown:
    """One chunk of a step that streams."""
    return {
        "execution": row["execution_id"],
        "node": row["node_id"],
        "visit": row["visit"],
        "attempt": row["attempt"],
        "index": row["index"],
        "content": row["content"],
        "at": show_time(row["created_at"]),
    }


def show_artifact(row: Mapping[str, Any]) -> Shown:
    """One artifact; `content` is null where it wasn't asked for. One from outside belongs to no node."""
    content = row["content"]
    return {
        "key": row["key"],
        "kind": row["kind"],
        "size": row["size"],
        "metadata": row["metadata"],
        "node": row["node_id"],
        "visit": row["visit"],
        "execution": row["execution_id"],
        "created_at": show_time(row["created_at"]),
        "updated_at": show_time(row["updated_at"]),
        "content": None if content is None else artifacts.show(row["kind"], content),
    }


def show_wait(row: Mapping[str, Any]) -> Shown:
    """One wait of one attempt."""
    return {
        "node": row["node_id"],
        "step": row["step"],
        "kind": row["kind"],
        "status": row["status"],
        "name": row["event_key"],
        "match": row["match"],
        "mode": row["mode"],
        "condition": row["condition"],
        "outcome": row["outcome"],
        "payload": row["payload"],
        "remaining_seconds": row["remaining"],
        "since": show_time(row["created_at"]),
        "due_at": show_time(row["due_at"]),
        "fired_at": show_time(row["fired_at"]),
    }


def show_failure(row: Mapping[str, Any], *, sees_failures: bool) -> Shown:
    """One failure. The type, text and trace of an unknown exception are for those who may see them."""
    is_open = sees_failures or row["code"] != HIDDEN
    return {
        "node": row["node_id"],
        "step": row["step"],
        "source": row["source"],
        "category": row["category"],
        "propagation": row["propagation"],
        "non_retryable": row["non_retryable"],
        "handled": row["handled"],
        "code": row["code"],
        "type": row["type"] if is_open else None,
        "message": show_message(row["code"], row["message"], row["params"], sees_failures=sees_failures),
        "params": show_params(row["code"], row["params"], sees_failures=sees_failures),
        "trace": row["trace"] if sees_failures else None,
        "at": show_time(row["created_at"]),
    }


def show_definition(definition: Definition, *, input_schema: JsonObject | None = None) -> Shown:
    """A definition with the graph of its draft, else of its current version."""
    return {
        **show_definition_head(definition),
        "graph": definition.graph,
        "input_schema": input_schema,
    }


def show_definition_head(definition: Definition) -> Shown:
    """A definition without its graph, as lists show it."""
    return {
        "key": definition.key,
        "name": definition.name,
        "description": definition.description,
        "owner": show_owner(definition.owner_scope),
        "status": definition.status,
        "version": definition.version,
        "checksum": definition.checksum,
        "published_checksum": definition.published_checksum,
        "has_draft": definition.has_draft,
        "created_at": show_time(definition.created_at),
        "updated_at": show_time(definition.updated_at),
    }


def show_version(key: str, version: Version) -> Shown:
    """A version without its graph."""
    return {
        "definition": key,
        "number": version.number,
        "status": version.status,
        "label": version.label,
        "checksum": version.checksum,
        "published_at": show_time(version.published_at),
        "publisher": version.publisher,
    }


def show_token(token: Token, *, secret: str | None = None) -> Shown:
    """A token; its secret only where it was just made."""
    credential = token.credential
    shown: Shown = {
        "id": token.id,
        "name": credential.name,
        "owner": show_owner(credential.owner_scope),
        "roles": sorted(role.value for role in credential.roles),
        "user": credential.user,
        "created_at": show_time(token.created_at),
        "expires_at": show_time(token.expires_at),
        "revoked_at": show_time(token.revoked_at),
    }
    return shown if secret is None else {**shown, "token": secret}
