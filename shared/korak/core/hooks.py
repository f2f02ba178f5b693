"""Hooks: step runs with a role, durable like any other, that clean up after an instance was cancelled or has failed."""

from __future__ import annotations

from korak.core import retries, starting
from korak.core.draft import Draft
from korak.core.facts import HandlerResult, Raised
from korak.core.rows import Failure, StepRun
from korak.model import EventType, FailureCategory, JsonObject, StepRole, StepStatus
from korak.steps.contract import Fail


def add_cancel_hook(draft: Draft, step: StepRun, *, call: int, output: JsonObject | None = None) -> None:
    """Queue the step's own cancel hook, if its type has one. The second call has what the handler returned (CN-5)."""
    node = draft.plan.nodes.get(step.node_id)
    if node is None or not node.has_cancel_hook:
        return
    hook = draft.add_step(node, visit=step.visit, like=step)
    hook.attempt, hook.retry_of = step.attempt, None
    hook.role, hook.call = StepRole.CANCEL, call
    hook.input, hook.output = step.input, output if output is not None else step.output
    hook.execution_id = ""
    starting.enqueue(draft, hook)


def finish(draft: Draft, hook: StepRun, result: HandlerResult) -> None:
    """Record how a hook ended. One that fails changes nothing for the run: the cancel stands (CN-11)."""
    if isinstance(result, Raised) and result.is_retryable and hook.attempt < draft.policy.attempts_cap:
        retries.schedule(draft, draft.plan.nodes[hook.node_id], _fail(draft, hook, result), result)
    elif isinstance(result, (Raised, Fail)):
        _fail(draft, hook, result)
    else:
        draft.record(EventType.HOOK_COMPLETED, draft.move(hook, StepStatus.COMPLETED), {"role": hook.role})


def _fail(draft: Draft, hook: StepRun, error: Raised | Fail) -> StepRun:
    failed = draft.move(hook, StepStatus.FAILED)
    failed.error_code, failed.error_message, failed.error_params = error.code, error.message, dict(error.params)
    draft.record_failure(
        Failure(
            instance_id=draft.instance.id,
            step_run_id=failed.id,
            node_id=failed.node_id,
            source="hook",
            category=failed.error_category or FailureCategory.STEP,
            propagation="none",
            non_retryable=True,
            handled=True,
            code=error.code,
            created_at=draft.now,
            message=error.message,
            params=dict(error.params),
        )
    )
    draft.record(EventType.HOOK_FAILED, failed, {"role": failed.role, "code": error.code})
    return failed
