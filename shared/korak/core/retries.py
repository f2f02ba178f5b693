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
from korak.model import FailureCategory, StepRole, StepStatus, WaitKind

LEASE_EXPIRED = Raised("lease_expired", category=FailureCategory.ENGINE)
"""What an attempt comes to whose engine was lost."""


def may_retry(node: PlannedNode, step: StepRun, error: Raised, policy: Policy) -> bool:
    """Whether an attempt that failed with this is followed by another one.

    A crash of ours isn't the step's failure: the last attempt that a lost lease took is given once more.
    """
    if not error.is_retryable or (error.category is FailureCategory.CHILD and not node.has_own_retry):
        return False
    attempts = get_max_attempts(get_policy(node, policy), policy)
    return step.attempt < attempts or (error is LEASE_EXPIRED and step.attempt == attempts)


BEGUN_ANEW = frozenset({"wait_impossible", "child_cancelled"})
"""What a step isn't resumed after but begun again: others are looked at anew, another child is started."""


def get_policy(node: PlannedNode, policy: Policy) -> RetryPolicy:
    """The policy in force: the node's, settings' or type's, as the plan has chosen; else the engine's (RT-1).

    One that names no back-off takes the engine's.
    """
    given = node.retry or policy.retry
    return given if given.backoff else replace(given, backoff=policy.retry.backoff)


def get_max_attempts(retry: RetryPolicy, policy: Policy) -> int:
    """How many attempts there are in all, the first included (RT-2b), clamped at the cap (RT-3)."""
    return max(1, min(retry.max_attempts, policy.attempts_cap))


def get_due(
    retry: RetryPolicy, key: str, attempt: int, failed_at: datetime, *, timezone: str, after: datetime | None = None
) -> datetime:
    """When the attempt after number `attempt` of the visit `key` is due (RT-4, RT-12, RT-13).

    After the back-off and its jitter, or at `after` if that is later.
    """
    due = failed_at
    if retry.backoff:
        raw = retry.backoff[min(attempt, len(retry.backoff)) - 1]
        delay = compile_duration(raw).after(failed_at, timezone) - failed_at
        due = failed_at + max(timedelta(), delay * (1 + retry.jitter * get_spread(key, attempt)))
    return due if after is None or after <= due else after


def get_spread(key: str, attempt: int) -> float:
    """A number from -1 to 1 that is spread evenly over visits and always the same for one attempt."""
    digest = hashlib.blake2b(f"{key}:{attempt}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / (1 << 63) - 1


def schedule(draft: Draft, node: PlannedNode, failed: StepRun, error: Raised) -> None:
    """The next attempt of the visit, under the same key, due after the back-off. A failed resume stays one (RT-6)."""
    due = get_due(
        get_policy(node, draft.policy),
        failed.idempotency_key,
        failed.attempt,
        draft.now,
        timezone=draft.plan.settings.timezone,
        after=error.after,
    )
    step = draft.move(_repeat(draft, node, failed), StepStatus.QUEUED)
    step.scheduled_for, step.backoff_seconds = due, (due - draft.now).total_seconds()
    wait = draft.add_wait(step, WaitKind.RETRY, due_at=due)
    if draft.instance.paused_at is not None and step.role is StepRole.STEP:
        waiting.suspend(draft, wait)
        draft.hold(step)


def reopen(draft: Draft, node: PlannedNode, failed: StepRun) -> None:
    """The attempt of a manual retry: same visit and key, ready at once (MR-1, MR-2)."""
    starting.enqueue_first(draft, node, _repeat(draft, node, failed))


def hasten(draft: Draft, ulid: str) -> None:
    """The attempt after an abandoned one waited for its thread to end; now its back-off alone counts."""
    for wait in list(draft.waits.values()):
        step = draft.get_step(wait.step_run_id)
        if wait.kind is WaitKind.RETRY and wait.due_at is not None and step is not None and step.retry_of == ulid:
            due = get_due(
                get_policy(_find_node(draft, step), draft.policy),
                step.idempotency_key,
                step.attempt - 1,
                wait.created_at,
                timezone=draft.plan.settings.timezone,
            )
            if due < wait.due_at:
                draft.edit_wait(wait).due_at = draft.edit(step).scheduled_for = due


def _find_node(draft: Draft, step: StepRun) -> PlannedNode:
    node = draft.plan.find(step.node_id, step.role)
    assert node is not None, "a step that is tried again has a node"
    return node


def _repeat(draft: Draft, node: PlannedNode, failed: StepRun) -> StepRun:
    step = draft.add_step(node, visit=failed.visit, like=failed)
    if failed.error_code in BEGUN_ANEW:
        return step
    if failed.resume_signal is not None or failed.role is not StepRole.STEP:
        step.resume_signal, step.input, step.output = failed.resume_signal, failed.input, failed.output
    return step
