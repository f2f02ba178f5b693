"""How a token moves: starts, edges, visits, what is decided at once, results, error exits (RC-3, RC-7, EX-6)."""

from __future__ import annotations

from typing import Any

import pytest

from korak.codes import render
from korak.core.facts import Raised
from korak.core.snapshot import Policy
from korak.graphs.builder import GraphBuilder, graph, ref
from korak.model import EventType, InstanceStatus, StepStatus
from korak.steps.results import Complete
from tests.support.plans import line
from tests.support.runs import ULID, Run


def rounds(items: int) -> GraphBuilder:
    built = graph("loop").trigger("manual").node("done", "end")
    built = built.node("each", "loop", {"over": {"literal": list(range(items))}, "max_iterations": 100})
    built = built.node("a", "test.ok", {"value": ref("loops.each.item")})
    return built.edge("start", "each").edge("each", "a", "body").edge("a", "each").edge("each", "done", "done")


def test_a_start_queues_the_first_step_and_no_more() -> None:
    run = Run(line(("a", "test.ok", {}), ("b", "test.ok", {})))
    assert (run.instance.status, run.instance.steps_count) == (InstanceStatus.RUNNING, 1)
    assert [(step.node_id, step.status, step.attempt, step.visit) for step in run.live] == [
        ("a", StepStatus.QUEUED, 1, 1)
    ]
    assert run.step.idempotency_key == f"wf:{ULID}:a:1"
    assert run.step.ready_at == run.now


def test_rc_7_a_result_leads_to_the_next_step() -> None:
    run = Run(line(("a", "test.ok", {}), ("b", "test.ok", {})))
    version = run.instance.lock_version
    run.claim()
    run.finish(Complete(output={"x": 1}))
    assert [(step.node_id, step.status, step.output) for step in run.list_steps("a")] == [
        ("a", StepStatus.COMPLETED, {"x": 1})
    ]
    assert (run.step.node_id, run.step.status) == ("b", StepStatus.QUEUED)
    assert (run.instance.steps_count, run.instance.lock_version) == (2, version + 2)


def test_the_next_step_runs_where_the_last_was_recorded() -> None:
    run = Run(line(("a", "test.ok", {}), ("b", "test.ok", {"value": 5})))
    run.claim()
    changes = run.finish(Complete(), inline=True)
    assert [(grant.step.node_id, grant.input) for grant in changes.claimed] == [("b", {"value": 5})]
    assert (run.step.status, run.step.claim_token, changes.ready) == (StepStatus.RUNNING, "T2", [])


def test_ex_6_what_reads_only_the_snapshot_is_decided_in_the_record_before() -> None:
    run = Run(
        line(
            ("a", "test.ok", {}),
            ("s", "set_field", {"field": "state.total", "value": 7}),
            ("b", "test.ok", {"value": ref("state.total")}),
        )
    )
    run.claim()
    changes = run.finish(Complete(), inline=True)
    assert [step.status for step in run.list_steps("s")] == [StepStatus.COMPLETED]
    assert changes.claimed[0].input == {"value": 7}


def test_every_entry_is_a_visit_with_a_key_of_its_own() -> None:
    """ID-9, LM-11: visits count by node; attempts don't count as steps."""
    run = Run(rounds(3))
    for _ in range(3):
        run.work()
    assert run.instance.status is InstanceStatus.COMPLETED
    assert [(step.visit, (step.output or {})["value"]) for step in run.list_steps("a")] == [(1, 0), (2, 1), (3, 2)]
    assert len({step.idempotency_key for step in run.list_steps("a")}) == 3
    assert run.instance.steps_count == 3 + 4 + 1


def test_one_decision_walks_fifty_nodes_and_queues_the_next() -> None:
    built = graph("long").trigger("manual").node("done", "end")
    names = [f"s{number}" for number in range(60)]
    for name in names:
        built = built.node(name, "set_field", {"field": f"state.{name}", "value": 1})
    for before, after in zip(["start", *names], [*names, "done"], strict=True):
        built = built.edge(before, after)
    run = Run(built)
    assert (run.step.node_id, run.step.status, len(run.instance.state)) == ("s50", StepStatus.QUEUED, 50)
    run.claim()
    assert (run.instance.status, len(run.instance.state)) == (InstanceStatus.COMPLETED, 60)


def test_save_keeps_an_output_under_its_key_or_merges_it() -> None:
    built = graph("s").trigger("manual").node("a", "test.ok").save("a").node("b", "test.ok").save().node("done", "end")
    run = Run(built.edge("start", "a").edge("a", "b").edge("b", "done"))
    run.claim()
    run.finish(Complete(output={"x": 1}))
    run.claim()
    run.finish(Complete(output={"y": 2, "_z": 3}))
    assert run.instance.state == {"a": {"x": 1}, "y": 2}


def test_the_result_is_that_of_the_end_or_the_last_output() -> None:
    run = Run(line(("a", "test.ok", {"value": 1}), ("w", "delay", {"for": 60})))
    run.work()
    run.pass_time(61)
    run.claim()
    assert run.instance.result == {"due_at": "2026-02-02T02:41:00Z"}


def test_the_last_output_survives_a_step_that_leaves_by_its_error_exit() -> None:
    built = graph("e").trigger("manual").node("a", "test.ok").node("b", "test.flaky", {"for_good": True})
    run = Run(built.node("done", "end").edge("start", "a").edge("a", "b").edge("b", "done").edge("b", "done", "error"))
    run.claim()
    run.finish(Complete(output={"x": 1}))
    run.work()
    assert (run.instance.status, run.instance.result) == (InstanceStatus.COMPLETED, {"x": 1})


def exits(**more: Any) -> GraphBuilder:
    built = graph("exits").trigger("manual").node("a", "test.flaky", {"for_good": True}).retry(2, [5])
    built = built.on_error("test.refu*", outcome="declined") if more.get("maps") else built
    built = built.node("on", "test.ok", {"value": ref("steps.a.error")}).node("done", "end")
    built = built.edge("start", "a").edge("a", "done").edge("a", "on", "error").edge("on", "done")
    return built.node("no", "end", {"result": "declined"}).edge("a", "no", "declined") if more.get("maps") else built


def test_a_permanent_failure_leaves_by_the_error_exit_with_what_happened() -> None:
    run = Run(exits())
    run.work()
    [failed] = run.list_steps("a")
    assert (failed.status, failed.outcome, run.step.node_id) == (StepStatus.FAILED, "error", "on")
    run.claim()
    assert run.get_grant().input == {"value": {"code": "test.refused", "message": "no", "attempts": 1}}
    assert [failure.propagation for failure in run.family.failures] == ["exit"]


def test_the_last_attempt_leaves_by_the_error_exit_too() -> None:
    run = Run(exits())
    run.claim()
    run.finish(Raised("exception"))
    assert run.step.attempt == 2
    run.pass_time(10)
    run.claim()
    run.finish(Raised("exception"))
    assert run.step.node_id == "on"
    assert run.instance.status is InstanceStatus.RUNNING


def test_the_text_of_an_unknown_exception_is_not_for_values() -> None:
    """RT-10: it is kept for operators and told to nobody else, neither from this snapshot nor from a fresh one."""
    run = Run(exits())
    run.claim()
    run.finish(Raised("exception", "password=hunter2", is_retryable=False))
    run.claim()
    told = {"code": "exception", "message": "The step raised an unexpected error.", "attempts": 1}
    assert run.get_grant().input == {"value": told}
    [failed] = run.list_steps("a")
    assert failed.error_message == "password=hunter2"


def test_on_error_maps_codes_to_outcomes() -> None:
    run = Run(exits(maps=True))
    run.work()
    assert (run.instance.status, run.instance.result) == (InstanceStatus.COMPLETED, "declined")


def test_a_limit_leaves_by_no_exit() -> None:
    run = Run(exits(), policy=Policy(limits={**Policy().limits, "max_transitions": 0}))
    run.claim()
    run.finish(Complete())
    assert (run.instance.status, run.instance.failure_code) == (InstanceStatus.FAILED, "budget_transitions")


def test_an_outcome_that_the_type_does_not_declare_fails_the_step() -> None:
    run = Run(line(("a", "test.ok", {})))
    run.claim()
    run.finish(Complete("sideways"))
    assert run.instance.failure_code == "unknown_outcome"


@pytest.mark.parametrize(
    ("jumps", "target", "expected"),
    [
        (("b",), "b", "b"),
        (("b",), None, "a"),
        (("b",), "a", "unknown_jump"),
        (("b",), 5, "unknown_jump"),
        (("$end",), "$end", "completed"),
        ((), "b", "b"),
        ((), "$end", "completed"),
        ((), "nowhere", "unknown_jump"),
        (None, "b", "unknown_jump"),
        ([], "b", "a"),
        ([], 5, "a"),
    ],
)
def test_an_output_may_jump_where_its_node_allows_it(jumps: Any, target: Any, expected: str) -> None:
    """Exempt from the loop rule; what a node's `jumps` don't name is refused, unless they are an empty list."""
    built = graph("j").trigger("manual").node("done", "end").node("b", "test.ok").node("a", "test.ok")
    built = built if jumps is None or jumps == [] else built.jumps(*jumps)
    built = built.node("go", "test.ok")
    built = built.edge("start", "go").edge("go", "a").edge("a", "a2").node("a2", "test.ok").edge("a2", "b")
    written: Any = built.edge("b", "done").document()
    if jumps == []:
        next(node for node in written["nodes"] if node["id"] == "a")["jumps"] = []
    run = Run(written)
    run.work()
    run.claim()
    run.finish(Complete(output={"x": 1, "_next_step": target}))
    instance = run.instance
    if expected in ("b", "a"):
        assert run.step.node_id == ("b" if expected == "b" else "a2")
    else:
        assert expected in (*(failure.code for failure in run.family.failures), instance.status)
        assert instance.result == ({"x": 1} if expected == "completed" else None)


@pytest.mark.parametrize(("target", "told"), [("nowhere", "'nowhere'"), ("", "''"), (0, "0"), ({"x": 1}, "{'x': 1}")])
def test_a_refused_jump_says_where_it_stands_and_what_it_is(target: Any, told: str) -> None:
    built = graph("j").trigger("manual").node("a", "test.ok").jumps("b", "$end").node("b", "end")
    run = Run(built.edge("start", "a").edge("a", "b"))
    run.claim()
    run.finish(Complete(output={"_next_step": target}))
    [failure] = run.family.failures
    params = {"pointer": "/_next_step", "target": target, "allowed": "$end, b"}
    assert (failure.code, failure.params) == ("unknown_jump", params)
    assert render(failure.code, failure.params) == f"{told} is no target of this node's jumps: allowed is $end, b."


@pytest.mark.parametrize(("jumps", "allowed"), [((), "any node beside it"), (None, "none")])
def test_a_refused_jump_says_what_is_allowed(jumps: Any, allowed: str) -> None:
    built = graph("j").trigger("manual").node("a", "test.ok")
    built = built if jumps is None else built.jumps(*jumps)
    run = Run(built.node("b", "end").edge("start", "a").edge("a", "b"))
    run.claim()
    run.finish(Complete(output={"_next_step": "c"}))
    [failure] = run.family.failures
    told = f"'c' is no target of this node's jumps: allowed is {allowed}."
    assert render(failure.code, failure.params) == told


def test_history_has_no_gap() -> None:
    run = Run(line(("a", "test.ok", {}), ("b", "test.ok", {})))
    run.work()
    run.work()
    assert [event.seq for event in run.family.events] == list(range(1, run.instance.next_seq))
    assert run.history == [
        EventType.INSTANCE_STARTED,
        EventType.STEP_STARTED,
        EventType.STEP_COMPLETED,
        EventType.STEP_STARTED,
        EventType.STEP_COMPLETED,
        EventType.STEP_COMPLETED,
        EventType.INSTANCE_COMPLETED,
    ]
