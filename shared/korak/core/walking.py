"""Entering nodes and following edges: how a token moves through the graph."""

from __future__ import annotations

from korak.core import failing, starting, undoing, waiting
from korak.core.counters import AT_A_TIME, PAGE, Counters
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.roots import get_roots
from korak.core.rows import StepRun
from korak.errors import KorakError
from korak.graphs.hygiene import size
from korak.graphs.paths import MISSING
from korak.graphs.plans import ANY, PlannedNode
from korak.model import ClosedReason, EventType, InstanceStatus, Json, JsonObject, ScopeStatus, StepStatus
from korak.steps.builtin import PURE
from korak.steps.pure import Completed, Entry, Failed, LoopState, Opened, Parked, PureResult
from korak.steps.waits import Signal, WaitSpec

JUMP = "_next_step"
"""The key of an output that names the node to go on with, instead of an edge."""

END = "$end"
"""The target of a jump that ends the run."""


def walk(draft: Draft, node_id: str | None, scope_id: int | None = None) -> None:
    """Move a scope's token on through all that is decided at once, until a step runs, waits or is queued."""
    while node_id is not None:
        node = draft.plan.nodes.get(node_id)
        if node is None:
            failing.fail_instance(draft, "invalid_graph", {"detail": f"no node {node_id}"})
            return
        step = enter(draft, node, scope_id)
        if step is None:
            return
        draft.walked += 1
        decide = decide_pure if _is_decided_here(draft, node) else begin
        node_id = decide(draft, node, step)


def begin(draft: Draft, node: PlannedNode, step: StepRun) -> str | None:
    """Make a new attempt running if the claimant may run it here, else queue it; where its error exit leads, if any."""
    if node.is_pure or failing.has_exit(node):
        keep_last_output(draft, step.scope_id)
    claimant = draft.claimant
    if claimant is None or not starting.may_run(draft, node, step, claimant):
        starting.enqueue(draft, step)
        return None
    error = starting.run(draft, node, step, claimant)
    return None if error is None else failing.fail_step(draft, node, step, error)


def _is_decided_here(draft: Draft, node: PlannedNode) -> bool:
    return node.is_pure and draft.walked <= draft.policy.walk and draft.instance.paused_at is None


def keep_last_output(draft: Draft, scope_id: int | None) -> None:
    """Keep the last output where the walk stops before it can be used: it is the result by default."""
    if scope_id not in draft.last_outputs:
        return
    if scope_id is None:
        draft.instance.result = draft.last_outputs[scope_id]
    else:
        draft.scopes.edit(scope_id).output = draft.last_outputs[scope_id]


def _get_last_output(draft: Draft, scope_id: int | None) -> Json:
    kept = draft.instance.result if scope_id is None else draft.scopes.rows[scope_id].output
    return draft.last_outputs.get(scope_id, kept)


def enter(draft: Draft, node: PlannedNode, scope_id: int | None) -> StepRun | None:
    """A new visit of the node, or None where a limit ended the run (LM-1). Visits inside a container aren't limited."""
    if scope_id is not None:
        return revisit(draft, node, scope_id)
    limit = draft.policy.get_limit("max_steps", draft.plan.settings.limits)
    draft.instance.steps_count += 1
    if draft.instance.steps_count > limit:
        draft.instance.steps_count -= 1
        failing.fail_instance(draft, "step_limit_exceeded", {"limit": limit, "actual": limit + 1})
        return None
    return draft.add_step(node, visit=_count_visit(draft, node))


def revisit(draft: Draft, node: PlannedNode, scope_id: int | None, *, after: StepRun | None = None) -> StepRun:
    """The first attempt of a new visit in a scope; `after` is one that was cancelled and is begun anew."""
    visit = _count_visit(draft, node)
    if after is not None and scope_id is None:
        draft.instance.steps_count += 1
        visit = max(visit, after.visit + 1)
    return draft.add_step(node, visit=visit, scope_id=scope_id)


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
    kind = PURE.get(node.type)
    if kind is None:
        return failing.fail_step(draft, node, step, failing.broken_graph(f"{node.type} is not decided here"))
    entry = make_entry(draft, node, step)
    result = kind.enter(entry) if signal is None else kind.resume_pure(entry, signal)
    return settle_pure(draft, node, step, result)


def make_entry(draft: Draft, node: PlannedNode, step: StepRun) -> Entry:
    """What a pure node may read as it is entered or woken."""
    return Entry(
        node=node,
        roots=get_roots(draft, draft.scopes.rows, draft.now, scope_id=step.scope_id),
        now=draft.now,
        timezone=draft.plan.settings.timezone,
        visit=step.visit,
        loop=_get_loop(draft, node, step.scope_id),
        output=step.output,
        branches=len(node.branches),
    )


def settle_pure(draft: Draft, node: PlannedNode, step: StepRun, result: PureResult) -> str | None:
    """Record what a pure node came to; the node that follows, if any."""
    match result:
        case Parked(spec, output):
            keep_last_output(draft, step.scope_id)
            return park(draft, node, step, spec, output)
        case Failed(code, params, message, is_retryable):
            return failing.fail_step(draft, node, step, Raised(code, message, dict(params), is_retryable=is_retryable))
        case Opened():
            return _open(draft, node, step, result)
        case Completed():
            if node.type == "loop":
                _set_loop(draft, node, step.scope_id, result.loop)
            if result.ends:
                return _end(draft, node, step, result)
            patch = result.state_patch if step.counters is None else _list_written(draft, step)
            return complete(draft, node, step, result.outcome, result.output, patch=patch)


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


def _open(draft: Draft, node: PlannedNode, step: StepRun, opened: Opened) -> str | None:
    """Let the step wait for its bodies, which are made before the decision is over."""
    limit = draft.policy.get_limit("max_for_each_items", draft.plan.settings.limits)
    if opened.total > limit:
        told: JsonObject = {"limit": limit, "actual": opened.total}
        return failing.fail_step(draft, node, step, failing.limit_breach("max_for_each_items_exceeded", told))
    keep_last_output(draft, step.scope_id)
    if opened.spec is not None:
        target = park(draft, node, step, opened.spec, {})
        if target is not None or step.id not in draft.steps:
            return target
        step = draft.edit(draft.steps[step.id])
    else:
        step = draft.clear_ready(draft.move(step, StepStatus.WAITING))
        draft.record(EventType.STEP_WAITING, step, {"visit": step.visit, "for": ["bodies"], "total": opened.total})
    step.started_at = step.started_at or draft.now
    step.input = opened.input
    concurrency = min(PAGE, opened.concurrency or AT_A_TIME)
    step.counters = Counters(opened.total, opened.mode, opened.quorum, concurrency).to_json()
    draft.containers.append(step.id)
    return None


def _list_written(draft: Draft, step: StepRun) -> JsonObject:
    """What the bodies of a container that something else ends have written until now."""
    written: JsonObject = {}
    for scope in draft.scopes.list_of(step):
        written |= scope.state or {}
    return written


def _end(draft: Draft, node: PlannedNode, step: StepRun, result: Completed) -> str | None:
    """End the run or the body, unless the result is larger than a state may be: it is kept like one."""
    limit = draft.policy.get_limit("max_state_bytes", draft.plan.settings.limits)
    if result.result is not MISSING and (actual := size(result.result)) > limit:
        told: JsonObject = {"pointer": "/result", "detail": f"it is {actual} bytes, {limit} at most"}
        return failing.fail_step(draft, node, step, Raised("invalid_output", None, told, is_retryable=False))
    scope_id = None if result.terminates else step.scope_id
    last = _find_last_output(draft, step.scope_id, scope_id) if result.result is MISSING else result.result
    _close_step(draft, step, result.outcome, result.output)
    _come_to_end(draft, scope_id, result.outcome, last)
    return None


def _find_last_output(draft: Draft, scope_id: int | None, until: int | None) -> Json:
    """The last output of a scope, or of the nearest around it that has one, as far as the one that ends."""
    last = _get_last_output(draft, scope_id)
    while last is None and scope_id is not None and scope_id != until:
        scope_id = draft.scopes.rows[scope_id].parent_scope_id
        last = _get_last_output(draft, scope_id)
    return last


def _come_to_end(draft: Draft, scope_id: int | None, outcome: str, result: Json) -> None:
    if scope_id is None:
        complete_instance(draft, result)
    else:
        draft.end_scope(scope_id, ScopeStatus.COMPLETED, outcome=outcome, output=result)


def _get_loop(draft: Draft, node: PlannedNode, scope_id: int | None) -> LoopState | None:
    kept = draft.get_walk("loops", scope_id).get(node.id)
    return LoopState.from_json(kept) if isinstance(kept, dict) else None


def _set_loop(draft: Draft, node: PlannedNode, scope_id: int | None, loop: LoopState | None) -> None:
    loops = draft.get_walk("loops", scope_id)
    loops.pop(node.id, None)
    draft.set_walk("loops", loops if loop is None else {**loops, node.id: loop.to_json()}, scope_id)


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
    scope_id = step.scope_id
    written = {**(patch or {}), **_list_saved(node, output)}
    made = _count_transitions(draft, node, scope_id)
    refused = _find_breach(draft, written, made, scope_id) or _check_jump(draft, node, output)
    if refused is not None:
        return failing.fail_step(draft, node, step, refused)
    if scope_id is None:
        draft.instance.transitions_count = made
    elif made:
        draft.set_walk("transitions", {"count": made}, scope_id)
    draft.write_state(scope_id, written)
    _close_step(draft, step, outcome, output)
    draft.remember(step, output=output, outcome=outcome, error=None)
    undoing.keep(draft, node, step)
    return follow(draft, node, outcome, output, scope_id=scope_id)


def _count_transitions(draft: Draft, node: PlannedNode, scope_id: int | None) -> int:
    """The transitions with this one. In a body only those that may come round again count, for that body."""
    if scope_id is None:
        return draft.instance.transitions_count + 1
    if not node.comes_round:
        return 0
    count = draft.get_walk("transitions", scope_id).get("count")
    return (count if isinstance(count, int) else 0) + 1


def follow(draft: Draft, node: PlannedNode, outcome: str, output: JsonObject, *, scope_id: int | None) -> str | None:
    """The node that an outcome leads to, or the one that the output jumps to.

    Where none follows the run or the body is complete, with the last output of a step.
    """
    if not node.is_pure or node.waits or node.bodies:
        draft.last_outputs[scope_id] = output
    jump = output.get(JUMP)
    target = node.targets.get(outcome) if jump is None else str(jump)
    if target is None or target == END:
        _come_to_end(draft, scope_id, outcome, _get_last_output(draft, scope_id))
        return None
    return target


def _check_jump(draft: Draft, node: PlannedNode, output: JsonObject) -> Raised | None:
    """What is wrong with the jump that an output asks for: its node's `jumps` must name it."""
    target, allowed = output.get(JUMP), node.jumps or frozenset()
    if target is None or (isinstance(target, str) and target in allowed):
        return None
    if allowed == ANY and isinstance(target, str) and (target == END or _is_beside(draft, node, target)):
        return None
    return Raised("unknown_jump", None, {"target": target}, is_retryable=False)


def _is_beside(draft: Draft, node: PlannedNode, target: str) -> bool:
    other = draft.plan.nodes.get(target)
    return other is not None and (other.container, other.branch) == (node.container, node.branch)


def _list_saved(node: PlannedNode, output: JsonObject) -> JsonObject:
    if node.save is None:
        return {}
    if node.save.key is not None:
        return {node.save.key: output}
    return {key: value for key, value in output.items() if not key.startswith("_")}


def _find_breach(draft: Draft, written: JsonObject, transitions: int, scope_id: int | None) -> Raised | None:
    given = draft.plan.settings.limits
    limit = draft.policy.get_limit("max_transitions", given)
    if transitions > limit:
        return failing.limit_breach("max_transitions_exceeded", {"limit": limit})
    if written:
        limit = draft.policy.get_limit("max_state_bytes", given)
        actual = size({**draft.get_state(scope_id), **written})
        if actual > limit:
            return failing.limit_breach("max_state_bytes_exceeded", {"limit": limit, "actual": actual})
    return None


def _close_step(draft: Draft, step: StepRun, outcome: str, output: JsonObject) -> None:
    failing.close_inside(draft, step)
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
    failing.cancel_steps(draft, list(draft.steps.values()))
    draft.move_instance(InstanceStatus.COMPLETED)
    instance.result, instance.ended_at, instance.closed_reason = result, draft.now, ClosedReason.COMPLETED
    draft.record(EventType.INSTANCE_COMPLETED)
