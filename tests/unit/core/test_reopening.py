"""Runs that go on again below others: which end of theirs counts, who holds them, and what they undo."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from korak.core.facts import PauseAsked, ResumeAsked, RetryAsked
from korak.model import CompensationStatus, DeliveryKind, InstanceStatus, JsonObject
from tests.support import stamps
from tests.support.bodies import node
from tests.support.kin import Kin
from tests.unit.core.test_nesting import document, nested

COMPLETED, FAILED = InstanceStatus.COMPLETED, InstanceStatus.FAILED
ONCE: JsonObject = {"max_attempts": 1}
FAILING = document("child", node("bad", "test.flaky", times=1, retry=ONCE))


def start(**members: Any) -> tuple[Kin, str, str]:
    """A parent that waits for its child, which fails once."""
    kin = Kin(document("parent", nested(**members)), FAILING)
    parent = kin.start("parent")
    kin.work(parent)
    [child] = kin.children(parent)
    return kin, parent, child


def test_of_a_child_that_went_on_while_its_parent_was_paused_the_last_end_counts() -> None:
    kin, parent, child = start()
    kin.tell(parent, PauseAsked())
    kin.work(child)
    assert kin.instance(child).status is FAILED
    kin.tell(child, RetryAsked())
    kin.work(child)
    assert kin.instance(child).status is COMPLETED
    kin.tell(parent, ResumeAsked())
    kin.drain()
    assert kin.instance(parent).status is COMPLETED
    assert all(row.taken_at is not None for row in kin.get(parent).signals.values())


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_run_that_completed_before_its_waiter_could_hear_that_it_had_failed_has_completed(mode: str) -> None:
    kin = Kin(document("waiter", node("wait", "wait_workflows", ids={"ref": "input.ids"}, mode=mode)), FAILING)
    run = kin.start("child")
    waiter = kin.start("waiter", {"ids": [run]})
    kin.work(waiter)
    kin.tell(waiter, PauseAsked())
    kin.work(run)
    assert kin.look()
    kin.now += timedelta(seconds=5)
    kin.tell(run, RetryAsked())
    kin.work(run)
    kin.drain()
    assert not kin.instance(waiter).is_ended
    kin.tell(waiter, ResumeAsked())
    kin.drain()
    assert kin.instance(waiter).status is COMPLETED
    assert all(row.taken_at is not None for row in kin.get(waiter).signals.values())


def test_a_pause_overtakes_no_child_that_was_bidden_to_go_on() -> None:
    """It has ended as the pause comes to it, and is about not to have."""
    kin, parent, child = start(retry={"max_attempts": 2, "backoff": [60]})
    kin.work(child)
    kin.deliver(parent)
    kin.now += timedelta(seconds=100)
    stamps.stamp_due(kin.get(parent), kin.now)
    kin.work(parent)
    assert [row.kind for row in kin.get(child).signals.values() if row.taken_at is None] == [DeliveryKind.RETRY]
    kin.tell(parent, PauseAsked())
    assert kin.cascade()
    kin.deliver(child)
    assert kin.instance(child).paused_at is not None
    assert not kin.work(child)
    kin.tell(parent, ResumeAsked())
    kin.drain()
    assert kin.instance(parent).status is COMPLETED


def test_a_child_that_fails_as_it_is_started_undoes_what_it_has_done() -> None:
    undone: JsonObject = {**node("mark", "set_field", field="state.a", value=1), "compensate": {"type": "test.ok"}}
    bad = node("bad", "delay", until={"ref": "state.a"})
    child = document("child", undone, bad, compensate_on_failure=True)
    kin = Kin(document("parent", nested()), child)
    parent = kin.start("parent")
    kin.drain()
    assert [kin.instance(each).status for each in (parent, *kin.children(parent))] == [FAILED, FAILED]
    [row] = kin.get(kin.children(parent)[0]).compensations.values()
    assert row.status is CompensationStatus.COMPLETED
