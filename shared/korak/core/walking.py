"""Entering nodes and following edges: how a token moves through the graph."""

from __future__ import annotations

from korak.core import budgets, ending, failing, jumping, lapsing, limiting, starting, undoing, waiting
from korak.core.counters import AT_A_TIME, Counters
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.roots import get_roots
from korak.core.rows import StepRun
from korak.core.states import is_work, keep, make_result
from korak.errors import KorakError
from korak.graphs.hygiene import size
from korak.graphs.paths import MISSING, Malformed
from korak.graphs.plans import PlannedNode
from korak.model import EventType, InstanceStatus, JsonObject, StepStatus
from korak.steps.builtin import PURE
from korak.steps.pure import Completed, Entry, Failed, LoopState, Opened, Parked, PureResult
from korak.steps.waits import Signal, WaitSpec


def set_out(draft: Draft) -> None:
    """The instance was accepted: walk from its trigger. A child of a paused run stands there until both go on."""
    draft.move_instance(InstanceStatus.RUNNING)
    draft.instance.started_at = draft.now
    draft.record(EventType.INSTANCE_STARTED, None, {"state": draft.instance.state} if draft.instance.state else None)
    if draft.instance.paused_at is not None:
        draft.record(EventType.INSTANCE_PAUSED, None, {"actor": None})
    walk(draft, draft.plan.start)


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
        ending.keep_last_output(draft, step.scope_id)
    if draft.plan.has_flow and (nameless := limiting.resolve(draft, node, step)) is not None:
        return failing.fail_step(draft, node, step, nameless)
    claimant = draft.claimant
    if claimant is None or not starting.may_run(draft, node, step, claimant):
        starting.enqueue(draft, step)
        return None
    error = starting.run(draft, node, step, claimant)
    return None if error is None else failing.fail_step(draft, node, step, error)


def _is_decided_here(draft: Draft, node: PlannedNode) -> bool:
    """A paused run begins nothing more. It does end where its last step was in flight (spec 6)."""
    is_held = draft.instance.paused_at is not None and node.type != "end"
    return node.is_pure and draft.walked <= draft.policy.walk and not is_held


def enter(draft: Draft, node: PlannedNode, scope_id: int | None) -> StepRun | None:
    """A new visit of the node, or None where a limit ended the run (LM-1). Visits inside a container aren't limited."""
    if scope_id is not None:
        return revisit(draft, node, scope_id)
    limit = draft.policy.get_limit("max_steps", draft.plan.settings.limits)
    draft.instance.steps_count += 1
    if draft.instance.steps_count > limit:
        draft.instance.steps_count -= 1
        told: JsonObject = {"pointer": "/settings/limits/max_steps", "limit": limit, "actual": limit + 1}
        failing.fail_instance(draft, "step_limit_exceeded", told)
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
    if not node.repeats and "rewound" not in (draft.instance.walk or ()):
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
            ending.keep_last_output(draft, step.scope_id)
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
    except (
        Malformed,
        ArithmeticError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:  # what an own type's spec is made of
        told: JsonObject = {"pointer": "", "detail": f"it can't be waited for: {error}"}
        refused = Raised("invalid_output", None, told, is_retryable=False)
    except KorakError as error:
        refused = Raised(error.code, error.message, dict(error.params), is_retryable=False)
    else:
        return None
    return failing.fail_step(draft, node, step, refused)


def _open(draft: Draft, node: PlannedNode, step: StepRun, opened: Opened) -> str | None:
    """Let the step wait for its bodies, which are made before the decision is over."""
    limit = draft.policy.get_limit("max_for_each_items", draft.plan.settings.limits)
    if node.type == "for_each" and opened.total > limit:
        told: JsonObject = {"pointer": "/items", "limit": limit, "actual": opened.total}
        return failing.fail_step(draft, node, step, failing.limit_breach("budget_items", told))
    ending.keep_last_output(draft, step.scope_id)
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
    concurrency = min(draft.policy.pages.size, opened.concurrency or AT_A_TIME)
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
    last = result.result
    if last is MISSING:
        last = make_result(ending.find_last_output(draft, step.scope_id, scope_id), scope_id)
    _close_step(draft, step, result.outcome, result.output)
    ending.come_to_end(draft, scope_id, result.outcome, last)
    return None


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
    bill = budgets.make_bill(draft, node, patch or {}, output, scope_id)
    refused = budgets.find_breach(draft, bill, scope_id) or jumping.check_jump(draft, node, output)
    if refused is not None:
        return failing.fail_step(draft, node, step, refused)
    budgets.book(draft, bill, scope_id)
    _close_step(draft, step, outcome, output, keep(node, patch, bill.removed))
    if node.streams:
        draft.close_chunks(step)
    draft.remember(step, output=output, outcome=outcome, error=None)
    undoing.keep(draft, node, step)
    return follow(draft, node, outcome, output, scope_id=scope_id)


def follow(draft: Draft, node: PlannedNode, outcome: str, output: JsonObject, *, scope_id: int | None) -> str | None:
    """The node that an outcome leads to, or the one that the output jumps to.

    Where none follows the run or the body is complete, with the last output of a step.
    """
    if is_work(node):
        draft.last_outputs[scope_id] = output
    jump = jumping.get_jump(node, output)
    target = node.targets.get(outcome) if jump is None else str(jump)
    if target is None or target == jumping.END:
        ending.come_to_end(draft, scope_id, outcome, make_result(ending.get_last_output(draft, scope_id), scope_id))
        return None
    return target


def _close_step(draft: Draft, step: StepRun, outcome: str, output: JsonObject, kept: JsonObject | None = None) -> None:
    ending.close_inside(draft, step)
    draft.cancel_waits(step)
    lapsing.discard(draft, [step])
    step = draft.move(step, StepStatus.COMPLETED)
    step.outcome, step.output = outcome, output
    if step.started_at is None:
        step.started_at = draft.now
    told: JsonObject = {"outcome": outcome, "visit": step.visit, "attempt": step.attempt}
    draft.record(EventType.STEP_COMPLETED, step, told | kept if kept else told)
