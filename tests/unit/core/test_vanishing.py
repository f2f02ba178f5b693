"""What begins in a decision and is over before that decision is: nobody runs it, nobody is waited for."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.facts import Lost
from korak.model import EventType, InstanceStatus, JsonObject, StepRole, StepStatus
from tests.support.bodies import body, document, node, parallel
from tests.support.runs import Run

LIMIT: JsonObject = {"key": "k", "concurrency": 1}


def begin_beside_an_end(step: JsonObject, **settings: Any) -> Run:
    """A step of one branch begins where a wait is over; the other branch ends the run."""
    ending = body(node("stop", "end", terminate=True))
    pause = node("pause", "wait", **{"for": 10})
    run = Run(document(pause, parallel(a=body(step), b=ending), **settings))
    run.pass_time(20)
    run.claim()
    return run


def test_a_step_that_another_branch_ends_at_once_is_granted_to_nobody() -> None:
    """DESIGN section 12.5: nobody holds a token of it, so nobody is waited for until a lease is over."""
    run = begin_beside_an_end(node("x", "test.ask", signal="go"))
    [step] = run.list_steps("x")
    assert (run.instance.status, step.status) == (InstanceStatus.COMPLETED, StepStatus.CANCELLED)
    assert run.last.claimed == []
    assert step.claim_token is None
    assert [event.type for event in run.family.events if event.step_run_id == step.id] == [
        EventType.STEP_STARTED,
        EventType.STEP_CANCELLED,
    ]
    assert [hook.role for hook in run.hooks] == [StepRole.CANCEL]
    assert run.tell(Lost(step.id, "T2"), (step.id,)).dropped == "stale_token"


@pytest.mark.parametrize("is_of_run", [False, True])
def test_it_asks_for_no_room_which_nobody_would_give_back(is_of_run: bool) -> None:
    limits: JsonObject = {"flow": [LIMIT]}
    run = begin_beside_an_end(node("x"), flow=[LIMIT]) if is_of_run else begin_beside_an_end({**node("x"), **limits})
    assert run.last.demands == []
    assert run.last.freed == []
