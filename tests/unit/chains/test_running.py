"""What a chain does when it runs: state, jumps, rounds, signals, limits."""

from __future__ import annotations

from typing import Any

import pytest

from korak import chain
from korak.core.facts import DeadlinePassed, Delivered, RetryAsked
from korak.model import InstanceStatus, Json, JsonObject
from tests.support import links
from tests.support.chained import count_visits, get_state, go_on, run
from tests.support.runs import get_time

COMPLETED, FAILED, WAITING = InstanceStatus.COMPLETED, InstanceStatus.FAILED, InstanceStatus.WAITING


def get_failure(begun: Any) -> str:
    """The code that a run failed with."""
    return str(begun.family.failures[-1].code)


def test_the_state_is_the_union_of_all() -> None:
    """T-MODEL-1, T-STATE-1"""
    begun = run(chain("x").then(links.fetch).then(links.price).then(links.publish), {"order": "A-1"})
    assert begun.instance.status is COMPLETED
    expected = {"order": "A-1", "fetched": "A-1", "price": "3 EUR", "published": ["fetched", "order", "price"]}
    assert get_state(begun) == expected
    assert begun.instance.result == expected


def test_a_default_gives_way_to_the_state() -> None:
    assert get_state(run(chain("x").then(links.price), {"fetched": "a", "currency": "USD"}))["price"] == "1 USD"


def test_reserved_keys_stay_out_of_the_state() -> None:
    """T-STATE-2, T-STATE-4, T-LOG-4"""
    assert get_state(run(chain("x").then(links.secretive))) == {"ok": 2}


def test_a_reserved_key_in_the_payload_lets_nothing_run() -> None:
    """T-STATE-5, as far as the engine is concerned"""
    begun = run(chain("x").then(links.count), {"_x": 1, "y": 1})
    assert begun.instance.status is FAILED
    assert begun.list_steps("s0") == []
    assert get_state(begun) == {}


def test_the_later_value_replaces_the_earlier_one() -> None:
    """T-STATE-3"""
    built = chain("x").then(links.profile, nested={"a": 1, "b": 1}).then(links.profile, nested={"c": 2})
    assert get_state(run(built)) == {"profile": {"c": 2}}


def test_what_the_engine_keeps_of_a_run_is_no_part_of_its_state() -> None:
    """Defect 21: not what it counts, nor the rounds of its repeats, nor who wrote what"""
    built = chain("x").prune_state_after(5).max_cost_units(9).then(links.count, "body").then(links.flaky, times=1)
    begun = run(built.repeat_until("body", "rounds", 2).then(links.publish))
    assert begun.instance.walk
    assert get_state(begun) == {"rounds": 2, "attempt": 2, "published": ["attempt", "rounds"]}


def test_two_runs_know_nothing_of_each_other() -> None:
    """T-STATE-6"""
    built = chain("x").then(links.fetch)
    first, second = run(built, {"order": "a", "mine": 1}), run(built, {"order": "b"})
    assert (get_state(first)["fetched"], get_state(second)) == ("a", {"order": "b", "fetched": "b"})


def test_a_jump_skips_what_lies_between() -> None:
    """T-COND-1"""
    built = (
        chain("x").then(links.leap, to="last").jumps("last").then(links.count, "middle").then(links.secretive, "last")
    )
    begun = run(built)
    assert get_state(begun) == {"leapt": True, "ok": 2}
    assert begun.list_steps("middle") == []


def test_an_unknown_target_fails_the_run() -> None:
    """T-COND-2"""
    built = chain("x").max_attempts(1).then(links.leap, to="nowhere").jumps("1").then(links.count)
    begun = run(built)
    assert (begun.instance.status, get_state(begun)) == (FAILED, {})
    assert begun.family.failures[-1].params == {"pointer": "/_next_step", "target": "nowhere", "allowed": "1"}


def test_an_unknown_target_is_tried_again() -> None:
    """T-COND-2, spec 4: it counts as a failed attempt, and the next one may name another step."""
    built = chain("x").max_attempts(3).then(links.wander, "a").jumps("c").then(links.count, "b").then(links.count, "c")
    begun = run(built)
    assert [(step.attempt, str(step.status)) for step in begun.list_steps("a")] == [(1, "failed"), (2, "completed")]
    assert (begun.instance.status, get_state(begun), begun.list_steps("b")) == (COMPLETED, {"at": 2, "rounds": 1}, [])
    assert run(chain("x").max_attempts(2).then(links.leap, to="b")).instance.failure_code == "unknown_jump"


@pytest.mark.parametrize("jumps", [("2", "Über alles"), ()])
@pytest.mark.parametrize(("to", "node"), [("2", "s2"), ("s2", "s2"), ("Über alles", "s_ber_alles")])
def test_a_step_is_reached_by_its_name_or_its_number(jumps: tuple[str, ...], to: str, node: str) -> None:
    """T-COND-3: one without a name by its number, and every one by its node's id too"""
    built = chain("x").then(links.leap, to=to).jumps(*jumps).then(links.count).then(links.secretive)
    begun = run(built.then(links.fork, "Über alles"))
    assert begun.instance.status is COMPLETED
    assert [step.node_id for step in begun.family.steps.values() if step.node_type != "set_field"][1] == node
    assert begun.list_steps("s1") == []


def test_no_target_is_no_jump() -> None:
    assert get_state(run(chain("x").then(links.leap).jumps().then(links.count)))["rounds"] == 1


@pytest.mark.parametrize("key", [None, "k"])
def test_who_sends_a_signal_does_not_jump(key: str | None) -> None:
    begun = run(chain("x").wait_for_signal("a", key).then(links.count))
    begun.signal("a", {"_next_step": "end", "p": 1})
    go_on(begun)
    assert (begun.instance.status, get_state(begun)["rounds"]) == (COMPLETED, 1)
    assert "_next_step" not in get_state(begun)


def test_a_jump_to_the_end() -> None:
    built = chain("x").then(links.leap, to="end").jumps("end").then(links.count)
    assert run(built, {"a": 1}).instance.result == {"a": 1, "leapt": True}


def test_until_the_key_has_the_value() -> None:
    """T-REP-1"""
    begun = run(chain("x").then(links.count, "body").repeat_until("body", "rounds", 3).then(links.secretive))
    assert (begun.instance.status, get_state(begun)) == (COMPLETED, {"rounds": 3, "ok": 2})
    assert count_visits(begun, "body") == 3


def test_while_the_key_has_the_value() -> None:
    """T-REP-2: the step that ends it writes another value; one is not true"""
    begun = run(chain("x").then(links.count, "body").repeat_while("body", "rounds", 1))
    assert get_state(begun) == {"rounds": 2}
    assert get_state(run(chain("x").then(links.count, "body").repeat_while("body", "rounds", True))) == {"rounds": 1}
    assert get_state(run(chain("x").then(links.count, "body").repeat_while("body", "rounds", 1.0))) == {"rounds": 2}


def test_a_missing_key_is_null() -> None:
    built = chain("x").then(links.count, "body").repeat_until("body", "never", None)
    assert get_state(run(built)) == {"rounds": 1}


def test_while_a_condition_holds() -> None:
    built = chain("x").then(links.count, "body").repeat_while("body", condition={"cel": "state.rounds < 4"})
    assert get_state(run(built)) == {"rounds": 4}


def test_a_repeat_that_never_ends_fails() -> None:
    """T-REP-3"""
    begun = run(chain("x").max_attempts(5).then(links.count, "body").repeat_until("body", "done", max_iterations=2))
    assert begun.instance.status is FAILED
    assert (count_visits(begun, "body"), get_state(begun)) == (3, {"rounds": 3})
    assert get_failure(begun) == "loop_exhausted"
    assert [step.attempt for step in begun.list_steps("repeat_until_1")] == [1, 1, 1]


def test_a_decision_of_one_round_is_none_of_the_next() -> None:
    """T-REP-5, T-AG-5: two rejections, one approval, published once"""
    built = (
        chain("x")
        .then(links.count, "draft")
        .wait_for_decision(result_key=None)
        .repeat_until("draft", "decision_outcome", "approved", max_iterations=5)
        .then(links.publish)
    )
    begun = run(built)
    for name in ("rejected", "rejected", "approved"):
        assert begun.instance.status is WAITING
        begun.signal(name, {"by": name})
        go_on(begun)
    state = get_state(begun)
    assert (begun.instance.status, state["rounds"], state["decision_outcome"]) == (COMPLETED, 3, "approved")
    assert count_visits(begun, "s3") == 1


SIGNALS: dict[str, tuple[Any, list[tuple[str, JsonObject]], Json]] = {
    "merged": (chain("x").wait_for_signal("a"), [("a", {"p": 1, "_q": 2})], {"p": 1}),
    "under a key": (chain("x").wait_for_signal("a", "k"), [("a", {"p": 1, "_q": 2})], {"k": {"p": 1, "_q": 2}}),
    "several under a key": (
        chain("x").wait_for_signals(["a", "b"], result_key="k"),
        [("b", {"p": 2}), ("a", {"p": 1})],
        {"k": {"a": {"p": 1}, "b": {"p": 2}}},
    ),
    "any under a key": (chain("x").wait_for_signals(["a", "b"], "any", "k"), [("b", {"p": 2})], {"k": {"b": {"p": 2}}}),
    "several merged": (
        chain("x").wait_for_signals(["a", "b c"]),
        [("b c", {"p": 2, "q": 2}), ("a", {"p": 1, "r": 1})],
        {"p": 2, "q": 2, "r": 1},
    ),
    "any merged": (chain("x").wait_for_signals(["a", "b"], "any"), [("b", {"p": 2})], {"p": 2}),
    "approval": (chain("x").wait_for_approval(), [("approval", {"by": "Ana"})], {"approval": {"by": "Ana"}}),
    "input": (chain("x").wait_for_input(), [("input", {"note": "x"})], {"input": {"note": "x"}}),
    "approved": (
        chain("x").wait_for_decision(),
        [("approved", {})],
        {"decision": {"outcome": "approved", "signal": "approved", "data": {}}},
    ),
    "rejected by another name": (
        chain("x").wait_for_decision("yes!", 'no "way"', "review"),
        [('no "way"', {"reason": "late"})],
        {"review": {"outcome": "rejected", "signal": 'no "way"', "data": {"reason": "late"}}},
    ),
    "decision without a key": (
        chain("x").wait_for_decision(result_key=None),
        [("rejected", {"reason": "late"})],
        {"decision_outcome": "rejected", "decision_signal": "rejected", "reason": "late"},
    ),
    "part of the payload": (
        chain("x").wait_for_signal("a", match_payload={"o": {"id": 7}}),
        [("a", {"o": {"id": 8}}), ("a", {"o": {"id": 7, "more": 1}})],
        {"o": {"id": 7, "more": 1}},
    ),
}


@pytest.mark.parametrize("case", SIGNALS)
def test_what_a_signal_brings(case: str) -> None:
    """T-SIG-1, T-SIG-4, T-SIG-6, T-SIG-7, T-SIG-8"""
    built, signals, expected = SIGNALS[case]
    begun = run(built)
    assert begun.instance.status is WAITING
    begun.signal("another", {"p": 9})
    for name, payload in signals:
        begun.signal(name, payload)
    assert (begun.instance.status, get_state(begun)) == (COMPLETED, expected)


def test_a_signal_that_comes_first_is_there() -> None:
    """T-SIG-2, T-SIG-3"""
    begun = run(chain("x").delay(60).wait_for_signal("a").wait_for_signal("b"))
    for name in ("b", "c", "a"):
        begun.signal(name, {name: 1})
    begun.pass_time(60)
    begun.claim()
    begun.tell(Delivered())
    begun.tell(Delivered())
    assert (begun.instance.status, get_state(begun)) == (COMPLETED, {"a": 1, "b": 1})


def test_payload_and_state_must_agree() -> None:
    """T-SIG-5"""
    begun = run(chain("x").wait_for_signal("a", "k", correlation_key="order"), {"order": 7})
    begun.signal("a", {"order": 8})
    assert begun.instance.status is WAITING
    begun.signal("a", {"order": 7})
    assert get_state(begun)["k"] == {"order": 7}


def test_two_waits_need_two_signals() -> None:
    """T-SIG-10"""
    begun = run(chain("x").wait_for_signal("a", "first", "w1").wait_for_signal("a", "second", "w2"))
    begun.signal("a", {"n": 1})
    assert begun.instance.status is WAITING
    begun.signal("a", {"n": 2})
    assert get_state(begun) == {"first": {"n": 1}, "second": {"n": 2}}


def test_attempts_are_the_chains_unless_the_handler_has_its_own() -> None:
    """T-OPT-3"""
    assert run(chain("x").max_attempts(5).then(links.flaky, times=4)).instance.status is COMPLETED
    assert run(chain("x").max_attempts(5).then(links.flaky, times=5)).instance.status is FAILED
    begun = run(chain("x").max_attempts(5).then(links.twice))
    assert begun.instance.status is FAILED
    assert [step.attempt for step in begun.list_steps("s0")] == [1, 2]


def test_steps_are_queued_where_the_chain_says() -> None:
    """T-OPT-1"""
    begun = run(chain("x").on_queue("pipelines").then(links.flaky, times=1))
    assert {step.queue for step in begun.list_steps("s0")} == {"pipelines"}


def test_a_straight_chain_passes_with_as_many_transitions_as_steps() -> None:
    """T-GUARD-1, T-GUARD-7"""
    three = chain("x").then(links.fetch).delay(0).then(links.count, "last")
    assert run(three.max_transitions(3), {"order": "a"}).instance.status is COMPLETED
    begun = run(three.max_transitions(2).max_attempts(5), {"order": "a"})
    assert (begun.instance.status, get_failure(begun)) == (FAILED, "budget_transitions")
    assert begun.instance.failure_params == {
        "pointer": "/settings/limits/max_transitions",
        "limit": 2,
        "actual": 3,
    }  # as it was said
    assert get_state(begun) == {"order": "a", "fetched": "a"}
    assert [step.attempt for step in begun.list_steps("last")] == [1]


def test_a_repeat_is_a_transition() -> None:
    """T-GUARD-2"""
    built = chain("x").then(links.count, "body").repeat_until("body", "never").max_transitions(3)
    begun = run(built)
    assert (begun.instance.status, get_state(begun)) == (FAILED, {"rounds": 2})


def test_costs_are_added_up() -> None:
    """T-GUARD-9"""
    twice = chain("x").then(links.dear).then(links.dear, "last")
    assert run(twice.max_cost_units(4)).instance.status is COMPLETED
    begun = run(twice.max_cost_units(3))
    assert (begun.instance.status, get_failure(begun), get_state(begun)) == (FAILED, "budget_cost", {"rounds": 1})
    assert begun.instance.failed_node_id == "last"


def test_what_older_steps_returned_leaves_the_state() -> None:
    """T-PRUNE-1, T-PRUNE-2, T-PRUNE-3"""
    built = chain("x").then(links.fetch).then(links.price).then(links.count).then(links.secretive)
    given: JsonObject = {"order": "a", "mine": 1}
    assert sorted(get_state(run(built, given))) == ["fetched", "mine", "ok", "order", "price", "rounds"]
    assert sorted(get_state(run(built.prune_state_after(), given))) == ["mine", "ok", "order", "rounds"]
    assert sorted(get_state(run(built.prune_state_after(1), given))) == ["mine", "ok", "order"]


def test_a_state_over_its_limit_fails_the_run() -> None:
    begun = run(chain("x").max_state_bytes(30).then(links.fetch, order="a" * 40))
    assert (begun.instance.status, get_failure(begun)) == (FAILED, "budget_state_bytes")
    begun = run(chain("x").max_state_bytes(30).then(links.count), {"a": "a" * 40})
    assert (begun.instance.status, begun.list_steps("s0")) == (FAILED, [])


def test_a_wait_that_takes_too_long_goes_on_elsewhere() -> None:
    """T-SIG: a time limit with the step that follows then"""
    built = (
        chain("x")
        .wait_for_approval(timeout=60, timed_out="late")
        .then(links.count, "in time")
        .then(links.secretive, "late")
    )
    begun = run(built)
    begun.pass_time(60)
    begun.work()
    go_on(begun)
    assert (begun.instance.status, get_state(begun)) == (COMPLETED, {"approval": {}, "ok": 2})
    begun = run(built)
    begun.signal("approval", {"by": "Ana"})
    go_on(begun)
    assert get_state(begun) == {"approval": {"by": "Ana"}, "rounds": 1, "ok": 2}


def test_a_delay_until_the_time_under_a_key() -> None:
    """T-DELAY-2, T-DELAY-3"""
    begun = run(chain("x").delay(until="due").delay(0).delay(minutes=1), {"due": "2000-01-01T00:00:00Z"})
    assert begun.step.node_id == "delay_2"
    assert begun.pass_time(59) == 0
    assert begun.pass_time(1) == 1
    begun.claim()
    assert begun.instance.status is COMPLETED


def test_a_deadline_and_a_priority_are_the_runs() -> None:
    """T-DL-4, T-OPT-2: what they hang on"""
    begun = run(chain("x").must_complete_within(hours=1).with_priority("high").version("7").wait_for_signal("a"))
    instance = begun.instance
    assert (instance.deadline_seconds, instance.priority, instance.labels) == (3_600, 2, ["version:7"])
    begun.now = get_time(3_600)
    begun.tell(DeadlinePassed())
    assert (begun.instance.status, get_failure(begun)) == (FAILED, "deadline_exceeded")


def test_a_failed_step_is_retried_and_no_other() -> None:
    """T-RETRY-1"""
    begun = run(
        chain("x").max_attempts(1).then(links.count, "a").then(links.flaky, "b").then(links.publish), {"times": 1}
    )
    assert begun.instance.status is FAILED
    begun.tell(RetryAsked())
    go_on(begun)
    assert begun.instance.status is COMPLETED
    assert (count_visits(begun, "a"), len(begun.list_steps("a"))) == (1, 1)


def test_what_a_handler_streams_is_merged_as_text_and_read_by_the_next_step() -> None:
    begun = run(chain("c").then(links.tell).then(links.count_words), {"name": "Ana"})
    assert get_state(begun) == {"name": "Ana", "text": "Hello Ana", "words": 2}
