"""Entering nodes and following edges: how a token moves through the graph."""

from __future__ import annotations

from korak.core import failing, starting, waiting
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.roots import get_roots
from korak.core.rows import StepRun
from korak.core.snapshot import Claimant
from korak.errors import KorakError
from korak.graphs.hygiene import size
from korak.graphs.paths import MISSING
from korak.graphs.plans import ANY, PlannedNode
from korak.model import ClosedReason, EventType, InstanceStatus, Json, JsonObject, StepStatus
from korak.steps.builtin import PURE
from korak.steps.pure import Completed, Entry, Failed, LoopState, Parked, PureResult
from korak.steps.waits import Signal, WaitSpec

JUMP = "_next_step"
"""The key of an output that names the node to go on with, instead of an edge."""

END = "$end"
"""The target of a jump that ends the run."""


def walk(draft: Draft, node_id: str | None, claimant: Claimant | None = None) -> None:
    """Move the token to a node and on through all that is decided at once, until a step runs, waits or is queued."""
    while node_id is not None:
        node = draft.plan.nodes.get(node_id)
        if node is None:
            failing.fail_instance(draft, "invalid_graph", {"detail": f"no node {node_id}"})
            return
        step = enter(draft, node)
        if step is None:
            return
        draft.walked += 1
        if not _is_decided_here(draft, node):
            node_id = begin(draft, node, step, claimant)
        else:
            node_id = decide_pure(draft, node, step)


def begin(draft: Draft, node: PlannedNode, step: StepRun, claimant: Claimant | None) -> str | None:
    """Make a new attempt running if the claimant may run it here, else queue it; where its error exit leads, if any."""
    if node.is_pure or failing.has_exit(node):
        keep_last_output(draft)
    if claimant is None or not starting.may_run(draft, node, step, claimant):
        starting.enqueue(draft, step)
        return None
    error = starting.run(draft, node, step, claimant)
    return None if error is None else failing.fail_step(draft, node, step, error)


def _is_decided_here(draft: Draft, node: PlannedNode) -> bool:
    return node.is_pure and draft.walked <= draft.policy.walk and draft.instance.paused_at is None


def keep_last_output(draft: Draft) -> None:
    """Keep the last output with the run where the walk stops before it can be used: it is the result by default."""
    if draft.last_output is not None:
        draft.instance.result = draft.last_output


def enter(draft: Draft, node: PlannedNode) -> StepRun | None:
    """A new visit of the node, or None where a limit ended the run (LM-1)."""
    limit = draft.policy.get_limit("max_steps", draft.plan.settings.limits)
    draft.instance.steps_count += 1
    if draft.instance.steps_count > limit:
        draft.instance.steps_count -= 1
        failing.fail_instance(draft, "step_limit_exceeded", {"limit": limit, "actual": limit + 1})
        return None
    return draft.add_step(node, visit=_count_visit(draft, node))


def _count_visit(draft: Draft, node: PlannedNode) -> int:
    if not node.repeats:
        return 1
    visits = draft.get_walk("visits")
    seen = visits.get(node.id)
    visit = (seen if isinstance(seen, int) else 0) + 1
    draft.set_walk("visits", {**visits, node.id: visit})
    return visit


def decide_pure(draft: Draft, node: PlannedNode, step: StepRun, signal: Signal | None = None) -> str | None:
    """Decide a node that reads only the snapshot, on entry or when it is woken; the node that follows, if any."""
    entry = Entry(
        node=node,
        roots=get_roots(draft.plan, draft.instance, draft.ended, draft.now, scope_id=step.scope_id),
        now=draft.now,
        timezone=draft.plan.settings.timezone,
        visit=step.visit,
        loop=_get_loop(draft, node),
        output=step.output,
    )
    kind = PURE.get(node.type)
    if kind is None:
        return failing.fail_step(draft, node, step, failing.broken_graph(f"{node.type} is not decided here"))
    result = kind.enter(entry) if signal is None else kind.resume_pure(entry, signal)
    return settle_pure(draft, node, step, result)


def settle_pure(draft: Draft, node: PlannedNode, step: StepRun, result: PureResult) -> str | None:
    """Record what a pure node came to; the node that follows, if any."""
    match result:
        case Parked(spec, output):
            keep_last_output(draft)
            return park(draft, node, step, spec, output)
        case Failed(code, params, message, is_retryable):
            return failing.fail_step(draft, node, step, Raised(code, message, dict(params), is_retryable=is_retryable))
        case Completed():
            if node.type == "loop":
                _set_loop(draft, node, result.loop)
            if result.ends:
                return _end(draft, node, step, result)
            return complete(draft, node, step, result.outcome, result.output, patch=result.state_patch)


def park(draft: Draft, node: PlannedNode, step: StepRun, spec: WaitSpec, output: JsonObject) -> str | None:
    """Let the step wait (RC-4); the node that follows where waiting for it is impossible and it fails instead."""
    try:
        waiting.park(draft, step, spec, output)
    except KorakError as error:
        refused = Raised(error.code, error.message, dict(error.params), is_retryable=False)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:  # what an own type's spec is made of
        told: JsonObject = {"pointer": "", "detail": f"it can't be waited for: {error}"}
        refused = Raised("invalid_output", None, told, is_retryable=False)
    else:
        return None
    return failing.fail_step(draft, node, step, refused)


def _end(draft: Draft, node: PlannedNode, step: StepRun, result: Completed) -> str | None:
    """End the run, unless its result is larger than its state may be: it is kept with the run like that."""
    limit = draft.policy.get_limit("max_state_bytes", draft.plan.settings.limits)
    if result.result is not MISSING and (actual := size(result.result)) > limit:
        told: JsonObject = {"pointer": "/result", "detail": f"it is {actual} bytes, {limit} at most"}
        return failing.fail_step(draft, node, step, Raised("invalid_output", None, told, is_retryable=False))
    _close_step(draft, step, result.outcome, result.output)
    last = draft.instance.result if draft.last_output is None else draft.last_output
    complete_instance(draft, last if result.result is MISSING else result.result)
    return None


def _get_loop(draft: Draft, node: PlannedNode) -> LoopState | None:
    kept = draft.get_walk("loops").get(node.id)
    return LoopState.from_json(kept) if isinstance(kept, dict) else None


def _set_loop(draft: Draft, node: PlannedNode, loop: LoopState | None) -> None:
    loops = draft.get_walk("loops")
    loops.pop(node.id, None)
    draft.set_walk("loops", loops if loop is None else {**loops, node.id: loop.to_json()})


def complete(
    draft: Draft,
    node: PlannedNode,
    step: StepRun,
    outcome: str,
    output: JsonObject,
    *,
    patch: JsonObject | None = None,
) -> str | None:
    """The step is done: record it, take its output in, and give the node that its outcome leads to (RC-3, RC-7).

    `patch` are keys of the state that it writes besides what its node saves.
    """
    instance = draft.instance
    state = _save(node, {**instance.state, **patch} if patch else instance.state, output)
    refused = _find_breach(draft, state, instance.transitions_count + 1) or _check_jump(draft, node, output)
    if refused is not None:
        return failing.fail_step(draft, node, step, refused)
    instance.transitions_count += 1
    instance.state = state
    _close_step(draft, step, outcome, output)
    draft.remember(step, output=output, outcome=outcome, error=None)
    return follow(draft, node, outcome, output)


def follow(draft: Draft, node: PlannedNode, outcome: str, output: JsonObject) -> str | None:
    """The node that an outcome leads to, or the one that the output jumps to.

    Where none follows the run is complete, with the last output of a step.
    """
    if not node.is_pure or node.waits:
        draft.last_output = output
    jump = output.get(JUMP)
    target = node.targets.get(outcome) if jump is None else str(jump)
    if target is None or target == END:
        complete_instance(draft, draft.instance.result if draft.last_output is None else draft.last_output)
        return None
    return target


def _check_jump(draft: Draft, node: PlannedNode, output: JsonObject) -> Raised | None:
    """What is wrong with the jump that an output asks for: its node's `jumps` must name it."""
    target, allowed = output.get(JUMP), node.jumps or frozenset()
    if target is None or (isinstance(target, str) and target in allowed):
        return None
    if allowed == ANY and isinstance(target, str) and (target == END or target in draft.plan.nodes):
        return None
    return Raised("unknown_jump", None, {"target": target}, is_retryable=False)


def _save(node: PlannedNode, state: JsonObject, output: JsonObject) -> JsonObject:
    if node.save is None:
        return state
    if node.save.key is not None:
        return {**state, node.save.key: output}
    return {**state, **{key: value for key, value in output.items() if not key.startswith("_")}}


def _find_breach(draft: Draft, state: JsonObject, transitions: int) -> Raised | None:
    given = draft.plan.settings.limits
    limit = draft.policy.get_limit("max_transitions", given)
    if transitions > limit:
        return failing.limit_breach("max_transitions_exceeded", {"limit": limit})
    if state is not draft.instance.state:
        limit = draft.policy.get_limit("max_state_bytes", given)
        actual = size(state)
        if actual > limit:
            return failing.limit_breach("max_state_bytes_exceeded", {"limit": limit, "actual": actual})
    return None


def _close_step(draft: Draft, step: StepRun, outcome: str, output: JsonObject) -> None:
    draft.cancel_waits(step)
    waiting.discard_deliveries(draft, step)
    step = draft.move(step, StepStatus.COMPLETED)
    step.outcome, step.output = outcome, output
    if step.started_at is None:
        step.started_at = draft.now
    draft.record(EventType.STEP_COMPLETED, step, {"outcome": outcome, "visit": step.visit, "attempt": step.attempt})


def complete_instance(draft: Draft, result: Json) -> None:
    """The run has come to its end."""
    instance = draft.instance
    draft.move_instance(InstanceStatus.COMPLETED)
    instance.result, instance.ended_at, instance.closed_reason = result, draft.now, ClosedReason.COMPLETED
    draft.record(EventType.INSTANCE_COMPLETED)
