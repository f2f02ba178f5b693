"""Commands on a run: cancel, pause, resume, retry, and the deadline that ends it."""

from __future__ import annotations

from korak.core import budgets, containers, deadlines, ending, failing, rewinding, telling, undoing, waiting
from korak.core.draft import Draft
from korak.core.rows import StepRun, Wait
from korak.errors import Conflict
from korak.model import (
    ClosedReason,
    DeliveryKind,
    EventType,
    FailureCategory,
    InstanceStatus,
    JsonObject,
    StepRole,
    StepStatus,
    WaitKind,
)


def cancel(draft: Draft, reason: str | None, actor: JsonObject | None) -> None:
    """End the run: waits are cancelled, steps that had begun clean up, what has completed is undone (CN-1 to CN-3).

    Conflict once ended (CN-8), but for a failed run for which a cancel still has something to run.
    """
    instance = draft.instance
    if instance.is_ended and not undoing.may_cancel_failed(draft):
        raise Conflict("instance_not_cancellable", status=instance.status)
    draft.move_instance(InstanceStatus.CANCELLED)
    ending.close_live(draft)
    instance.ended_at, instance.closed_reason = draft.now, ClosedReason.CANCELLED
    instance.cancel_reason = reason
    draft.record(EventType.INSTANCE_CANCELLED, None, {"reason": reason, "actor": actor})
    undoing.owe(draft)


def pause(draft: Draft, actor: JsonObject | None) -> None:
    """Stop the run's clocks and starts; work in flight is recorded. Conflict once ended or paused."""
    instance = draft.instance
    if instance.is_ended or instance.paused_at is not None:
        raise Conflict("instance_not_pausable", status=instance.status if instance.is_ended else "paused")
    instance.paused_at = draft.now
    deadlines.stop(draft)
    for wait in _list_waits(draft):
        waiting.suspend(draft, wait)
    for step in _list_idle(draft):
        draft.hold(step)
    telling.cascade(draft, DeliveryKind.PAUSE)
    draft.record(EventType.INSTANCE_PAUSED, None, {"actor": actor})


def resume(draft: Draft, actor: JsonObject | None) -> None:
    """Let the run go on where it stood: clocks with what remained, parked steps ready, kept signals looked at."""
    instance = draft.instance
    if instance.paused_at is None or instance.is_ended:
        raise Conflict("instance_not_paused")
    instance.paused_at = None
    deadlines.go_on(draft)
    for wait in _list_waits(draft):
        waiting.unsuspend(draft, wait)
    for live in _list_idle(draft):
        step = draft.edit(live)
        step.parked_for = None
        if not _awaits_retry(draft, step.id) and containers.is_owed_a_look(draft, step):
            draft.make_ready(step)
    telling.cascade(draft, DeliveryKind.RESUME)
    draft.record(EventType.INSTANCE_RESUMED, None, {"actor": actor})


def _list_steps(draft: Draft) -> list[StepRun]:
    """The live steps; hooks go on whatever becomes of the run."""
    return [step for step in draft.steps.values() if step.role is StepRole.STEP]


def _list_idle(draft: Draft) -> list[StepRun]:
    """The steps that a pause holds and a resume lets go: all but what is running."""
    return [step for step in _list_steps(draft) if step.status is not StepStatus.RUNNING]


def _list_waits(draft: Draft) -> list[Wait]:
    return [wait for step in _list_steps(draft) for wait in draft.list_waits(step)]


def _awaits_retry(draft: Draft, step_id: int) -> bool:
    return any(wait.kind is WaitKind.RETRY and wait.step_run_id == step_id for wait in draft.waits.values())


def retry(draft: Draft, actor: JsonObject | None) -> None:
    """Reopen a failed run at the step that failed, or stood when its time was over (MR-1 to MR-5).

    Of one that was cancelled, or undone as it failed, what could not be undone is tried again. Conflict where there is
    no such thing, where no step of it failed (MR-4, MR-6), and where it has used up what it may use.
    """
    instance, failed = draft.instance, draft.snapshot.failed
    if undoing.is_final(draft):
        undoing.retry(draft, actor)
        return
    if instance.status is not InstanceStatus.FAILED:
        raise Conflict("instance_not_retryable", why=f"it is {instance.status}")
    if failed is None or failed.node_id not in draft.plan.nodes:
        raise Conflict("instance_not_retryable", why="it didn't fail on a step; start it again")
    if (why := budgets.find_used_up(instance, draft.plan, draft.policy.limits)) is not None:
        raise Conflict("instance_not_retryable", why=why)
    instance.paused_at = None
    rewinding.reopen(draft)
    containers.reopen(draft, draft.plan.nodes[failed.node_id], failed)
    draft.record(EventType.INSTANCE_RETRIED, failed, {"actor": actor})


def expire(draft: Draft) -> None:
    """The run is out of time: it fails at the step where it stands, and what lives in it is cancelled."""
    instance = draft.instance
    if instance.is_ended or instance.deadline_at is None or instance.deadline_at > draft.now:
        draft.dropped = "not_due"
        return
    stood = next((step for step in _list_steps(draft) if step.scope_id is None), None)
    told: JsonObject = {"seconds": deadlines.get_whole(instance)}
    failing.fail_instance(draft, "deadline_exceeded", told, category=FailureCategory.DEADLINE)
    instance.failed_node_id = None if stood is None else stood.node_id


def settle_status(draft: Draft) -> None:
    """An open run is running while a step runs or is queued other than for a retry, else it waits."""
    if draft.instance.is_ended:
        return
    retried = {wait.step_run_id for wait in draft.waits.values() if wait.kind is WaitKind.RETRY}
    is_running = any(
        step.status is StepStatus.RUNNING or (step.status is StepStatus.QUEUED and step.id not in retried)
        for step in _list_steps(draft)
    )
    draft.move_instance(InstanceStatus.RUNNING if is_running else InstanceStatus.WAITING)
