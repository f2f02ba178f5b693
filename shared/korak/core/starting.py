"""Beginning an attempt: made running under a claim, queued for one, or put back."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

from korak.core import limiting
from korak.core.changes import Grant
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.roots import get_roots
from korak.core.rows import StepRun
from korak.core.snapshot import Claimant, Snapshot
from korak.errors import KorakError
from korak.graphs.hygiene import size
from korak.graphs.plans import PlannedNode
from korak.model import EventType, Json, JsonObject, ParkedFor, StepRole, StepStatus


def enqueue(draft: Draft, step: StepRun) -> None:
    """Queue an attempt, free to be claimed."""
    step = draft.move(step, StepStatus.QUEUED)
    draft.make_ready(step)


def enqueue_first(draft: Draft, node: PlannedNode, step: StepRun) -> None:
    """Queue the first attempt of a visit, or one that is made by hand, under its keys; what is wrong with one is said
    when it is claimed.
    """
    if draft.plan.has_flow:
        limiting.resolve(draft, node, step)
    enqueue(draft, step)


def may_run(draft: Draft, node: PlannedNode, step: StepRun, claimant: Claimant) -> bool:
    """Whether the next step may run where this one is recorded; one token makes one step running."""
    return (
        draft.instance.paused_at is None
        and not draft.claimed
        and not node.is_pure
        and step.queue in claimant.queues
        and claimant.runs(node.type, node.type_version)
        and not is_held(draft, step, claimant)
    )


def is_held(draft: Draft, step: StepRun, claimant: Claimant) -> bool:
    """Whether a hold keeps the step. All facts of one decision go by the holds that the first of them asked."""
    if draft.holds is None:
        draft.holds = claimant.holds
    return draft.holds.cover(step, draft.plan.key)


def run(draft: Draft, node: PlannedNode, step: StepRun, claimant: Claimant) -> Raised | None:
    """Make an attempt running under the claimant's token, with its input resolved and recorded (CL-5, EX-4).

    Gives what is wrong where the input can't be resolved or doesn't fit: then the step has not begun. Neither has one
    that found no room under its limits: it is put back.
    """
    given = _resolve_input(draft, node, step)
    if isinstance(given, Raised):
        return given
    has_room = limiting.admit(draft, node, step) if draft.plan.has_flow else True
    if isinstance(has_room, Raised):
        return has_room
    if has_room:
        _grant(draft, node, step, claimant, given)
    return None


def run_hook(draft: Draft, node: PlannedNode, hook: StepRun, claimant: Claimant, given: Json) -> None:
    """Make a hook running, with its input."""
    _grant(draft, node, hook, claimant, given)


def _grant(draft: Draft, node: PlannedNode, step: StepRun, claimant: Claimant, given: Json) -> None:
    before = step.status
    step = draft.move(step, StepStatus.RUNNING)
    step.engine_id, step.claim_token, step.claimed_at = claimant.engine_id, claimant.token, draft.now
    timeout = node.timeout or draft.policy.timeout
    step.lease_until = draft.now + timedelta(seconds=timeout + draft.policy.grace)
    step.started_at = step.started_at or draft.now
    draft.clear_ready(step)
    if step.resume_signal is None and step.role is not StepRole.CANCEL:
        step.input = _clip(draft, given)
    draft.claimed.append(Grant(step, given))
    told: JsonObject = {"visit": step.visit, "attempt": step.attempt, "engine": claimant.engine_id}
    if step.role is not StepRole.STEP:
        draft.record(EventType.HOOK_STARTED, step, {"role": step.role, **told})
        return
    draft.record(EventType.STEP_RESUMED if before is StepStatus.WAITING else EventType.STEP_STARTED, step, told)


def drop_cancelled(draft: Draft, granted: Iterable[list[Grant]]) -> None:
    """What began in this decision and was cancelled in it, by a body beside it, never ran: it is given to nobody, and
    nobody is waited for to be heard of it.
    """
    for grants in granted:
        for grant in [grant for grant in grants if grant.step.status is not StepStatus.RUNNING]:
            grants.remove(grant)
            draft.settle_cancelled(grant.step)


def grant_again(snapshot: Snapshot, token: str) -> list[Grant]:
    """What runs under a token whose commit's answer was lost. An input that was stored as a marker is resolved anew."""
    draft = Draft(snapshot, snapshot.instance.updated_at)
    return [
        Grant(step, resolve_again(draft, step))
        for step in snapshot.steps.values()
        if step.status is StepStatus.RUNNING and step.claim_token == token
    ]


def resolve_again(draft: Draft, step: StepRun) -> Json:
    """The input of an attempt that has begun before, resolved anew where only a marker was stored."""
    if not _is_clipped(step.input):
        return step.input
    kept = draft.stack.find(step) if step.role is StepRole.COMPENSATE else None
    if kept is not None:
        return kept.input
    node = draft.plan.find(step.node_id, step.role)
    given = step.input if node is None else _resolve_input(draft, node, step)
    return step.input if isinstance(given, Raised) else given


def _resolve_input(draft: Draft, node: PlannedNode, step: StepRun) -> Json | Raised:
    """The handler's input; a resume keeps the one it was parked with (spec 13.8)."""
    if step.resume_signal is not None and not _is_clipped(step.input):
        return step.input
    return resolve(draft, node, step.scope_id)


def resolve(draft: Draft, node: PlannedNode, scope_id: int | None) -> Json | Raised:
    """A config as a place sees it now, checked; or what is wrong with it."""
    if node.config.is_literal:
        return node.config.resolve({})
    try:
        given = node.config.resolve(get_roots(draft, draft.scopes.rows, draft.now, scope_id=scope_id))
    except KorakError as error:
        return Raised(error.code, error.message, error.params, is_retryable=False)
    issues = node.input_schema.check(given) if node.input_schema is not None else ()
    for issue in issues:
        params = {**issue.params, "pointer": issue.pointer, "detail": issue.message}
        return Raised("invalid_input", None, params, is_retryable=False)
    return given


def _clip(draft: Draft, given: Json) -> Json:
    """The input as it is stored: a marker where it is over the bound (LM-7)."""
    actual = size(given)
    return given if actual <= draft.policy.limits["max_input_bytes"] else {"truncated": True, "bytes": actual}


def _is_clipped(stored: Json) -> bool:
    return isinstance(stored, dict) and stored.keys() == {"truncated", "bytes"}


def park(draft: Draft, step: StepRun, reason: ParkedFor) -> None:
    """Put a step back that may not or can't run here: no attempt, no failure.

    Parked for an engine it is released when one announces the type, for a hold when that is over.
    """
    if step.status is StepStatus.RUNNING:
        step = draft.move(step, StepStatus.QUEUED)
    step = draft.clear_ready(step)
    step.parked_for = reason
