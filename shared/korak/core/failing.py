"""What happens when a step fails: it is tried again, or it leaves by its error exit, or the run fails."""

from __future__ import annotations

from fnmatch import fnmatchcase

from korak.core import ending, lapsing, retries, telling, undoing
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.rows import Failure, StepRun
from korak.graphs.plans import PlannedNode
from korak.model import (
    ClosedReason,
    EventType,
    FailureCategory,
    InstanceStatus,
    JsonObject,
    ScopeStatus,
    StepStatus,
)

ERROR_EXIT = "error"
LEASE_EXPIRED = retries.LEASE_EXPIRED


def fail_step(draft: Draft, node: PlannedNode, step: StepRun, error: Raised) -> str | None:
    """Record a failed attempt; the node that its error exit leads to, if it takes one.

    A retryable failure with attempts left schedules the next one (RT-4). A permanent one, or the last attempt, leaves
    by the exit that the node's `on_error` or `error` edge gives; without either the run fails (RT-7).
    """
    failed = _close(draft, step, error)
    if retries.may_retry(node, failed, error, draft.policy):
        _note(draft, failed, error, "retry")
        retries.schedule(draft, node, failed, error)
        return None
    exit_ = None if error.category is FailureCategory.LIMIT else find_exit(node, error.code)
    if exit_ is None:
        _note(draft, failed, error, "instance" if failed.scope_id is None else "none")
        _give_way(draft, failed, error)
        return None
    _note(draft, failed, error, "exit")
    lapsing.discard(draft, [failed])
    failed.outcome = exit_
    draft.remember(
        failed, output=None, outcome=exit_, error=get_told(error.code, error.message, error.params, failed.attempt)
    )
    return node.targets[exit_]


def _give_way(draft: Draft, failed: StepRun, error: Raised) -> None:
    """Nothing inside leads on: the body has failed, which its container is told; at the outermost level the run has."""
    if failed.scope_id is None:
        fail_instance(draft, error.code, error.params, step=failed, message=error.message, category=error.category)
        return
    told = get_told(error.code, error.message, error.params, failed.attempt)
    told |= {"node": failed.node_id, "params": error.params, "category": error.category}
    draft.end_scope(failed.scope_id, ScopeStatus.FAILED, error=told | {"text": error.message})


def get_told(code: str, message: str | None, params: JsonObject | None, attempts: int) -> JsonObject:
    """What values read of a failure, as `steps.<id>.error`. The text of an unknown exception is for operators only."""
    return {"code": code, "message": telling.say(code, message, params), "attempts": attempts}


def has_exit(node: PlannedNode) -> bool:
    """Whether some failure of the node leads on, so that the run may end with what came before it."""
    return bool(node.on_error) or ERROR_EXIT in node.targets


def find_exit(node: PlannedNode, code: str) -> str | None:
    """The outcome that a permanent failure leaves by: the first `on_error` that matches its code, else `error`."""
    for patterns, outcome in node.on_error:
        if outcome in node.targets and any(fnmatchcase(code, pattern) for pattern in patterns):
            return outcome
    return ERROR_EXIT if ERROR_EXIT in node.targets else None


def _close(draft: Draft, step: StepRun, error: Raised) -> StepRun:
    ending.close_inside(draft, step)
    draft.cancel_waits(step)
    step = draft.move(step, StepStatus.FAILED)
    step.error_code, step.error_message = error.code, error.message
    step.error_params, step.error_retryable, step.error_category = error.params, error.is_retryable, error.category
    return step


def _note(draft: Draft, step: StepRun, error: Raised, propagation: str) -> None:
    draft.record_failure(
        Failure(
            instance_id=draft.instance.id,
            step_run_id=step.id,
            node_id=step.node_id,
            source="step",
            category=error.category,
            propagation=propagation,
            non_retryable=not error.is_retryable,
            handled=propagation != "instance",
            code=error.code,
            created_at=draft.now,
            type=error.type,
            message=error.message,
            params=error.params,
            trace=error.trace,
        )
    )
    told: JsonObject = {"code": error.code, "attempt": step.attempt, "will_retry": propagation == "retry"}
    draft.record(EventType.STEP_FAILED, step, told)


def fail_instance(
    draft: Draft,
    code: str,
    params: JsonObject,
    *,
    step: StepRun | None = None,
    message: str | None = None,
    category: FailureCategory = FailureCategory.LIMIT,
) -> None:
    """The run has failed: everything that still lives in it is cancelled, and what to look at is kept (RT-7)."""
    instance = draft.instance
    draft.move_instance(InstanceStatus.FAILED)
    ending.close_live(draft)
    instance.ended_at, instance.closed_reason = draft.now, ClosedReason.FAILED
    if category is FailureCategory.DEADLINE:
        instance.closed_reason = ClosedReason.DEADLINE
    instance.failure_code, instance.failure_params, instance.failure_message = code, params, message
    instance.failure_category = category
    instance.failed_node_id = step.node_id if step is not None else None
    if step is None:
        draft.record_failure(
            Failure(
                instance_id=instance.id,
                step_run_id=None,
                node_id=None,
                source="instance",
                category=category,
                propagation="instance",
                non_retryable=True,
                handled=False,
                code=code,
                created_at=draft.now,
                params=params,
                message=message,
            )
        )
    draft.record(EventType.INSTANCE_FAILED, step, {"code": code})
    undoing.owe(draft)


def give_up(draft: Draft, code: str, detail: str) -> None:
    """The rows can't be made sense of: the run fails with a code, and nobody else is held up by it."""
    if not draft.instance.is_ended:
        fail_instance(draft, code, {"detail": detail}, category=FailureCategory.CONFIGURATION)


def refuse(draft: Draft, code: str, params: JsonObject) -> None:
    """The start isn't accepted: the run is kept as failed, and nothing of it ever lives (LM-3)."""
    fail_instance(draft, code, params)
    draft.instance.closed_reason = ClosedReason.REFUSED


def limit_breach(code: str, params: JsonObject) -> Raised:
    """A limit was passed: fails without a retry and without an exit."""
    return Raised(code, None, params, is_retryable=False, category=FailureCategory.LIMIT)


def broken_graph(detail: str) -> Raised:
    """The stored graph doesn't hold together: somebody edited it by hand."""
    return Raised("invalid_graph", None, {"detail": detail}, is_retryable=False, category=FailureCategory.CONFIGURATION)
