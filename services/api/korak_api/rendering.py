"""The shapes of answers: rows as DESIGN 8 shows them, without row ids, and without what only operators may read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

from korak.core.changes import Changes
from korak.core.rows import Instance, StepRun, Wait
from korak.errors import MESSAGES, render
from korak.model import APP_WIDE, InstanceStatus, JsonObject, Priority, StepRole, StepStatus, WaitKind
from korak.owners.tokens import Token
from korak.store.definitions import Definition, Version
from korak.store.instances import PAUSED, View

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


def view_changes(changes: Changes, version: int) -> View:
    """The instance as it stands once these changes are committed."""
    after = changes.after
    return View(
        instance=after.instance,
        definition=after.plan.key,
        version=version,
        steps=tuple(after.steps.values()),
        waits=tuple(after.waits.values()),
        is_final=any(failure.propagation == "instance" and failure.non_retryable for failure in changes.failures),
    )


def show_instance(view: View, *, sees_failures: bool) -> Shown:
    """An instance."""
    instance = view.instance
    return {
        "id": instance.ulid,
        "business_id": view.business_id,
        "definition": view.definition,
        "version": view.version,
        "version_label": view.version_label,
        "style": "graph",
        "status": get_status(instance),
        "closed_reason": instance.closed_reason,
        "cancel_reason": instance.cancel_reason,
        "waiting_for": list(_list_waiting(view)),
        "nodes": sorted({step.node_id for step in view.steps if step.role is StepRole.STEP}),
        "progress": None,
        "input": instance.input,
        "state": instance.state,
        "result": instance.result if instance.status is InstanceStatus.COMPLETED else None,
        "failure": _show_end(view, sees_failures=sees_failures),
        "trigger": {"on": instance.trigger_type, "key": instance.trigger_key, "payload": instance.trigger_payload},
        "actor": {"mode": instance.actor_mode, "user": instance.starter_id},
        "owner": show_owner(instance.owner_scope),
        "subject": None,
        "labels": list(instance.labels),
        "priority": Priority(instance.priority).name.lower(),
        "parent": view.parent,
        "root": view.root or instance.ulid,
        "depth": instance.depth,
        "steps_count": instance.steps_count,
        "run": view.run,
        "definition_hash": instance.definition_hash,
        "created_at": show_time(instance.created_at),
        "updated_at": show_time(instance.updated_at),
        "started_at": show_time(instance.started_at),
        "ended_at": show_time(instance.ended_at),
        "deadline_at": show_time(instance.deadline_at),
        "actions": _show_actions(instance),
    }


def get_status(instance: Instance) -> str:
    """The status as it is shown: `paused` lies over what stands underneath."""
    if instance.paused_at is not None and not instance.is_ended:
        return PAUSED
    return str(instance.status)


def _show_end(view: View, *, sees_failures: bool) -> Shown | None:
    instance = view.instance
    if instance.status is not InstanceStatus.FAILED or instance.failure_code is None:
        return None
    return {
        "code": instance.failure_code,
        "message": show_message(
            instance.failure_code, instance.failure_message, instance.failure_params, sees_failures=sees_failures
        ),
        "node": instance.failed_node_id,
        "category": instance.failure_category,
        "non_retryable": view.is_final,
    }


def show_message(code: str, message: str | None, params: Mapping[str, Any] | None, *, sees_failures: bool) -> str:
    """A message: one of ours is rendered, a step's own is its author's, an unknown exception's text is shown to few."""
    if code == HIDDEN:
        return message if sees_failures and message else render(code)
    if code in MESSAGES and not message:
        return render(code, params)
    return message or render(code, params)


def _show_actions(instance: Instance) -> Shown:
    ended, paused = instance.is_ended, instance.paused_at is not None
    can_retry = instance.status is InstanceStatus.FAILED and instance.failed_node_id is not None
    return {
        "cancel": "instance_not_cancellable" if ended else True,
        "pause": "instance_not_pausable" if ended or paused else True,
        "resume": True if paused and not ended else "instance_not_paused",
        "retry": True if can_retry else "instance_not_retryable",
        "signal": "instance_ended" if ended else True,
    }


def _list_waiting(view: View) -> Iterable[Shown]:
    for step in view.steps:
        waits = [wait for wait in view.waits if wait.step_run_id == step.id]
        limit = next((wait for wait in waits if wait.kind is WaitKind.TIMEOUT), None)
        group = [wait for wait in waits if wait.mode is not None]
        if group:
            yield _show_group(step, group, limit)
        for wait in waits:
            if wait.mode is None and wait.kind is not WaitKind.TIMEOUT:
                due = wait.due_at if wait.kind is WaitKind.TIMER or limit is None else limit.due_at
                yield _show_waiting(step, wait.kind, wait.created_at, due, names=_list_names(wait))
        if step.parked_for is not None:
            yield _show_waiting(step, step.parked_for, step.created_at, None)


def _list_names(wait: Wait) -> list[str]:
    return [] if wait.event_key is None else [wait.event_key]


def _show_group(step: StepRun, group: list[Wait], limit: Wait | None) -> Shown:
    due = None if limit is None else limit.due_at
    names = [name for wait in group for name in _list_names(wait)]
    matched = [name for wait in group if wait.payload is not None for name in _list_names(wait)]
    shown = _show_waiting(step, group[0].kind, group[0].created_at, due, names=names)
    remaining = [name for name in names if name not in matched]
    return {**shown, "mode": group[0].mode, "matched": list(matched), "remaining": list(remaining)}


def _show_waiting(
    step: StepRun, kind: str, since: datetime, due: datetime | None, *, names: list[str] | None = None
) -> Shown:
    given = names or []
    return {
        "kind": str(kind),
        "node": step.node_id,
        "branch": None,
        "mode": None,
        "names": list(given),
        "matched": [],
        "remaining": list(given),
        "result_key": None,
        "correlation": None,
        "since": show_time(since),
        "due_at": show_time(due),
        "task": None,
        "child": None,
    }


def show_step(step: StepRun, *, sees_failures: bool) -> Shown:
    """One attempt. `id` is the attempt's own, `execution` is the same for all attempts of a visit."""
    return {
        "id": step.ulid,
        "execution": step.execution_id,
        "node": step.node_id,
        "type": step.node_type,
        "type_version": step.type_version,
        "branch": None,
        "role": step.role,
        "visit": step.visit,
        "attempt": step.attempt,
        "retry": _show_retry(step),
        "status": step.status,
        "parked_for": step.parked_for,
        "outcome": step.outcome if step.status is not StepStatus.FAILED or step.outcome else None,
        "input": step.input,
        "output": step.output,
        "error": _show_error(step, sees_failures=sees_failures),
        "idempotency_key": step.idempotency_key,
        "queue": step.queue,
        "created_at": show_time(step.created_at),
        "started_at": show_time(step.started_at),
        "finished_at": show_time(step.finished_at),
        "scheduled_for": show_time(step.scheduled_for),
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
        "retryable": step.error_retryable,
        "category": step.error_category,
    }


def show_event(row: Mapping[str, Any]) -> Shown:
    """One line of history."""
    data = {name: value for name, value in (row["data"] or {}).items() if name not in INSIDE}
    return {
        "seq": row["seq"],
        "type": row["type"],
        "node": row["node_id"],
        "step": row["step"],
        "data": data,
        "at": show_time(row["created_at"]),
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
