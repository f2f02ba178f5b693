"""Waits for other runs: what is told of them is counted until enough have completed, or can't any more."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.facts import CancelAsked, PauseAsked, ResumeAsked, RetryAsked
from korak.core.tallying import Tally
from korak.model import InstanceStatus, Json, JsonObject
from korak.steps.results import Complete
from tests.support.bodies import node
from tests.support.kin import Kin
from tests.unit.core.test_nesting import CHILD, FLAKY, document, many


def waiting(**members: Any) -> JsonObject:
    """A graph that waits for the runs in its input."""
    given: JsonObject = {"ids": {"ref": "input.ids"}, "save": {"key": "r"}}
    return document("waiter", node("wait", "wait_workflows", **{**given, **members}))


def start(kin: Kin, count: int, **members: Any) -> tuple[str, list[str]]:
    """A waiter that has registered, and the runs that it waits for."""
    runs = [kin.start("child", {"number": number, **members}) for number in range(count)]
    waiter = kin.start("waiter", {"ids": list[Json](runs)})
    kin.work(waiter)
    return waiter, runs


def end(kin: Kin, ulid: str) -> None:
    """The run completes, and whoever waits is told."""
    kin.work(ulid)
    tell(kin)


def tell(kin: Kin) -> None:
    kin.look()
    for family in list(kin.memory.families.values()):
        if family.instance.ulid:
            kin.deliver(family.instance.ulid)
    for family in list(kin.memory.families.values()):
        if kin.memory.plans[family.instance.version_id].key == "waiter":
            while kin.work(family.instance.ulid):
                pass


def get_result(kin: Kin, ulid: str) -> Any:
    return kin.instance(ulid).state["r"]


def test_t_dep_1_waits_until_the_other_completes() -> None:
    kin = Kin(waiting(), CHILD)
    waiter, [run] = start(kin, 1)
    tell(kin)
    assert kin.instance(waiter).status is InstanceStatus.WAITING
    end(kin, run)
    assert kin.instance(waiter).status is InstanceStatus.COMPLETED
    assert get_result(kin, waiter) == kin.instance(run).state
    assert kin.memory.dependencies == []


def test_t_dep_2_any_of_two() -> None:
    kin = Kin(waiting(mode="any"), CHILD)
    waiter, runs = start(kin, 2)
    end(kin, runs[1])
    assert kin.instance(waiter).status is InstanceStatus.COMPLETED
    assert list(get_result(kin, waiter)) == [runs[1]]


def test_t_dep_3_a_quorum_of_two_out_of_three() -> None:
    kin = Kin(waiting(mode="quorum", quorum=2), CHILD)
    waiter, runs = start(kin, 3)
    end(kin, runs[2])
    assert kin.instance(waiter).status is InstanceStatus.WAITING
    kin.tell(runs[1], CancelAsked())
    end(kin, runs[0])
    assert kin.instance(waiter).status is InstanceStatus.COMPLETED
    assert list(get_result(kin, waiter)) == [runs[0], runs[2]], "in the order of the list"


def test_t_dep_4_a_failed_run_fails_the_waiter_by_name() -> None:
    kin = Kin(waiting(), FLAKY)
    waiter, runs = start(kin, 2, is_bad=True)
    end(kin, runs[1])
    row = kin.instance(waiter)
    told = {"pointer": "/ids", "detail": f"the run {runs[1]} has failed"}
    assert (row.failure_code, row.failure_params) == ("wait_impossible", told)


def test_t_dep_5_a_quorum_that_is_out_of_reach_fails_at_once() -> None:
    kin = Kin(waiting(mode="quorum", quorum=2), CHILD)
    waiter, runs = start(kin, 3)
    kin.tell(runs[0], CancelAsked())
    tell(kin)
    assert kin.instance(waiter).status is InstanceStatus.WAITING
    kin.tell(runs[1], CancelAsked())
    tell(kin)
    assert kin.instance(waiter).failure_code == "wait_impossible"
    assert not kin.instance(runs[2]).is_ended


def test_a_retry_of_the_waiter_looks_at_all_of_them_anew() -> None:
    kin = Kin(waiting(), FLAKY)
    waiter, [run] = start(kin, 1, is_bad=True)
    end(kin, run)
    kin.tell(run, RetryAsked())
    [step] = [step for step in kin.get(run).live if step.ready_at]
    kin.finish(run, kin.claim(run, step).claimed[0].step, Complete())
    kin.tell(waiter, RetryAsked())
    kin.drain()
    assert kin.instance(waiter).status is InstanceStatus.COMPLETED


@pytest.mark.parametrize(
    ("members", "status"), [({}, "completed"), ({"mode": "any"}, "failed"), ({"mode": "quorum", "quorum": 1}, "failed")]
)
def test_no_runs_at_all_satisfy_only_all(members: JsonObject, status: str) -> None:
    kin = Kin(waiting(**members), CHILD)
    waiter, _ = start(kin, 0)
    assert kin.instance(waiter).status == status


def test_without_a_key_results_are_put_together_in_the_order_of_the_list() -> None:
    kin = Kin(waiting(merge=True), CHILD)
    waiter, runs = start(kin, 3)
    for run in reversed(runs):
        end(kin, run)
    assert get_result(kin, waiter)["number"] == 2


def test_what_is_told_while_the_waiter_is_paused_counts_when_it_goes_on() -> None:
    kin = Kin(waiting(), CHILD)
    waiter, [run] = start(kin, 1)
    kin.tell(waiter, PauseAsked())
    kin.drain()
    assert kin.instance(run).is_ended
    assert not kin.instance(waiter).is_ended
    kin.tell(waiter, ResumeAsked())
    kin.drain()
    assert kin.instance(waiter).status is InstanceStatus.COMPLETED


def test_t_dep_7_started_and_waited_for() -> None:
    wait = node("wait", "wait_workflows", ids={"ref": "state.ids"}, save={"key": "r"})
    kin = Kin(document("parent", many(), wait), CHILD)
    parent = kin.start("parent", {"items": [1, 2, 3]})
    kin.drain()
    assert kin.instance(parent).status is InstanceStatus.COMPLETED
    assert list(get_result(kin, parent)) == kin.children(parent)


def test_a_tally_hears_the_end_after_a_retry() -> None:
    tally = Tally(2, "quorum", 1).hear({"instance": "A", "status": "failed"})
    assert (tally.completed, dict(tally.failed), tally.is_settled) == (0, {"A": "failed"}, False)
    assert tally.hear({"instance": "A", "status": "failed"}) == tally
    tally = tally.hear({"instance": "A", "status": "completed"})
    assert (tally.completed, dict(tally.failed), tally.is_satisfied) == (1, {}, True)
    assert Tally.from_json(tally.to_json()) == tally


def test_a_round_is_told_with_its_way() -> None:
    tally = Tally(1).hear({"cycle": ["A", "B", "A"]})
    assert tally.impossible == "the runs wait for one another: A -> B -> A"
