"""Hooks: step runs with a role, durable like any other, that clean up after an instance was cancelled or has failed."""

from __future__ import annotations

from korak.core import retries, starting, undoing
from korak.core.draft import Draft
from korak.core.facts import HandlerResult, Raised
from korak.core.rows import Failure, StepRun
from korak.graphs.plans import PlannedNode
from korak.model import CompensationStatus, EventType, FailureCategory, JsonObject, StepRole, StepStatus
from korak.steps.contract import Complete, Fail, Wait


def add_cancel_hook(draft: Draft, step: StepRun, *, call: int, output: JsonObject | None = None) -> None:
    """Queue the step's own cancel hook, if its type has one. The second call has what the handler returned (CN-5).

    Its attempts are its own, from 1: one attempt of a visit is cancelled at most.
    """
    node = draft.plan.nodes.get(step.node_id)
    if node is None or not node.has_cancel_hook:
        return
    hook = draft.add_step(node, visit=step.visit, like=step)
    hook.attempt, hook.retry_of = 1, None
    hook.role, hook.call = StepRole.CANCEL, call
    hook.input, hook.output = step.input, output if output is not None else step.output
    hook.execution_id = ""
    starting.enqueue(draft, hook)


def finish(draft: Draft, hook: StepRun, result: HandlerResult) -> None:
    """Record how a hook ended. One that fails changes nothing for the run: the cancel stands (CN-11)."""
    match result:
        case Complete(outcome, output):
            hook = draft.move(hook, StepStatus.COMPLETED)
            if hook.role is not StepRole.CANCEL:
                hook.outcome, hook.output = outcome, output
            draft.record(EventType.HOOK_COMPLETED, hook, {"role": hook.role})
            undoing.settle(draft, hook, CompensationStatus.COMPLETED)
        case Wait():
            _fail(draft, hook, Raised("invalid_output", None, {"pointer": "", "detail": "a hook can't wait"}, False))
        case Fail(code, message, params):
            _fail(draft, hook, Raised(code, message, dict(params), is_retryable=False))
        case Raised():
            _fail(draft, hook, result)


def _fail(draft: Draft, hook: StepRun, error: Raised) -> None:
    node = draft.plan.find(hook.node_id, hook.role)
    failed = draft.move(hook, StepStatus.FAILED)
    failed.error_code, failed.error_message, failed.error_params = error.code, error.message, dict(error.params)
    failed.error_retryable, failed.error_category = error.is_retryable, error.category
    is_retried = node is not None and _may_retry(draft, node, failed, error)
    draft.record_failure(_describe(draft, failed, error, is_retried=is_retried))
    told: JsonObject = {"role": failed.role, "code": error.code, "attempt": failed.attempt, "will_retry": is_retried}
    draft.record(EventType.HOOK_FAILED, failed, told)
    if node is not None and is_retried:
        retries.schedule(draft, node, failed, error)
    else:
        undoing.settle(draft, failed, CompensationStatus.FAILED)


def _may_retry(draft: Draft, node: PlannedNode, hook: StepRun, error: Raised) -> bool:
    """A step's own cancel hook is tried as often as anything may be: its node's retries are those of its work."""
    if hook.role is StepRole.CANCEL:
        return error.is_retryable and hook.attempt < draft.policy.attempts_cap
    return retries.may_retry(node, hook, error, draft.policy)


def _describe(draft: Draft, failed: StepRun, error: Raised, *, is_retried: bool) -> Failure:
    return Failure(
        instance_id=draft.instance.id,
        step_run_id=failed.id,
        node_id=failed.node_id,
        source="hook",
        category=failed.error_category or FailureCategory.STEP,
        propagation="retry" if is_retried else "none",
        non_retryable=not error.is_retryable,
        handled=is_retried,
        code=error.code,
        created_at=draft.now,
        type=error.type,
        message=error.message,
        params=dict(error.params),
        trace=error.trace,
    )
