"""When a failed attempt is tried again, and the attempt that is then made."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from korak.core import starting, waiting
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.rows import StepRun
from korak.core.snapshot import Policy
from korak.graphs.contracts import RetryPolicy
from korak.graphs.durations import compile_duration
from korak.graphs.plans import PlannedNode
from korak.model import ParkedFor, StepRole, StepStatus, WaitKind


def get_policy(node: PlannedNode, policy: Policy) -> RetryPolicy:
    """The policy in force: the node's, settings' or type's, as the plan has chosen; else the engine's (RT-1).

    One that names no back-off takes the engine's.
    """
    given = node.retry or policy.retry
    return given if given.backoff else replace(given, backoff=policy.retry.backoff)


def get_max_attempts(retry: RetryPolicy, policy: Policy) -> int:
    """How many attempts there are in all, the first included (RT-2b), clamped at the cap (RT-3)."""
    return max(1, min(retry.max_attempts, policy.attempts_cap))


def get_due(retry: RetryPolicy, step: StepRun, now: datetime, timezone: str, *, after: datetime | None) -> datetime:
    """When the next attempt is due: after the back-off and its jitter, or at `after` if that is later (RT-4, RT-12)."""
    due = now
    if retry.backoff:
        raw = retry.backoff[min(step.attempt, len(retry.backoff)) - 1]
        due = compile_duration(raw).after(now, timezone)
        due = now + max(timedelta(), (due - now) * (1 + retry.jitter * get_spread(step)))
    return due if after is None or after <= due else after


def get_spread(step: StepRun) -> float:
    """A number from -1 to 1 that is spread evenly over steps and always the same for one attempt."""
    digest = hashlib.blake2b(f"{step.idempotency_key}:{step.attempt}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / (1 << 63) - 1


def schedule(draft: Draft, node: PlannedNode, failed: StepRun, error: Raised) -> None:
    """The next attempt of the visit, under the same key, due after the back-off. A failed resume stays one (RT-6)."""
    due = get_due(get_policy(node, draft.policy), failed, draft.now, draft.plan.settings.timezone, after=error.after)
    step = draft.move(_repeat(draft, node, failed), StepStatus.QUEUED)
    step.scheduled_for, step.backoff_seconds = due, (due - draft.now).total_seconds()
    wait = draft.add_wait(step, WaitKind.RETRY, due_at=due)
    if draft.instance.paused_at is not None and step.role is StepRole.STEP:
        waiting.suspend(draft, wait)
        step.parked_for = ParkedFor.PAUSE


def reopen(draft: Draft, node: PlannedNode, failed: StepRun) -> None:
    """The attempt of a manual retry: same visit and key, ready at once (MR-1, MR-2)."""
    starting.enqueue(draft, _repeat(draft, node, failed))


def hasten(draft: Draft, ulid: str) -> None:
    """The attempt after an abandoned one waited for its thread to end; now its back-off alone counts."""
    for wait in list(draft.waits.values()):
        step = draft.get_step(wait.step_run_id)
        if wait.kind is WaitKind.RETRY and wait.due_at is not None and step is not None and step.retry_of == ulid:
            policy = get_policy(draft.plan.nodes[step.node_id], draft.policy)
            due = get_due(policy, step, draft.now, draft.plan.settings.timezone, after=None)
            draft.edit_wait(wait).due_at = min(wait.due_at, due)


def _repeat(draft: Draft, node: PlannedNode, failed: StepRun) -> StepRun:
    step = draft.add_step(node, visit=failed.visit, like=failed)
    if failed.resume_signal is not None or failed.role is not StepRole.STEP:
        step.resume_signal, step.input, step.output = failed.resume_signal, failed.input, failed.output
    return step
