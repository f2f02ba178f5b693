"""What an attempt came to: recorded by the holder of its token, dropped from everybody else."""

from __future__ import annotations

from typing import assert_never

from korak.core import depending, failing, hooks, nesting, starting, walking
from korak.core.draft import Draft
from korak.core.facts import Depend, HandlerResult, Left, Raised, Spawn
from korak.core.rows import Artifact, StepRun
from korak.graphs.plans import PlannedNode
from korak.model import EventType, JsonObject, StepRole, StepStatus
from korak.steps.contract import Complete, Fail, Wait


def record(draft: Draft, step_id: int, token: str, result: HandlerResult, left: Left | None = None) -> None:
    """Record a result (RC-1 to RC-7). One whose token is lost is dropped; after a cancel its hook runs again (CN-4)."""
    step = find_held(draft, step_id, token)
    if step is None:
        draft.dropped = "stale_token"
        _clean_up_again(draft, step_id, token, result)
        return
    node = draft.plan.find(step.node_id, step.role)
    if step.role is not StepRole.STEP:
        hooks.finish(draft, step, result)
        _keep(draft, step, left)
    elif node is None:
        failing.fail_instance(draft, "invalid_graph", {"detail": f"no node {step.node_id}"}, step=step)
    else:
        following = settle(draft, node, step, result)
        _keep(draft, step, left)
        walking.walk(draft, following, step.scope_id)


def _keep(draft: Draft, step: StepRun, left: Left | None) -> None:
    """Keep the artifacts of an attempt that is recorded as completed or parked; a failed one leaves none."""
    if left is None:
        return
    step = draft.edit(step)
    if step.status is StepStatus.COMPLETED and left.has_streamed:
        draft.close_chunks(step)
    if left.artifacts and step.status in (StepStatus.COMPLETED, StepStatus.WAITING):
        draft.leave().artifacts += [
            Artifact(
                draft.instance.id,
                made.key,
                made.kind,
                made.content,
                draft.now,
                made.metadata,
                step.node_id,
                step.visit,
                step.execution_id,
            )
            for made in left.artifacts
        ]


def find_held(draft: Draft, step_id: int, token: str) -> StepRun | None:
    """The running attempt that the token holds, or None (RC-2)."""
    step = draft.get_step(step_id)
    if step is None or step.status is not StepStatus.RUNNING or step.claim_token != token:
        return None
    return step


def settle(draft: Draft, node: PlannedNode, step: StepRun, result: HandlerResult) -> str | None:
    """Record what the handler came to; the node that follows, if any."""
    match result:
        case Complete(outcome, output):
            if outcome not in node.outcomes:
                return failing.fail_step(draft, node, step, _undeclared(node, outcome))
            return walking.complete(draft, node, step, outcome, output)
        case Wait(spec, output):
            return walking.park(draft, node, step, spec, output)
        case Fail(code, message, params):
            return failing.fail_step(draft, node, step, Raised(code, message, dict(params), is_retryable=False))
        case Raised():
            return failing.fail_step(draft, node, step, result)
        case Spawn():
            return nesting.spawn(draft, node, step, result)
        case Depend():
            return depending.depend(draft, node, step, result)
        case _:
            assert_never(result)


def _undeclared(node: PlannedNode, outcome: str) -> Raised:
    return Raised("unknown_outcome", None, {"type": node.type, "outcome": outcome}, is_retryable=False)


def _clean_up_again(draft: Draft, step_id: int, token: str, result: HandlerResult) -> None:
    """A handler that outlived a cancel: its type cleans up a second time, now with what it returned (CN-5), once."""
    cancelled = draft.cancelled.get(step_id)
    if cancelled is None or cancelled.claim_token != token:
        return
    cancelled = draft.settle_cancelled(cancelled)
    output: JsonObject | None = result.output if isinstance(result, (Complete, Wait)) else None
    hooks.add_cancel_hook(draft, cancelled, call=2, output=output)
    draft.record(EventType.RESULT_DROPPED, cancelled, {"reason": "cancelled"})


def lose(draft: Draft, step_id: int, token: str) -> None:
    """The lease is over: the attempt fails, retryably (JB-12). A cancelled one gets its second clean-up (WK-11)."""
    step = find_held(draft, step_id, token)
    if step is None:
        draft.dropped = "stale_token"
        _clean_up_again(draft, step_id, token, failing.LEASE_EXPIRED)
        return
    node = draft.plan.find(step.node_id, step.role)
    if step.role is not StepRole.STEP:
        hooks.finish(draft, step, failing.LEASE_EXPIRED)
    elif node is None:
        failing.fail_instance(draft, "invalid_graph", {"detail": f"no node {step.node_id}"}, step=step)
    else:
        walking.walk(draft, failing.fail_step(draft, node, step, failing.LEASE_EXPIRED), step.scope_id)


def hand_back(draft: Draft, step_id: int, token: str) -> None:
    """The holder gives the step back before its handler began: the same attempt is ready again."""
    step = find_held(draft, step_id, token)
    if step is None:
        draft.dropped = "stale_token"
        return
    starting.enqueue(draft, step)
