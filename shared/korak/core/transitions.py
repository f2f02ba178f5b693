"""The lifecycle as data: every arrow that exists, with its name. What isn't here is forbidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, TypeVar

from korak.errors import KorakError
from korak.model import CompensationStatus, EscalationStatus, InstanceStatus, ScopeStatus, StepStatus, WaitStatus

Status = TypeVar("Status", InstanceStatus, StepStatus, WaitStatus, ScopeStatus, EscalationStatus, CompensationStatus)

Run: TypeAlias = InstanceStatus
Step: TypeAlias = StepStatus
Wait: TypeAlias = WaitStatus
Level: TypeAlias = EscalationStatus
Undoing: TypeAlias = CompensationStatus

INSTANCE: Mapping[tuple[InstanceStatus | None, InstanceStatus], str] = {
    (None, Run.RUNNING): "start",
    (None, Run.FAILED): "refuse",
    (Run.RUNNING, Run.WAITING): "wait",
    (Run.WAITING, Run.RUNNING): "wake",
    (Run.RUNNING, Run.COMPLETED): "complete",
    (Run.WAITING, Run.COMPLETED): "complete",
    (Run.RUNNING, Run.FAILED): "fail",
    (Run.WAITING, Run.FAILED): "fail",
    (Run.RUNNING, Run.CANCELLED): "cancel",
    (Run.WAITING, Run.CANCELLED): "cancel",
    (Run.FAILED, Run.RUNNING): "retry",
    (Run.FAILED, Run.CANCELLED): "cancel",
}

STEP: Mapping[tuple[StepStatus | None, StepStatus], str] = {
    (None, Step.QUEUED): "enqueue",
    (None, Step.RUNNING): "claim",
    (None, Step.WAITING): "park",
    (None, Step.COMPLETED): "complete",
    (None, Step.FAILED): "fail",
    (Step.QUEUED, Step.RUNNING): "claim",
    (Step.QUEUED, Step.FAILED): "fail",
    (Step.QUEUED, Step.CANCELLED): "cancel",
    (Step.RUNNING, Step.QUEUED): "release",
    (Step.RUNNING, Step.WAITING): "park",
    (Step.RUNNING, Step.COMPLETED): "complete",
    (Step.RUNNING, Step.FAILED): "fail",
    (Step.RUNNING, Step.CANCELLED): "cancel",
    (Step.WAITING, Step.RUNNING): "resume",
    (Step.WAITING, Step.COMPLETED): "complete",
    (Step.WAITING, Step.FAILED): "fail",
    (Step.WAITING, Step.CANCELLED): "cancel",
}

WAIT: Mapping[tuple[WaitStatus | None, WaitStatus], str] = {
    (None, Wait.PENDING): "open",
    (Wait.PENDING, Wait.FIRED): "fire",
    (Wait.PENDING, Wait.CANCELLED): "cancel",
    (Wait.PENDING, Wait.SUSPENDED): "suspend",
    (Wait.SUSPENDED, Wait.PENDING): "unsuspend",
    (Wait.SUSPENDED, Wait.CANCELLED): "cancel",
}

SCOPE: Mapping[tuple[ScopeStatus | None, ScopeStatus], str] = {
    (ScopeStatus.PENDING, ScopeStatus.RUNNING): "start",
    (ScopeStatus.PENDING, ScopeStatus.CANCELLED): "cancel",
    (ScopeStatus.RUNNING, ScopeStatus.COMPLETED): "complete",
    (ScopeStatus.RUNNING, ScopeStatus.FAILED): "fail",
    (ScopeStatus.RUNNING, ScopeStatus.CANCELLED): "cancel",
    (ScopeStatus.FAILED, ScopeStatus.PENDING): "retry",
    (ScopeStatus.CANCELLED, ScopeStatus.PENDING): "retry",
}

ESCALATION: Mapping[tuple[EscalationStatus | None, EscalationStatus], str] = {
    (None, Level.PENDING): "open",
    (Level.PENDING, Level.CLAIMED): "claim",
    (Level.CLAIMED, Level.FIRED): "fire",
    (Level.CLAIMED, Level.PENDING): "release",
    (Level.CLAIMED, Level.FAILED): "fail",
    (Level.PENDING, Level.CANCELLED): "cancel",
    (Level.CLAIMED, Level.CANCELLED): "cancel",
    (Level.PENDING, Level.SUSPENDED): "suspend",
    (Level.SUSPENDED, Level.PENDING): "unsuspend",
    (Level.SUSPENDED, Level.CANCELLED): "cancel",
}


COMPENSATION: Mapping[tuple[CompensationStatus | None, CompensationStatus], str] = {
    (None, Undoing.KEPT): "keep",
    (Undoing.KEPT, Undoing.UNDOING): "undo",
    (Undoing.UNDOING, Undoing.COMPLETED): "complete",
    (Undoing.UNDOING, Undoing.FAILED): "fail",
    (Undoing.FAILED, Undoing.KEPT): "retry",
}


class ForbiddenTransition(KorakError):
    """A decision asked for an arrow that isn't drawn: a defect of the core, never of its input."""

    code = "forbidden_transition"


def check(table: Mapping[tuple[Status | None, Status], str], before: Status | None, after: Status) -> str:
    """The name of the arrow from `before` to `after`, or ForbiddenTransition."""
    name = table.get((before, after))
    if name is None:
        raise ForbiddenTransition(None, f"{type(after).__name__}: {before} -> {after} is forbidden")
    return name
