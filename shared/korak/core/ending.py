"""What ends with a step, a body or the run: what lives in it is cancelled, and its result is what came last."""

from __future__ import annotations

from collections.abc import Sequence

from korak.core import hooks, lapsing, telling
from korak.core.draft import Draft
from korak.core.rows import StepRun
from korak.core.scopes import list_path
from korak.model import ClosedReason, EventType, InstanceStatus, Json, ScopeStatus, StepRole, StepStatus


def close_live(draft: Draft) -> None:
    """Cancel every live attempt and open wait; steps that had begun get their cancel hook (CN-3)."""
    cancel_steps(draft, list(draft.steps.values()))
    lapsing.close(draft)


def close_inside(draft: Draft, step: StepRun) -> None:
    """A container ends: what still lives in its bodies is cancelled, however deep, and results of it come too late."""
    if step.counters is None:
        return
    scopes = draft.scopes.rows
    around = {scope.id for scope in scopes.values() if scope.step_run_id == step.id}
    inside = [
        live
        for live in draft.steps.values()
        if live.scope_id is not None and any(scope.id in around for scope in list_path(scopes, live.scope_id))
    ]
    cancel_steps(draft, inside)
    draft.scopes.close(step)


def cancel_steps(draft: Draft, steps: Sequence[StepRun]) -> None:
    """Cancel live attempts and their open waits; those that had begun get their cancel hook (CN-3)."""
    ended = [step for step in steps if step.role is StepRole.STEP]
    lapsing.discard(draft, ended)
    for step in ended:
        if step.counters is not None:
            draft.scopes.close(step)
        was_begun = step.status is not StepStatus.QUEUED or step.attempt > 1 or step.resume_signal is not None
        telling.cancel_awaited(draft, step)
        draft.cancel_waits(step)
        cancelled = draft.move(step, StepStatus.CANCELLED)
        draft.record(EventType.STEP_CANCELLED, cancelled)
        if was_begun:
            hooks.add_cancel_hook(draft, cancelled, call=1)


def keep_last_output(draft: Draft, scope_id: int | None) -> None:
    """Keep the last output where the walk stops before it can be used: it is the result by default."""
    if scope_id not in draft.last_outputs:
        return
    if scope_id is None:
        draft.instance.result = draft.last_outputs[scope_id]
    else:
        draft.scopes.edit(scope_id).output = draft.last_outputs[scope_id]


def get_last_output(draft: Draft, scope_id: int | None) -> Json:
    """The last output of a step of that scope."""
    kept = draft.instance.result if scope_id is None else draft.scopes.rows[scope_id].output
    return draft.last_outputs.get(scope_id, kept)


def find_last_output(draft: Draft, scope_id: int | None, until: int | None) -> Json:
    """The last output of a scope, or of the nearest around it that has one, as far as the one that ends."""
    last = get_last_output(draft, scope_id)
    while last is None and scope_id is not None and scope_id != until:
        scope_id = draft.scopes.rows[scope_id].parent_scope_id
        last = get_last_output(draft, scope_id)
    return last


def come_to_end(draft: Draft, scope_id: int | None, outcome: str, result: Json) -> None:
    """The body has come to its end, which its container is told; at the outermost level the run has."""
    if scope_id is None:
        _complete(draft, result)
    else:
        draft.end_scope(scope_id, ScopeStatus.COMPLETED, outcome=outcome, output=result)


def _complete(draft: Draft, result: Json) -> None:
    instance = draft.instance
    cancel_steps(draft, list(draft.steps.values()))
    draft.move_instance(InstanceStatus.COMPLETED)
    instance.result, instance.ended_at, instance.closed_reason = result, draft.now, ClosedReason.COMPLETED
    draft.record(EventType.INSTANCE_COMPLETED)
