"""An instance as it stands: what it is, what it does or waits for, how it ended, and what may be done to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

from korak.core.changes import Changes
from korak.core.deadlines import get_left
from korak.core.rows import Instance, StepRun, Wait
from korak.model import InstanceStatus, JsonObject, ParkedFor, Priority, StepRole, StepStatus, WaitKind
from korak.store.branches import name_branches
from korak.store.filters import PAUSED
from korak.store.instances import View
from korak.store.parking import Reason
from korak_api.placing import show_progress
from korak_api.rendering import Shown, show_message, show_owner, show_params, show_time
from korak_api.spending import show_budget
from korak_api.undoing import may_cancel, may_retry, show_compensation

OPEN = (InstanceStatus.RUNNING, InstanceStatus.WAITING)

Awaited: TypeAlias = Mapping[int, Sequence[tuple[str, str]]]
"""The runs that waits are for, by the wait: ULID and status."""


def view_changes(changes: Changes, version: int) -> View:
    """The instance as it stands once these changes are committed."""
    after = changes.after
    return View(
        instance=after.instance,
        definition=after.plan.key,
        version=version,
        steps=tuple(sorted(after.steps.values(), key=_get_age)),
        waits=tuple(sorted(after.waits.values(), key=_get_age)),
        limits=after.plan.settings.limits,
        is_final=any(failure.propagation == "instance" and failure.non_retryable for failure in changes.failures),
        branches=name_branches(after.scopes),
        plan=after.plan,
    )


def _get_age(row: StepRun | Wait) -> tuple[datetime, int]:
    return row.created_at, row.id


def show_instance(view: View, *, sees_failures: bool, ceilings: Mapping[str, int | None]) -> Shown:
    """An instance. `ceilings` are the engine's own limits."""
    instance = view.instance
    return {
        "id": instance.ulid,
        "business_id": instance.business_id,
        "definition": view.definition,
        "version": view.version,
        "version_label": view.version_label,
        "style": "graph",
        "status": get_status(instance),
        "closed_reason": instance.closed_reason,
        "cancel_reason": instance.cancel_reason,
        "waiting_for": list(_list_waiting(view)),
        "nodes": sorted({step.node_id for step in view.steps if step.role is StepRole.STEP}),
        "progress": show_progress(view),
        "input": instance.input,
        "state": instance.state,
        "result": instance.result if instance.status is InstanceStatus.COMPLETED else None,
        "failure": _show_end(view, sees_failures=sees_failures),
        "compensation": show_compensation(view),
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
        "budget": show_budget(view, ceilings),
        "run": instance.run_number,
        "definition_hash": instance.definition_hash,
        "artifacts": {"count": view.artifacts_count, "keys": list(view.artifacts)},
        "created_at": show_time(instance.created_at),
        "updated_at": show_time(instance.updated_at),
        "started_at": show_time(instance.started_at),
        "ended_at": show_time(instance.ended_at),
        "deadline_at": show_time(instance.deadline_at),
        "deadline_remaining_seconds": _get_left(instance),
        "actions": _show_actions(view, ceilings),
    }


def get_status(instance: Instance) -> str:
    """The status as it is shown: `paused` lies over what stands underneath."""
    if instance.paused_at is not None and not instance.is_ended:
        return PAUSED
    return str(instance.status)


def _get_left(instance: Instance) -> float | None:
    """What a pause has left of the time until the deadline."""
    is_stopped = instance.paused_at is not None and not instance.is_ended and instance.deadline_at is None
    return get_left(instance) if is_stopped else None


def _show_end(view: View, *, sees_failures: bool) -> Shown | None:
    instance = view.instance
    if instance.status is not InstanceStatus.FAILED or instance.failure_code is None:
        return None
    return {
        "code": instance.failure_code,
        "message": show_message(
            instance.failure_code, instance.failure_message, instance.failure_params, sees_failures=sees_failures
        ),
        "params": show_params(instance.failure_code, instance.failure_params, sees_failures=sees_failures),
        "node": instance.failed_node_id,
        "category": instance.failure_category,
        "non_retryable": view.is_final,
    }


def _show_actions(view: View, ceilings: Mapping[str, int | None]) -> Shown:
    instance = view.instance
    ended, paused = instance.is_ended, instance.paused_at is not None
    return {
        "cancel": True if may_cancel(view) else "instance_not_cancellable",
        "pause": "instance_not_pausable" if ended or paused else True,
        "resume": True if paused and not ended else "instance_not_paused",
        "retry": True if may_retry(view, ceilings) else "instance_not_retryable",
        "signal": "instance_ended" if ended else True,
    }


def _list_waiting(view: View) -> Iterable[Shown]:
    for step in view.steps:
        node = None if view.plan is None else view.plan.nodes.get(step.node_id)
        told: Shown = {
            "branch": view.branches.get(step.scope_id or 0),
            "result_key": None if node is None or node.save is None else node.save.key,
        }
        waits = [wait for wait in view.waits if wait.step_run_id == step.id]
        for shown in _list_waits(step, waits, {} if node is None else node.raw, view.awaited):
            yield {**shown, **told}
        if step.parked_for is not None:
            why = view.parked.get(step.id, Reason(()))
            shown = _show_waiting(step, step.parked_for, step.created_at, why.until, names=[*why.names])
            yield {**shown, "reason": why.told, **told}
        elif step.status is StepStatus.QUEUED and step.queue in view.unserved and step.ready_at is not None:
            yield {**_show_waiting(step, ParkedFor.ENGINE, step.ready_at, names=[f"queue {step.queue}"]), **told}


def _list_waits(step: StepRun, waits: list[Wait], config: JsonObject, awaited: Awaited) -> Iterable[Shown]:
    limit = next((wait for wait in waits if wait.kind is WaitKind.TIMEOUT), None)
    group = [wait for wait in waits if wait.mode is not None]
    if group:
        yield {**_show_group(step, group, limit), **_show_asked(group[0], config)}
    for wait in waits:
        if wait.mode is None and wait.kind is not WaitKind.TIMEOUT:
            clock = wait if wait.kind is WaitKind.TIMER or limit is None else limit
            shown = _show_waiting(step, wait.kind, wait.created_at, clock.due_at, names=_list_names(wait))
            shown["remaining_seconds"] = clock.remaining
            yield {**shown, **_show_asked(wait, config), **_show_awaited(wait, awaited.get(wait.id, ()))}


def _show_asked(wait: Wait, config: JsonObject) -> Shown:
    """What a signal must bring: what a person is asked, and the path that must lead to the same in payload and state.

    The wait has its value as a match.
    """
    if wait.kind is not WaitKind.SIGNAL:
        return {}
    key, match = config.get("correlation"), wait.match or {}
    agreed = {"key": key, "value": match[key]} if isinstance(key, str) and key in match else None
    return {"human": config.get("human"), "correlation": agreed}


def _show_awaited(wait: Wait, runs: Sequence[tuple[str, str]]) -> Shown:
    """What a wait for other runs is still for."""
    if wait.kind is WaitKind.CHILD:
        return {"child": wait.event_key}
    if wait.kind is not WaitKind.WORKFLOWS:
        return {}
    tally = wait.payload if isinstance(wait.payload, dict) else {}
    mode = tally.get("mode")
    return {
        "mode": mode,
        "quorum": tally.get("quorum") if mode == "quorum" else None,
        "runs": _count_runs(tally),
        "names": [ulid for ulid, _ in runs],
        "matched": [ulid for ulid, status in runs if status == InstanceStatus.COMPLETED],
        "remaining": [ulid for ulid, status in runs if status in OPEN],
        "failed": [ulid for ulid, status in runs if status in (InstanceStatus.FAILED, InstanceStatus.CANCELLED)],
    }


def _count_runs(tally: JsonObject) -> Shown:
    total, completed, failed = tally.get("total") or 0, tally.get("completed") or 0, tally.get("failed") or {}
    return {"total": total, "completed": completed, "failed": len(failed) if isinstance(failed, dict) else 0}


def _list_names(wait: Wait) -> list[str]:
    return [] if wait.event_key is None else [wait.event_key]


def _show_group(step: StepRun, group: list[Wait], limit: Wait | None) -> Shown:
    due = None if limit is None else limit.due_at
    names = [name for wait in group for name in _list_names(wait)]
    matched = [name for wait in group if wait.payload is not None for name in _list_names(wait)]
    shown = _show_waiting(step, group[0].kind, group[0].created_at, due, names=names)
    remaining = [name for name in names if name not in matched]
    left = None if limit is None else limit.remaining
    told: Shown = {"mode": group[0].mode, "matched": list(matched), "remaining": list(remaining)}
    return {**shown, **told, "remaining_seconds": left}


def _show_waiting(
    step: StepRun, kind: str, since: datetime, due: datetime | None = None, *, names: list[str] | None = None
) -> Shown:
    given = names or []
    return {
        "kind": str(kind),
        "node": step.node_id,
        "execution": step.execution_id,
        "branch": None,
        "mode": None,
        "quorum": None,
        "names": list(given),
        "matched": [],
        "remaining": list(given),
        "failed": [],
        "runs": None,
        "result_key": None,
        "correlation": None,
        "human": None,
        "since": show_time(since),
        "due_at": show_time(due),
        "remaining_seconds": None,
        "reason": None,
        "task": None,
        "child": None,
    }
