"""Runs below a run: started with the record of the step that wants them, and settled when their end is told."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from korak.core import commanding, containers, failing, telling, undoing, waiting, walking
from korak.core.changes import Changes
from korak.core.draft import Draft
from korak.core.facts import Raised, Spawn
from korak.core.opening import Opening, Parent, open_instance
from korak.core.rows import StepRun
from korak.graphs.plans import PlannedNode
from korak.model import (
    DeliveryKind,
    FailureCategory,
    InstanceStatus,
    JsonObject,
    SignalKind,
    StepStatus,
    WaitKind,
)
from korak.steps import moments
from korak.steps.results import NEXT
from korak.steps.waits import Signal, WaitItem, WaitSpec

STARTED: Final = "max_started_workflows"


def spawn(draft: Draft, node: PlannedNode, step: StepRun, wanted: Spawn) -> str | None:
    """Start the runs, and wait for the one, for the next page of them, or for none; the node that follows, if any.

    Where a limit or the room in the state refuses it, none is started.
    """
    refused = _find_breach(draft, wanted)
    if refused is not None:
        return failing.fail_step(draft, node, step, refused)
    target = _go_on(draft, node, step, wanted)
    if draft.edit(step).status is not StepStatus.FAILED:
        children = [_open(draft, step, place, each) for place, each in enumerate(wanted.openings, wanted.offset)]
        draft.reach().children.extend(children)
        draft.set_walk(telling.CHILDREN, {"count": telling.count_children(draft) + len(children)})
    return target


def _go_on(draft: Draft, node: PlannedNode, step: StepRun, wanted: Spawn) -> str | None:
    if wanted.rest:
        spec = WaitSpec((), wants_probe=True) if wanted.pause is None else WaitSpec.timer(wanted.pause)
        return walking.park(draft, node, step, spec, wanted.output)
    if not wanted.awaits:
        return walking.complete(draft, node, step, NEXT, wanted.output)
    [child] = wanted.openings
    spec = _wait_for(child.ulid)
    return walking.park(draft, node, step, spec if wanted.timeout is None else spec.timeout(wanted.timeout), {})


def _wait_for(ulid: str) -> WaitSpec:
    return WaitSpec((WaitItem(WaitKind.CHILD, key=ulid),))


def _find_breach(draft: Draft, wanted: Spawn) -> Raised | None:
    given = draft.plan.settings.limits
    count = len(wanted.openings) + wanted.rest
    for code, name, pointer, actual in (
        ("nesting_depth_exceeded", "max_depth", "/definition", draft.instance.depth + 1 if count else 0),
        ("budget_children", STARTED, f"/settings/limits/{STARTED}", telling.count_children(draft) + count),
    ):
        limit = draft.policy.get_limit(name, given)
        if actual > limit:
            return failing.limit_breach(code, {"pointer": pointer, "limit": limit, "actual": actual})
    return None


def _open(draft: Draft, step: StepRun, place: int, opening: Opening) -> Changes:
    """A child's first walk. Its key is the attempt that starts it and its place there: none is started twice."""
    parent = draft.instance
    key = "\x1f".join(("child", step.idempotency_key, str(step.attempt), str(place)))
    opening = replace(
        opening,
        digest=hashlib.sha256(key.encode()).hexdigest(),
        parent=Parent(parent.id, step.id, parent.depth, parent.paused_at),
    )
    child = Draft(open_instance(opening, draft.policy, draft.now), draft.now)
    walking.set_out(child)
    containers.proceed(child)
    undoing.proceed(child)
    commanding.settle_status(child)
    if child.instance.is_ended:
        telling.tell_end(child)
    return child.finish()


def settle(draft: Draft, node: PlannedNode, step: StepRun, signal: Signal) -> str | None:
    """What the end of its child is to a step: its output, or its failure; the node that follows, if any."""
    told = cast("Mapping[str, Any]", signal.payload)
    if told.get("status") == InstanceStatus.COMPLETED:
        result = told.get("result")
        output: JsonObject = result if isinstance(result, dict) else {"result": result}
        return walking.complete(draft, node, step, NEXT, output)
    return failing.fail_step(draft, node, step, _blame(told))


def _blame(told: Mapping[str, Any]) -> Raised:
    params: JsonObject = {"child": told.get("child")}
    if told.get("status") == InstanceStatus.FAILED:
        params |= {"code": told.get("code"), "message": told.get("message")}
        return Raised("child_failed", None, params, category=FailureCategory.CHILD)
    params["reason"] = told.get("reason")
    return Raised("child_cancelled", None, params, is_retryable=False, category=FailureCategory.CHILD)


def is_childs(step: StepRun) -> bool:
    """Whether an attempt tries again what a child failed at: then the child does."""
    return step.resume_signal is not None and step.resume_signal.get("kind") == SignalKind.CHILD


def retry(draft: Draft, step: StepRun) -> None:
    """Bid the child go on from the step where it failed, and wait for it again. It answers whatever it has come to."""
    ulid = str((step.resume_signal or {}).get("name"))
    telling.bid(draft, ulid, DeliveryKind.RETRY)
    spec = _wait_for(ulid)
    timeout = step.input.get("timeout") if isinstance(step.input, dict) else None
    if timeout is not None:
        due = moments.read_due(timeout, pointer="/timeout", now=draft.now, timezone=draft.plan.settings.timezone)
        spec = spec.timeout(due)
    waiting.park(draft, draft.move(step, StepStatus.RUNNING), spec, step.output or {})
