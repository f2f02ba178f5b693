"""The lifecycle: the tables are those of the spec, every arrow is taken, every other one is refused (spec 2.10)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from itertools import product
from typing import Any

import pytest

from korak.core import transitions
from korak.core.facts import CancelAsked, DeadlinePassed, Fact, PauseAsked, ResumeAsked, RetryAsked
from korak.core.transitions import ForbiddenTransition, check
from korak.graphs.builder import graph
from korak.model import EscalationStatus, InstanceStatus, Json, JsonObject, StepStatus, WaitStatus
from korak.steps.results import Wait
from korak.steps.waits import WaitSpec
from tests.support import handlers
from tests.support.plans import line
from tests.support.runs import Arrow, Run

SPEC = {
    "instance": """
        none -> running
        none -> failed
        running -> waiting
        waiting -> running
        running -> failed
        waiting -> failed
        running -> cancelled
        waiting -> cancelled
        running -> completed
        failed -> running
        waiting -> completed
        failed -> cancelled
    """,
    "step": """
        none -> queued
        queued -> running
        running -> waiting
        waiting -> running
        running -> completed
        running -> failed
        queued -> cancelled
        waiting -> cancelled
        running -> cancelled
        none -> running
        none -> completed
        none -> failed
        none -> waiting
        queued -> failed
        running -> queued
        waiting -> completed
        waiting -> failed
    """,
    "wait": """
        none -> pending
        pending -> fired
        pending -> cancelled
        pending -> suspended
        suspended -> pending
        suspended -> cancelled
    """,
    "escalation": """
        none -> pending
        pending -> claimed
        claimed -> fired
        claimed -> pending
        claimed -> failed
        pending -> cancelled
        claimed -> cancelled
        pending -> suspended
        suspended -> pending
        suspended -> cancelled
    """,
}
"""Spec 2.10 as section 10 of the design changes it. What ends a paused run cancels what is suspended, too."""

TABLES: Mapping[str, tuple[Mapping[Any, str], type[StrEnum]]] = {
    "instance": (transitions.INSTANCE, InstanceStatus),
    "step": (transitions.STEP, StepStatus),
    "wait": (transitions.WAIT, WaitStatus),
    "escalation": (transitions.ESCALATION, EscalationStatus),
}

PAIRS = [
    (table, before, after)
    for table, (_, statuses) in TABLES.items()
    for before, after in product((None, *statuses), statuses)
]


def read(text: str) -> set[tuple[str | None, str]]:
    arrows = (line.split(" -> ") for line in text.split("\n") if line.strip())
    return {(None if before.strip() == "none" else before.strip(), after.strip()) for before, after in arrows}


@pytest.mark.parametrize("table", TABLES)
def test_the_tables_are_those_of_the_spec(table: str) -> None:
    assert {(before, after) for before, after in TABLES[table][0]} == read(SPEC[table])


@pytest.mark.parametrize(("table", "before", "after"), PAIRS)
def test_an_arrow_is_drawn_or_refused(table: str, before: Any, after: Any) -> None:
    arrows, _ = TABLES[table]
    if (before, after) in arrows:
        assert check(arrows, before, after) == arrows[before, after]
    else:
        with pytest.raises(ForbiddenTransition):
            check(arrows, before, after)


@pytest.mark.parametrize("table", TABLES)
def test_every_status_can_be_reached(table: str) -> None:
    arrows, statuses = TABLES[table]
    reached: set[Any] = {None}
    while more := {after for before, after in arrows if before in reached} - reached:
        reached |= more
    assert reached == {None, *statuses}


def test_what_has_ended_stays_as_it_is() -> None:
    """What has completed or was cancelled → anything: never; failed → only by a manual retry or a late clean-up."""
    leaving = {before for before, _ in transitions.INSTANCE} | {before for before, _ in transitions.STEP}
    assert InstanceStatus.COMPLETED not in leaving
    assert InstanceStatus.CANCELLED not in leaving
    assert {after for before, after in transitions.INSTANCE if before is InstanceStatus.FAILED} == {
        InstanceStatus.RUNNING,
        InstanceStatus.CANCELLED,
    }
    assert not {before for before, _ in transitions.STEP} & {
        StepStatus.COMPLETED,
        StepStatus.FAILED,
        StepStatus.CANCELLED,
    }
    assert {before for before, _ in transitions.WAIT} == {None, WaitStatus.PENDING, WaitStatus.SUSPENDED}


# every arrow, taken through decide


def plain(*, is_claimed: bool = False) -> Run:
    run = Run(line(("a", "test.ok", {}), ("b", "test.ok", {})))
    if is_claimed:
        run.claim()
    return run


def finished() -> Run:
    run = plain()
    run.work(inline=True)
    run.finish(handlers.run(run.get_grant()))
    return run


def asking(*facts: Fact, **more: Json) -> Run:
    run = Run(line(("a", "test.ask", {"signal": "go", **more})), execution_timeout=100)
    run.work()
    for fact in facts:
        run.tell(fact)
    return run


def signalled() -> Run:
    run = asking()
    run.signal("go")
    run.claim()
    return run


def signalled_at_a_wait() -> Run:
    run = Run(line(("w", "wait", {"signal": "go"})))
    run.claim()
    run.signal("go")
    return run


def failed(*facts: Fact) -> Run:
    run = Run(line(("a", "test.flaky", {"for_good": True})))
    run.work()
    for fact in facts:
        run.tell(fact)
    return run


def cleaned_up() -> Run:
    """A failed run that is cancelled for what it cleans up then."""
    built = line(("a", "test.flaky", {"for_good": True})).settings(on_cancel={"type": "test.ok"})
    run = Run(built)
    run.work()
    run.tell(CancelAsked())
    return run


def refused_input() -> Run:
    run = Run(line(("a", "test.price", {"order": {"ref": "input.order"}})), given={"order": 5})
    run.claim()
    return run


def refused_condition() -> Run:
    built = graph("c").trigger("manual").node("done", "end").node("c", "condition", {"if": MISSING})
    return Run(built.edge("start", "c").edge("c", "done", "true").edge("c", "done", "false"))


def refused_wait() -> Run:
    """A condition that parks, and reads what isn't there when it is looked at."""
    run = plain(is_claimed=True)
    run.finish(Wait(WaitSpec.condition(MISSING, 60)))
    run.pass_time(61)
    run.claim()
    return run


def overdue() -> Run:
    run = asking()
    run.pass_time(101)
    run.tell(DeadlinePassed())
    return run


def handed_back() -> Run:
    run = plain(is_claimed=True)
    run.hand_back()
    return run


def told(run: Run, fact: Fact) -> Run:
    run.tell(fact)
    return run


MISSING: JsonObject = {"ref": "input.x", "op": "eq", "value": 1}

Instance, Step, Waiting = InstanceStatus, StepStatus, WaitStatus

TAKEN: dict[Arrow, Callable[[], Run]] = {
    ("instance", None, Instance.RUNNING): plain,
    ("instance", Instance.RUNNING, Instance.WAITING): asking,
    ("instance", Instance.WAITING, Instance.RUNNING): signalled,
    ("instance", Instance.RUNNING, Instance.COMPLETED): finished,
    ("instance", Instance.WAITING, Instance.COMPLETED): signalled_at_a_wait,
    ("instance", Instance.RUNNING, Instance.FAILED): failed,
    ("instance", Instance.WAITING, Instance.FAILED): overdue,
    ("instance", Instance.RUNNING, Instance.CANCELLED): lambda: told(plain(), CancelAsked()),
    ("instance", Instance.WAITING, Instance.CANCELLED): lambda: asking(CancelAsked()),
    ("instance", Instance.FAILED, Instance.RUNNING): lambda: failed(RetryAsked()),
    ("instance", Instance.FAILED, Instance.CANCELLED): cleaned_up,
    ("step", None, Step.QUEUED): plain,
    ("step", None, Step.RUNNING): finished,
    ("step", None, Step.WAITING): signalled_at_a_wait,
    ("step", None, Step.COMPLETED): finished,
    ("step", None, Step.FAILED): refused_condition,
    ("step", Step.QUEUED, Step.RUNNING): finished,
    ("step", Step.QUEUED, Step.FAILED): refused_input,
    ("step", Step.QUEUED, Step.CANCELLED): lambda: told(plain(), CancelAsked()),
    ("step", Step.RUNNING, Step.QUEUED): handed_back,
    ("step", Step.RUNNING, Step.WAITING): asking,
    ("step", Step.RUNNING, Step.COMPLETED): finished,
    ("step", Step.RUNNING, Step.FAILED): failed,
    ("step", Step.RUNNING, Step.CANCELLED): lambda: told(plain(is_claimed=True), CancelAsked()),
    ("step", Step.WAITING, Step.RUNNING): signalled,
    ("step", Step.WAITING, Step.COMPLETED): signalled_at_a_wait,
    ("step", Step.WAITING, Step.FAILED): refused_wait,
    ("step", Step.WAITING, Step.CANCELLED): lambda: asking(CancelAsked()),
    ("wait", None, Waiting.PENDING): asking,
    ("wait", Waiting.PENDING, Waiting.FIRED): signalled,
    ("wait", Waiting.PENDING, Waiting.CANCELLED): lambda: asking(CancelAsked()),
    ("wait", Waiting.PENDING, Waiting.SUSPENDED): lambda: asking(PauseAsked()),
    ("wait", Waiting.SUSPENDED, Waiting.PENDING): lambda: asking(PauseAsked(), ResumeAsked()),
    ("wait", Waiting.SUSPENDED, Waiting.CANCELLED): lambda: asking(PauseAsked(), CancelAsked()),
}

LATER = {("instance", None, Instance.FAILED)}
"""A start that a limit refuses writes its row without the core."""


@pytest.mark.parametrize("arrow", TAKEN, ids=lambda arrow: f"{arrow[0]}: {arrow[1]} to {arrow[2]}")
def test_an_arrow_is_taken(arrow: Arrow) -> None:
    assert arrow in TAKEN[arrow]().arrows


def test_no_arrow_is_left_out() -> None:
    drawn = {(table, *arrow) for table in ("instance", "step", "wait") for arrow in TABLES[table][0]}
    assert drawn - set(TAKEN) == LATER
