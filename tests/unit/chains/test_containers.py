"""parallel and for_each in a chain: what enters the state, and when it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from korak import chain
from korak.model import InstanceStatus
from tests.support import links
from tests.support.bodies import list_ready
from tests.support.chained import count_visits, get_state, go_on, run
from tests.support.plans import plan_of, registry
from tests.support.runs import Run

COMPLETED, FAILED = InstanceStatus.COMPLETED, InstanceStatus.FAILED


def test_branches_see_the_same_and_are_merged() -> None:
    """T-PAR-1"""
    begun = run(chain("x").parallel([links.fetch, links.count]).then(links.publish), {"order": "a"})
    assert get_state(begun) == {
        "order": "a",
        "fetched": "a",
        "rounds": 1,
        "published": ["fetched", "order", "rounds"],
    }
    assert count_visits(begun, "s1") == 1


def test_the_later_branch_is_on_top() -> None:
    begun = run(chain("x").parallel([links.count, links.fork, links.secretive, links.flaky]), {"times": 2})
    assert get_state(begun) == {"times": 2, "rounds": 1, "way": "right", "ok": 2, "attempt": 3}


@pytest.mark.parametrize("place", ["first", "middle", "only"])
def test_a_parallel_stands_anywhere(place: str) -> None:
    """T-PAR-2"""
    built = chain("x")
    if place == "middle":
        built.then(links.secretive)
    built.parallel([links.count])
    if place != "only":
        built.then(links.leap)
    assert run(built).instance.status is COMPLETED


def test_a_branch_that_fails_for_good_fails_the_run() -> None:
    """T-PAR-4"""
    assert run(chain("x").max_attempts(1).parallel([links.count, links.twice])).instance.status is FAILED


def test_results_are_kept_in_order() -> None:
    """T-FE-1"""
    state = get_state(run(chain("x").for_each("things", links.score, "scores"), {"things": ["a", "b"]}))
    scores: Any = state["scores"]
    assert (scores["total"], scores["succeeded"], scores["mode"]) == (2, 2, "all")
    assert [(row["item"], row["output"]) for row in scores["results"]] == [("a", {"score": 0}), ("b", {"score": 1})]
    assert set(state) == {"things", "scores"}


def test_a_quorum() -> None:
    """T-FE-3, T-FE-4"""
    built = chain("x").for_each("n", links.refuse_even, mode="quorum", quorum=2, name="vote")
    begun = run(built, {"n": [1, 2, 3]})
    assert get_state(begun)["vote_results"]["failed"] == 1
    assert run(built, {"n": [1, 2, 4]}).instance.status is FAILED


def test_a_reducer_reads_the_results_and_is_merged() -> None:
    """T-FE-6"""
    built = chain("x").for_each("n", links.score, reducer=links.pick).then(links.count).then(links.secretive, "last")
    state = get_state(run(built, {"n": [7, 8]}))
    assert (state["picked"], state["rounds"], state["ok"]) == (2, 1, 2)
    state = get_state(run(built, {"n": []}))
    assert (state["picked"], "rounds" in state, state["ok"]) == (0, False, 2)


@pytest.mark.parametrize("to", ["last", "nowhere"])
def test_what_a_branch_or_an_item_names_is_no_jump(to: Any) -> None:
    built = chain("x").parallel([links.leap], "p").for_each("n", links.leap, "each").then(links.count, "mid")
    begun = run(built.then(links.secretive, "last"), {"to": to, "n": [1]})
    state = get_state(begun)
    assert (begun.instance.status, state["leapt"], state["rounds"], state["ok"]) == (COMPLETED, True, 1, 2)
    assert state["each"]["results"][0]["output"] == {"leapt": True, "_next_step": to}
    assert "_next_step" not in state


def test_a_reducer_belongs_to_its_for_each() -> None:
    """One transition for both, and pruned together"""
    built = chain("x").for_each("n", links.score, "scores", reducer=links.gather).max_transitions(1)
    begun = run(built.prune_state_after(1), {"n": [1]})
    assert (begun.instance.status, begun.instance.transitions_count) == (COMPLETED, 1)
    assert sorted(get_state(begun)) == ["gathered", "n", "scores"]
    begun = run(built.then(links.count).max_transitions(2), {"n": [1]})
    assert sorted(get_state(begun)) == ["n", "rounds"]


def test_names_that_are_as_long_as_they_may_be() -> None:
    first, second = "x" * 70, "x" * 71
    built = chain("x").for_each("n", links.score, name=first).for_each("n", links.score, name=second)
    built = built.parallel([links.count, links.fork], "y" * 200).for_each(
        "n", links.score, reducer=links.gather, name="z" * 64
    )
    begun = run(built, {"n": [1]})
    assert begun.instance.status is COMPLETED
    assert len([key for key in get_state(begun) if key.endswith("_results") or key[-9:-8] == "_"]) == 3


def test_as_many_items_run_at_a_time_as_are_allowed() -> None:
    built = chain("x").for_each("n", links.score, name="each", concurrency=2)
    for made in built.step_types:
        if registry().get(made.key) is None:
            registry().add(made)
    begun = Run(plan_of(built.document()), given={"n": [1, 2, 3, 4, 5]})
    assert [step.node_id for step in list_ready(begun)] == ["each_item"] * 2
    go_on(begun)
    assert get_state(begun)["each_results"]["succeeded"] == 5


def test_no_items() -> None:
    """T-FE-7: a key that isn't there is an empty list"""
    assert get_state(run(chain("x").for_each("n", links.score)))["s0_results"]["results"] == []
    for built in (
        chain("x").for_each("n", links.score, mode="first_success"),
        chain("x").for_each("n", links.score, mode="quorum", quorum=1),
    ):
        assert run(built).instance.status is FAILED


def test_no_list() -> None:
    begun = run(chain("x").for_each("n", links.score), {"n": "abc"})
    assert (begun.instance.status, begun.family.failures[-1].code) == (FAILED, "invalid_input")


def test_a_second_round_has_its_own_items() -> None:
    """T-FE-8"""
    built = (
        chain("x")
        .then(links.count, "body")
        .for_each("n", links.score, "scores")
        .then(links.profile, nested={"seen": {"ref": "state.scores.total"}})
        .repeat_until("body", "rounds", 2)
    )
    begun = run(built, {"n": [1, 2, 3]})
    assert get_state(begun)["profile"] == {"seen": 3}
    assert count_visits(begun, "s1") == 2
    assert len(begun.list_steps("s1_item")) == 6


def test_more_items_than_allowed() -> None:
    """T-GUARD-3: they fail the for_each, once, and what the step before planned is kept"""
    built = chain("x").max_for_each_items(2).max_attempts(5).then(links.profile, "plan", nested={"n": [1, 2, 3]})
    begun = run(built.for_each("n", links.score, name="each"), {"n": [1, 2, 3]})
    assert (begun.instance.status, begun.family.failures[-1].code) == (FAILED, "budget_items")
    assert begun.instance.failed_node_id == "each"
    assert [step.attempt for step in begun.list_steps("each")] == [1]
    assert begun.list_steps("each_item") == []
    assert get_state(begun)["profile"] == {"n": [1, 2, 3]}


def test_a_container_is_one_transition() -> None:
    built = chain("x").parallel([links.count, links.secretive]).for_each("n", links.score).then(links.leap)
    given: dict[str, Any] = {"n": [1, 2]}
    assert run(built.max_transitions(3), given).instance.status is COMPLETED
    assert run(built.max_transitions(2), given).instance.status is FAILED
