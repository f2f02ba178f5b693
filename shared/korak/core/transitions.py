"""The lifecycle as data: every arrow that exists, with its name. What isn't here is forbidden."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from korak.errors import KorakError
from korak.model import EscalationStatus, InstanceStatus, StepStatus, WaitStatus

Status = TypeVar("Status", InstanceStatus, StepStatus, WaitStatus, EscalationStatus)

I, S, W, E = InstanceStatus, StepStatus, WaitStatus, EscalationStatus

INSTANCE: Mapping[tuple[InstanceStatus | None, InstanceStatus], str] = {
    (None, I.RUNNING): "start",
    (None, I.FAILED): "refuse",
    (I.RUNNING, I.WAITING): "wait",
    (I.WAITING, I.RUNNING): "wake",
    (I.RUNNING, I.COMPLETED): "complete",
    (I.WAITING, I.COMPLETED): "complete",
    (I.RUNNING, I.FAILED): "fail",
    (I.WAITING, I.FAILED): "fail",
    (I.RUNNING, I.CANCELLED): "cancel",
    (I.WAITING, I.CANCELLED): "cancel",
    (I.FAILED, I.RUNNING): "retry",
    (I.FAILED, I.CANCELLED): "cancel",
}

STEP: Mapping[tuple[StepStatus | None, StepStatus], str] = {
    (None, S.QUEUED): "enqueue",
    (None, S.RUNNING): "claim",
    (None, S.WAITING): "park",
    (None, S.COMPLETED): "complete",
    (None, S.FAILED): "fail",
    (S.QUEUED, S.RUNNING): "claim",
    (S.QUEUED, S.FAILED): "fail",
    (S.QUEUED, S.CANCELLED): "cancel",
    (S.RUNNING, S.QUEUED): "release",
    (S.RUNNING, S.WAITING): "park",
    (S.RUNNING, S.COMPLETED): "complete",
    (S.RUNNING, S.FAILED): "fail",
    (S.RUNNING, S.CANCELLED): "cancel",
    (S.WAITING, S.RUNNING): "resume",
    (S.WAITING, S.COMPLETED): "complete",
    (S.WAITING, S.FAILED): "fail",
    (S.WAITING, S.CANCELLED): "cancel",
}

WAIT: Mapping[tuple[WaitStatus | None, WaitStatus], str] = {
    (None, W.PENDING): "open",
    (None, W.SUSPENDED): "suspend",
    (W.PENDING, W.FIRED): "fire",
    (W.PENDING, W.CANCELLED): "cancel",
    (W.PENDING, W.SUSPENDED): "suspend",
    (W.SUSPENDED, W.PENDING): "unsuspend",
    (W.SUSPENDED, W.CANCELLED): "cancel",
}

ESCALATION: Mapping[tuple[EscalationStatus | None, EscalationStatus], str] = {
    (None, E.PENDING): "open",
    (E.PENDING, E.CLAIMED): "claim",
    (E.CLAIMED, E.FIRED): "fire",
    (E.CLAIMED, E.PENDING): "release",
    (E.CLAIMED, E.FAILED): "fail",
    (E.PENDING, E.CANCELLED): "cancel",
    (E.CLAIMED, E.CANCELLED): "cancel",
    (E.PENDING, E.SUSPENDED): "suspend",
    (E.SUSPENDED, E.PENDING): "unsuspend",
    (E.SUSPENDED, E.CANCELLED): "cancel",
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
