"""Steps with bodies: their scopes are made, started and settled here, until the container is done or has failed."""

from __future__ import annotations

from typing import cast

from korak.core import ending, failing, retries, starting, waiting, walking
from korak.core.counters import DONE, FAILED, REDUCING, Counters
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.merging import merge
from korak.core.rows import Scope, StepRun
from korak.graphs.document import REDUCED
from korak.graphs.hygiene import size
from korak.graphs.plans import PlannedNode
from korak.model import EventType, FailureCategory, JsonObject, ScopeStatus, StepStatus
from korak.steps.builtin import PURE
from korak.steps.pure import Opened
from korak.steps.results import NEXT

MOST = 2 << 20
"""The most bytes that the bodies of a container may come to together."""

BODY = "body"
"""The name of a scope's one body."""


def proceed(draft: Draft) -> None:
    """Settle the bodies that have ended and look at their containers, until nothing more follows in this decision."""
    grown: set[int] = set()
    while not draft.instance.is_ended:
        if draft.ended_scopes:
            _settle(draft, draft.ended_scopes.pop(0))
        elif draft.containers:
            step = draft.get_step(draft.containers[0])
            if step is None or step.counters is None or not _look(draft, step, grown):
                draft.containers.pop(0)
        else:
            return


def is_owed_a_look(draft: Draft, step: StepRun) -> bool:
    """Whether a resumed step has something to do: a container has only if it is behind, or waits for something too."""
    counters = _read(step)
    return counters is None or counters.has_debt(draft.policy.pages) or bool(draft.list_waits(step))


def _read(step: StepRun) -> Counters | None:
    return None if step.counters is None else Counters.from_json(step.counters)


def _look(draft: Draft, step: StepRun, grown: set[int]) -> bool:
    """Do one thing that the container is behind with; whether there may be another. Each makes one page a decision.

    What takes rows that aren't in view makes the container ready: it is claimed, and loaded with them.
    """
    counters = Counters.from_json(cast("JsonObject", step.counters))
    if counters.verdict == REDUCING:
        return False
    if (counters.verdict or counters.judge()) == DONE:
        _conclude(draft, step, counters)
        return False
    pending = draft.scopes.list_pending(step)
    wants_page = step.id not in grown and counters.wants_page(draft.policy.pages)
    if wants_page and len(pending) >= counters.pending and _make_page(draft, step, counters):
        grown.add(step.id)
        return True
    if pending and counters.running < counters.concurrency:
        _start(draft, step, counters, draft.scopes.rows[pending.popleft()])
        return True
    if step.ready_at is None and (counters.has_debt(draft.policy.pages) or counters.has_few(len(pending))):
        draft.make_ready(step)
    return False


def _make_page(draft: Draft, step: StepRun, counters: Counters) -> bool:
    """Make the next bodies of the container, without a token yet; False where its input isn't in view."""
    node = draft.plan.nodes[step.node_id]
    names = list(node.branches) or ([BODY] if node.type == "scope" else [])
    given = step.input if isinstance(step.input, dict) else {}
    items = given.get("items")
    if not names and not isinstance(items, list):
        return False
    end = min(counters.total, counters.created + draft.policy.pages.size)
    for index in range(counters.created, end):
        if names:
            draft.scopes.add(draft.make_id(), step, index, name=names[index])
        else:
            draft.scopes.add(draft.make_id(), step, index, item=cast("list[JsonObject]", items)[index])
    _write(draft, step, counters.change(created=end))
    return True


def _start(draft: Draft, step: StepRun, counters: Counters, scope: Scope) -> None:
    node = draft.plan.nodes[step.node_id]
    index = scope.item_index or 0
    _write(draft, step, counters.change(started=counters.started + 1, next_index=index + 1))
    _begin(draft, scope, node.branches.get(scope.name or BODY, node.body))


def _begin(draft: Draft, scope: Scope, first: str | None) -> None:
    """Give the body its token: at the step where it was halted if it was, else at its first node."""
    scope = draft.scopes.move(scope.id, ScopeStatus.RUNNING)
    scope.halted_step_run_id = None
    halted = draft.snapshot.halted.get(scope.id)
    if halted is None:
        walking.walk(draft, first, scope.id)
    else:
        reopen(draft, draft.plan.nodes[halted.node_id], halted)


def _write(draft: Draft, step: StepRun, counters: Counters) -> StepRun:
    step = draft.edit(step)
    step.counters = counters.to_json()
    return step


def _settle(draft: Draft, scope_id: int) -> None:
    """Count a body that has ended. One whose container is over already changes nothing."""
    scope = draft.scopes.rows.get(scope_id)
    step = None if scope is None else draft.get_step(scope.step_run_id)
    if scope is None or step is None or step.counters is None:
        return
    counters = Counters.from_json(step.counters)
    draft.scopes.edit(scope_id).finish_order = counters.order
    has_succeeded = scope.status is ScopeStatus.COMPLETED
    if counters.verdict == REDUCING:
        _tell(draft, step, scope, has_succeeded=has_succeeded)
        _conclude_reduced(draft, step, counters, scope)
        return
    counters = counters.settle(has_succeeded=has_succeeded)
    step = _write(draft, step, counters)
    _tell(draft, step, scope, has_succeeded=has_succeeded)
    draft.last_outputs.pop(scope_id, None)
    if counters.total > draft.policy.pages.small:
        draft.scopes.drop(scope_id)
    match FAILED if _is_breach(scope) else counters.judge():
        case None if counters.has_debt(draft.policy.pages):
            draft.containers.append(step.id)
        case None:
            pass
        case verdict if verdict == DONE:
            _conclude(draft, step, counters)
        case _:
            _fail(draft, step, counters, scope)


def _tell(draft: Draft, step: StepRun, scope: Scope, *, has_succeeded: bool) -> None:
    which: JsonObject = {"index": scope.item_index} if scope.name is None else {"branch": scope.name}
    draft.record(EventType.BODY_COMPLETED if has_succeeded else EventType.BODY_FAILED, step, which)


def _conclude(draft: Draft, step: StepRun, counters: Counters) -> None:
    """Enough bodies have succeeded: merge them in the order of their declaration, and go on behind the container.

    What still lives inside is cancelled. Where ended bodies aren't in view the container is claimed for its merge; so
    it is where a reducer comes after what was cancelled. Until then no exit is taken any more.
    """
    node = draft.plan.nodes[step.node_id]
    ended = [scope for scope in draft.scopes.list_of(step) if scope.finish_order is not None]
    is_open = counters.verdict is None and counters.settled < counters.total
    if len(ended) < counters.settled or (is_open and node.reducer is not None):
        if not counters.is_decided:
            ending.close_inside(draft, step)
        draft.cancel_waits(step)
        draft.make_ready(_write(draft, step, counters.change(verdict=DONE)))
        return
    outcome, output, patch = merge(node, counters, ended)
    if node.reducer is not None:
        _reduce(draft, step, counters, output)
    else:
        _go_on(draft, step, outcome, output, patch)


def _go_on(draft: Draft, step: StepRun, outcome: str, output: JsonObject, patch: JsonObject) -> None:
    """Behind the container with what its bodies came to, unless that is more than an output may be."""
    node = draft.plan.nodes[step.node_id]
    if (actual := size(output)) > MOST:
        told: JsonObject = {"pointer": "", "detail": f"it is {actual} bytes, {MOST} at most"}
        following = failing.fail_step(draft, node, step, Raised("invalid_output", None, told, is_retryable=False))
    else:
        following = walking.complete(draft, node, step, outcome, output, patch=patch)
    walking.walk(draft, following, step.scope_id)


def _reduce(draft: Draft, step: StepRun, counters: Counters, gathered: JsonObject) -> None:
    """Begin the one step that runs over what the bodies came to, which is its `item`; after a retry it goes on."""
    step = draft.clear_ready(_write(draft, step, counters.change(verdict=REDUCING)))
    scope = next((scope for scope in draft.scopes.list_of(step) if scope.name == REDUCED), None)
    if scope is None:
        scope = draft.scopes.add(draft.make_id(), step, counters.total, name=REDUCED, item=gathered)
    _begin(draft, scope, draft.plan.nodes[step.node_id].reducer)


def _conclude_reduced(draft: Draft, step: StepRun, counters: Counters, scope: Scope) -> None:
    """What the reducer returned goes over what was gathered; it may jump, too."""
    if scope.status is not ScopeStatus.COMPLETED:
        _fail(draft, step, counters, scope)
        return
    gathered = cast("JsonObject", scope.item)
    made = scope.output if isinstance(scope.output, dict) else {}
    _go_on(draft, step, NEXT, {**gathered, **made}, {})


def _fail(draft: Draft, step: StepRun, counters: Counters, scope: Scope) -> None:
    """Too few bodies can still succeed: the container fails with what the last of them failed with."""
    node = draft.plan.nodes[step.node_id]
    told = scope.error or {}
    params = dict(cast("JsonObject", told.get("params") or {}))
    error = Raised(
        str(told.get("code")),
        cast("str | None", told.get("text")),
        params | _find_culprit(draft, scope, params),
        is_retryable=False,
        category=FailureCategory(str(told.get("category") or FailureCategory.STEP)),
    )
    if counters.mode != "all" and counters.verdict is None and not _is_breach(scope):
        needed = 1 if counters.mode == "first_success" else counters.quorum
        pointer = "/quorum" if counters.mode == "quorum" else "/items"
        lack: JsonObject = {"pointer": pointer, "needed": needed, "total": counters.total, "failed": counters.failed}
        error = Raised("quorum_unreachable", None, lack, is_retryable=False)
    walking.walk(draft, failing.fail_step(draft, node, step, error), step.scope_id)


def _find_culprit(draft: Draft, scope: Scope, params: JsonObject) -> JsonObject:
    """The step that a body failed at and the way to it: `{node, branch}` of the innermost, its branch like `a/3`."""
    here = str(scope.item_index) if scope.name is None else scope.name
    failed = str((scope.error or {}).get("node"))
    node = draft.plan.nodes[failed]
    if (node.branches or node.body is not None) and "branch" in params:
        return {"node": params.get("node"), "branch": f"{here}/{params['branch']}"}
    return {"node": failed, "branch": here}


def _is_breach(scope: Scope) -> bool:
    """Whether a limit of the run ended the body: then no other body and no exit saves the run."""
    return scope.error is not None and scope.error.get("category") == FailureCategory.LIMIT


def reopen(draft: Draft, node: PlannedNode, failed: StepRun) -> None:
    """The attempt of a manual retry. A container keeps what has succeeded in it; the rest is to be started once more.

    It is claimed for that, so that no more of its bodies live than may, and lets each go on where it stood. What was
    cancelled has been cleaned up after: it is visited anew, under a key of its own.
    """
    is_new = failed.status is StepStatus.CANCELLED
    if failed.counters is None:
        if is_new:
            starting.enqueue_first(draft, node, walking.revisit(draft, node, failed.scope_id, after=failed))
        else:
            retries.reopen(draft, node, failed)
        return
    if is_new:
        step = walking.revisit(draft, node, failed.scope_id, after=failed)
    else:
        step = draft.add_step(node, visit=failed.visit, like=failed)
    counters = Counters.from_json(failed.counters)
    reopened = counters.reopen()
    step = _wait_again(draft, node, step, is_over=reopened.judge() == DONE)
    step.input, step.started_at = failed.input, draft.now
    step.counters = reopened.to_json()
    draft.scopes.adopt(failed, step, is_decided=counters.is_decided)
    draft.containers.append(step.id)


def _wait_again(draft: Draft, node: PlannedNode, step: StepRun, *, is_over: bool) -> StepRun:
    """Let the container wait, for its exits too, unless its bodies have come to their end; their times begin anew."""
    kind = None if is_over else PURE.get(node.type)
    opened = kind.enter(walking.make_entry(draft, node, step)) if kind is not None and kind.parks else None
    if isinstance(opened, Opened) and opened.spec is not None:
        waiting.park(draft, step, opened.spec, {})
        return draft.edit(draft.steps[step.id])
    draft.record(EventType.STEP_WAITING, step, {"visit": step.visit, "for": ["bodies"]})
    return draft.move(step, StepStatus.WAITING)
