"""Undoing: what has completed is taken back, newest first, once its run is cancelled or has failed for good.

What is owed to a run that has ended stands in its bookkeeping. One hook runs at a time: the next one is made when none
of them lives any more, so an attempt that was cancelled cleans up before what was done before it is undone.
"""

from __future__ import annotations

from typing import Final

from korak.core import starting, telling
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.rows import Compensation, Instance, StepRun
from korak.errors import Conflict
from korak.graphs.hooks import ON_CANCEL, ON_DEADLINE
from korak.graphs.plans import PlannedNode
from korak.model import ClosedReason, CompensationStatus, EventType, InstanceStatus, Json, JsonObject, StepRole

OWED: Final = "owed"
"""The part of an instance's bookkeeping that names the roles of the hooks that are still to be made."""

LOST: Final = "lost"
"""The part that names the hooks of settings that have failed for good, each with the number of its call."""

MOST_CALLS: Final = 10_000
"""How often one hook is begun by hand at most."""

ORDER: Final = (StepRole.COMPENSATE, StepRole.ON_DEADLINE, StepRole.ON_CANCEL)
NAMES: Final = {StepRole.ON_CANCEL: ON_CANCEL, StepRole.ON_DEADLINE: ON_DEADLINE}


def keep(draft: Draft, node: PlannedNode, step: StepRun) -> None:
    """Push what undoes a visit that has just completed, with the state as it is after it.

    A config that can't be resolved is no fault of the step: the hook fails with it if it ever runs.
    """
    if node.compensate is None:
        return
    row = Compensation(
        instance_id=draft.instance.id,
        seq=draft.instance.next_seq - 1,
        step_run_id=step.id,
        node_id=node.id,
        visit=step.visit,
        created_at=draft.now,
        scope_id=step.scope_id,
    )
    given = starting.resolve(draft, node.compensate, step.scope_id)
    if isinstance(given, Raised):
        row.error = {"code": given.code, "message": given.message, "params": given.params}
    else:
        row.input = given
    row.state = draft.get_state(step.scope_id)
    draft.stack.push(row)


def may_cancel_failed(draft: Draft) -> bool:
    """Whether a cancel still has something to run for a run that has failed."""
    instance, settings = draft.instance, draft.plan.settings
    if instance.status is not InstanceStatus.FAILED or instance.closed_reason is ClosedReason.REFUSED:
        return False
    is_kept = draft.stack.top is not None and not settings.compensate_on_failure
    return is_kept or settings.on_cancel is not None


def owe(draft: Draft) -> None:
    """Note what is to be run for a run that was just cancelled or has just failed."""
    if not draft.plan.cleans_up:
        return
    settings, is_cancelled = draft.plan.settings, draft.instance.status is InstanceStatus.CANCELLED
    owed = draft.get_walk(OWED)
    if draft.plan.has_compensations and is_final(draft):
        owed[StepRole.COMPENSATE.value] = True
    if is_cancelled and settings.on_cancel is not None:
        owed[StepRole.ON_CANCEL.value] = True
    if draft.instance.closed_reason is ClosedReason.DEADLINE and settings.on_deadline is not None:
        owed[StepRole.ON_DEADLINE.value] = True
    draft.set_walk(OWED, owed)


def is_final(draft: Draft) -> bool:
    """Whether the run has ended so that what it had done is taken back: there is no way on from there."""
    status, settings = draft.instance.status, draft.plan.settings
    return status is InstanceStatus.CANCELLED or (status is InstanceStatus.FAILED and settings.compensate_on_failure)


def retry(draft: Draft, actor: JsonObject | None) -> None:
    """Try once more what could not be undone, the newest first, then the hooks of settings that have failed.

    Each goes under its key, with all the attempts that it had before. Conflict where nothing has failed for good, and
    while something is being undone.
    """
    lost, is_left = list_lost(draft.instance), draft.stack.failed is not None
    if is_owed(draft):
        raise Conflict("instance_not_retryable", why="it is still being undone; try again after that")
    if not is_left and not lost:
        is_cancelled = draft.instance.status is InstanceStatus.CANCELLED
        why = (
            "it is cancelled, and nothing is left to undo"
            if is_cancelled
            else "what it had done was undone as it failed"
        )
        raise Conflict("instance_not_retryable", why=why)
    draft.stack.retry()
    roles = [*([StepRole.COMPENSATE.value] if is_left else []), *lost]
    draft.set_walk(OWED, {**draft.get_walk(OWED), **dict.fromkeys(roles, True)})
    draft.record(EventType.HOOKS_RETRIED, None, {"roles": list(roles), "actor": actor})


def list_lost(instance: Instance) -> list[str]:
    """The roles of the hooks of settings that have failed for good."""
    kept = (instance.walk or {}).get(LOST)
    return [role.value for role in NAMES if isinstance(kept, dict) and role in kept]


def forget(draft: Draft) -> None:
    """The run is open again: what failed as it ended before is over."""
    if draft.get_walk(LOST):
        draft.set_walk(LOST, {})


def proceed(draft: Draft) -> None:
    """Make the next hook that is owed, unless something else must clean up first. Looked at after every decision."""
    if not draft.plan.cleans_up or _is_held_back(draft):
        return
    owed = draft.get_walk(OWED)
    for role in ORDER:
        if role not in owed:
            continue
        if role is StepRole.COMPENSATE and (top := draft.stack.top) is not None:
            _undo(draft, top)
            return
        del owed[role]
        draft.set_walk(OWED, owed)
        if role is not StepRole.COMPENSATE:
            _make(draft, role)
            return


def is_owed(draft: Draft) -> bool:
    """Whether everything that is kept will be undone."""
    return StepRole.COMPENSATE.value in draft.get_walk(OWED)


def is_busy(draft: Draft) -> bool:
    """Whether a run that has ended has yet something to clean up."""
    return bool(draft.get_walk(OWED)) or _is_held_back(draft)


def _is_held_back(draft: Draft) -> bool:
    """Whether something else cleans up first: another hook of the run, an attempt that was cancelled, or a child."""
    return telling.has_cleaning_children(draft) or any(step.role is not StepRole.STEP for step in draft.steps.values())


def _undo(draft: Draft, row: Compensation) -> None:
    node = draft.plan.find(row.node_id, StepRole.COMPENSATE)
    draft.stack.move(row, CompensationStatus.UNDOING)
    if node is None:
        draft.stack.move(draft.stack.rows[row.seq], CompensationStatus.FAILED)
        return
    hook = draft.add_step(node, visit=row.visit, scope_id=row.scope_id)
    hook.role, hook.hook_order, hook.call = StepRole.COMPENSATE, row.seq, row.call
    hook.idempotency_key = f"{hook.idempotency_key}:{StepRole.COMPENSATE}"
    starting.enqueue(draft, hook)


def _make(draft: Draft, role: StepRole) -> None:
    node = draft.plan.find(NAMES[role], role)
    if node is None:
        return
    visits, lost = draft.get_walk("visits"), draft.get_walk(LOST)
    seen, call = visits.get(node.id), lost.pop(role, None)
    visit = seen if isinstance(seen, int) else 0
    if call is not None:
        draft.set_walk(LOST, lost)
    if not isinstance(call, int) or not 0 < call < MOST_CALLS:
        call, visit = 0, visit + 1
        draft.set_walk("visits", {**visits, node.id: visit})
    hook = draft.add_step(node, visit=visit)
    hook.role, hook.call = role, call + 1
    starting.enqueue(draft, hook)


def get_input(draft: Draft, node: PlannedNode, hook: StepRun) -> Json | Raised:
    """What a hook's handler gets: what its cancelled step got, what was kept for an undo, else of the last state."""
    match hook.role:
        case StepRole.COMPENSATE:
            row = draft.stack.find(hook)
            if row is None:
                told: JsonObject = {"detail": f"nothing is kept of {hook.node_id}"}
                return Raised("invalid_graph", None, told, is_retryable=False)
            return row.input if row.error is None else _read_error(row.error)
        case StepRole.CANCEL:
            return starting.resolve_again(draft, hook)
        case _:
            return starting.resolve(draft, node, None) if hook.input is None else starting.resolve_again(draft, hook)


def _read_error(told: JsonObject) -> Raised:
    message, params = told.get("message"), told.get("params")
    return Raised(
        str(told["code"]),
        message if isinstance(message, str) else None,
        params if isinstance(params, dict) else {},
        is_retryable=False,
    )


def settle(draft: Draft, hook: StepRun, to: CompensationStatus) -> None:
    """A hook has ended for good: what it undid is done, or could not be undone."""
    row = draft.stack.find(hook) if hook.role is StepRole.COMPENSATE else None
    if row is not None:
        draft.stack.move(row, to)
    if hook.role in NAMES and to is CompensationStatus.FAILED:
        draft.set_walk(LOST, {**draft.get_walk(LOST), hook.role.value: hook.call})
