"""Compensations and the hooks of settings: kept with a record, run newest first once the run ends."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.facts import DeadlinePassed, Raised, RetryAsked, RewindAsked
from korak.core.rows import StepRun
from korak.errors import Conflict
from korak.graphs.builder import GraphBuilder, graph, ref
from korak.model import (
    ClosedReason,
    CompensationStatus,
    EventType,
    InstanceStatus,
    JsonObject,
    StepRole,
    StepStatus,
)
from korak.steps.results import Complete, Wait
from korak.steps.waits import WaitSpec
from tests.support.bodies import body, document, drain, for_each, get_status, list_ready, node, parallel
from tests.support.runs import Run
from tests.support.undoing import CANCEL, UNDO, get_inputs, go_on, list_undone, one_by_one, three, undone


def test_t_comp_1_undo_runs_newest_first_then_on_cancel() -> None:
    run = three(on_cancel={"type": "test.ok", "config": {"value": "cleaned"}})
    drain(run)
    run.tell(CANCEL)
    assert one_by_one(run) == ["cancel:c", "compensate:b", "compensate:a", "on_cancel:$on_cancel"]
    assert run.instance.status is InstanceStatus.CANCELLED
    assert get_inputs(run) == [{"value": "undo b"}, {"value": "undo a"}, {"value": "cleaned"}]
    statuses = {row.status for row in run.family.compensations.values()}
    assert (statuses, run.live, run.waits) == ({CompensationStatus.COMPLETED}, [], [])


def test_t_comp_2_each_sees_the_state_as_it_was_after_its_step() -> None:
    read: JsonObject = {"type": "test.ok", "config": {"value": ref("state")}}
    more: JsonObject = {"save": {"merge": True}, "compensate": read}
    run = Run(document({**node("a"), **more}, {**node("b"), **more}, node("c", "test.ask", signal="go")))
    run.claim()
    run.finish(Complete(output={"x": 1, "_secret": 2}))
    run.claim()
    run.finish(Complete(output={"x": 2, "y": 3}))
    run.tell(CANCEL)
    one_by_one(run)
    assert get_inputs(run) == [{"value": {"x": 2, "y": 3}}, {"value": {"x": 1}}]
    assert [row.state for row in run.family.compensations.values()] == [{"x": 1}, {"x": 2, "y": 3}]


def test_t_comp_3_a_failure_without_opt_in_keeps_them_and_can_be_retried() -> None:
    run = Run(document(undone("a"), node("c", "test.flaky", for_good=True)))
    drain(run)
    assert (run.instance.status, run.hooks) == (InstanceStatus.FAILED, [])
    run.tell(RetryAsked())
    drain(run)
    run.tell(CANCEL)
    assert get_status(run) is InstanceStatus.CANCELLED
    assert one_by_one(run) == ["compensate:a"]


def test_t_comp_4_a_failure_with_opt_in_undoes_and_refuses_a_retry() -> None:
    run = Run(
        document(
            undone("a"),
            node("c", "test.flaky", for_good=True),
            compensate_on_failure=True,
            on_cancel={"type": "test.ok"},
        )
    )
    drain(run)
    assert list_undone(run) == [("compensate", "a", "completed")]
    assert (run.instance.status, run.instance.closed_reason) == (InstanceStatus.FAILED, ClosedReason.FAILED)
    with pytest.raises(Conflict, match="undone"):
        run.tell(RetryAsked())
    run.tell(CANCEL)
    assert one_by_one(run) == ["on_cancel:$on_cancel"]
    with pytest.raises(Conflict):
        run.tell(CANCEL)


def test_a_failed_run_that_has_nothing_to_clean_up_can_not_be_cancelled() -> None:
    failing = node("c", "test.flaky", for_good=True)
    for built in (document(failing), document(undone("a"), failing, compensate_on_failure=True)):
        run = Run(built)
        drain(run)
        with pytest.raises(Conflict, match="failed"):
            run.tell(CANCEL)


def test_t_comp_5_the_snapshot_of_a_wait_has_what_the_signal_brought() -> None:
    wait: JsonObject = {
        **node("w", "wait", signal="paid"),
        "save": {"key": "payment"},
        "compensate": {"type": "test.ok", "config": {"value": ref("state.payment.payload")}},
    }
    run = Run(document(wait, node("c", "test.ask", signal="go")))
    run.signal("paid", {"amount": 3})
    drain(run)
    run.signal("paid", {"amount": 4})
    run.tell(CANCEL)
    one_by_one(run)
    assert get_inputs(run) == [{"value": {"amount": 3}}]


def test_a_step_that_parked_itself_is_undone_with_what_came() -> None:
    undo: JsonObject = {"type": "test.ok", "config": {"value": ref("steps.a.output.payload")}}
    run = Run(document({**node("a", "test.ask", signal="go"), "compensate": undo}, node("c", "test.ask", signal="no")))
    drain(run)
    run.signal("go", 7)
    drain(run)
    run.tell(CANCEL)
    go_on(run)
    assert get_inputs(run) == [{"value": 7}]


def test_t_comp_7_what_was_undone_is_not_undone_again_after_a_crash() -> None:
    """The engine of the second undo is lost; the first stays done, the second is tried again."""
    run = three()
    drain(run)
    run.tell(CANCEL)
    for _ in range(2):
        [ready] = list_ready(run)
        run.claim(ready)
        run.finish(Complete(), step=run.family.steps[ready.id])
    [second] = list_ready(run)
    run.claim(second)
    run.lose(run.family.steps[second.id])
    go_on(run)
    undo = [step for step in run.hooks if step.role is StepRole.COMPENSATE]
    assert [(step.node_id, step.attempt, step.status) for step in undo] == [
        ("b", 1, StepStatus.COMPLETED),
        ("a", 1, StepStatus.FAILED),
        ("a", 2, StepStatus.COMPLETED),
    ]
    assert len({step.idempotency_key for step in undo}) == 2


def test_an_undo_that_always_fails_stops_no_other_and_is_told() -> None:
    failing: JsonObject = {"type": "test.flaky", "config": {"times": 99}, "retry": {"max_attempts": 2, "backoff": [1]}}
    run = Run(document(undone("a"), {**node("b"), "compensate": failing}, node("c", "test.ask", signal="go")))
    drain(run)
    run.tell(CANCEL)
    go_on(run)
    undo = [step for step in run.hooks if step.role is StepRole.COMPENSATE]
    assert [(step.node_id, step.attempt, step.status) for step in undo] == [
        ("b", 1, StepStatus.FAILED),
        ("b", 2, StepStatus.FAILED),
        ("a", 1, StepStatus.COMPLETED),
    ]
    assert [(row.propagation, row.handled) for row in run.family.failures] == [("retry", True), ("none", False)]
    assert {row.source for row in run.family.failures} == {"hook"}
    told = [event.data for event in run.list_events(EventType.HOOK_FAILED)]
    assert [(data or {})["will_retry"] for data in told] == [True, False]
    assert [row.status for row in run.family.compensations.values()] == [
        CompensationStatus.COMPLETED,
        CompensationStatus.FAILED,
    ]


def fail_hook(run: Run, *, is_retryable: bool = False) -> None:
    """Let the hook that is ready fail."""
    [ready] = list_ready(run)
    run.claim(ready)
    run.finish(Raised("bank.closed", is_retryable=is_retryable), step=run.family.steps[ready.id])


def test_what_could_not_be_undone_is_tried_again_newest_first() -> None:
    """T-COMP-4, ours: nothing else runs again, and each goes under the key that it had."""
    run = Run(document(undone("a"), undone("b"), undone("d"), node("c", "test.ask", signal="go")))
    drain(run)
    run.tell(CANCEL)
    go = list_ready(run)[0]
    run.claim(go)
    run.finish(Complete(), step=run.family.steps[go.id])
    fail_hook(run)
    run.claim(list_ready(run)[0])
    run.finish(Complete(), step=run.hooks[-1])
    fail_hook(run)
    before = len(run.hooks)
    run.tell(RetryAsked())
    assert one_by_one(run) == ["compensate:d", "compensate:a"]
    again = run.hooks[before:]
    assert [(step.attempt, step.call, step.status) for step in again] == [(1, 2, "completed"), (1, 2, "completed")]
    assert {step.idempotency_key for step in again} < {step.idempotency_key for step in run.hooks[:before]}
    assert {row.status for row in run.family.compensations.values()} == {CompensationStatus.COMPLETED}
    assert get_status(run) is InstanceStatus.CANCELLED
    assert [event.data for event in run.list_events(EventType.HOOKS_RETRIED)] == [
        {"roles": ["compensate"], "actor": None}
    ]
    with pytest.raises(Conflict, match="it is cancelled"):
        run.tell(RetryAsked())


def test_an_undo_that_fails_again_has_all_its_attempts_again() -> None:
    failing: JsonObject = {"type": "test.flaky", "config": {"times": 99}, "retry": {"max_attempts": 2, "backoff": [1]}}
    run = Run(document({**node("a"), "compensate": failing}, node("c", "test.ask", signal="go")))
    drain(run)
    run.tell(CANCEL)
    go_on(run)
    for call in (2, 3):
        run.tell(RetryAsked())
        go_on(run)
        assert [(step.call, step.attempt) for step in run.hooks[-2:]] == [(call, 1), (call, 2)]
        assert [(row.status, row.call) for row in run.family.compensations.values()] == [("failed", call)]


def test_what_is_being_undone_is_not_retried() -> None:
    run = three()
    drain(run)
    run.tell(CANCEL)
    run.claim(list_ready(run)[0])
    run.finish(Complete(), step=run.hooks[-1])
    fail_hook(run)
    with pytest.raises(Conflict, match="still being undone"):
        run.tell(RetryAsked())
    go_on(run)
    run.tell(RetryAsked())
    assert one_by_one(run) == ["compensate:b"]


@pytest.mark.parametrize("role", ["on_cancel", "on_deadline"])
def test_a_hook_of_the_settings_that_failed_is_tried_again_after_the_undo(role: str) -> None:
    """It is the same visit, under the same key."""
    settings: dict[str, Any] = {role: {"type": "test.ok", "config": {"value": "cleaned"}}}
    if role == "on_deadline":
        settings |= {"execution_timeout": 60, "compensate_on_failure": True}
    run = Run(document(undone("a"), node("c", "test.ask", signal="go"), **settings))
    drain(run)
    if role == "on_deadline":
        run.pass_time(61)
        run.tell(DeadlinePassed())
    else:
        run.tell(CANCEL)
    go = list_ready(run)[0]
    run.claim(go)
    run.finish(Complete(), step=run.family.steps[go.id])
    fail_hook(run)
    fail_hook(run)
    run.tell(RetryAsked())
    assert one_by_one(run) == ["compensate:a", f"{role}:${role}"]
    first, second = [step for step in run.hooks if step.role == role]
    assert (first.idempotency_key, first.visit) == (second.idempotency_key, second.visit)
    assert (first.status, second.status, second.call) == ("failed", "completed", 2)
    with pytest.raises(Conflict):
        run.tell(RetryAsked())


def test_what_failed_at_a_deadline_is_tried_again_once_the_failed_run_is_cancelled() -> None:
    """Until then the run may go on, and then what failed as it ended is over."""
    settings: dict[str, Any] = {"on_deadline": {"type": "test.ok", "config": {"value": "late"}}}
    for is_retried in (False, True):
        run = Run(document(undone("a"), node("c", "test.ask", signal="go"), execution_timeout=60, **settings))
        drain(run)
        run.pass_time(61)
        run.tell(DeadlinePassed())
        run.claim(list_ready(run)[0])
        run.finish(Complete(), step=run.hooks[-1])
        fail_hook(run)
        if is_retried:
            run.tell(RetryAsked())
        run.tell(CANCEL)
        go_on(run)
        if is_retried:
            with pytest.raises(Conflict, match="nothing is left to undo"):
                run.tell(RetryAsked())
            continue
        run.tell(RetryAsked())
        assert one_by_one(run) == ["on_deadline:$on_deadline"]


@pytest.mark.parametrize("lost", [{"on_cancel": 32_767}, {"on_cancel": "x", "strange": 1}, {"strange": 1}, "x"])
def test_what_an_import_says_of_hooks_that_failed_makes_one_that_there_is_or_none(lost: Any) -> None:
    run = Run(document(undone("a"), node("c", "test.ask", signal="go"), on_cancel={"type": "test.ok"}))
    drain(run)
    run.tell(CANCEL)
    go_on(run)
    run.instance.walk = {**(run.instance.walk or {}), "lost": lost}
    if "on_cancel" not in lost:
        with pytest.raises(Conflict, match="nothing is left"):
            run.tell(RetryAsked())
        return
    run.tell(RetryAsked())
    assert one_by_one(run) == ["on_cancel:$on_cancel"]
    assert (run.hooks[-1].visit, run.hooks[-1].call, run.hooks[-1].status) == (2, 1, "completed")
    with pytest.raises(Conflict, match="nothing is left"):
        run.tell(RetryAsked())


def test_an_undo_whose_config_can_not_be_resolved_fails_alone() -> None:
    broken: JsonObject = {"type": "test.price", "config": {"order": ref("state.a")}}
    run = Run(document({**undone("a", value=1), "compensate": broken}, undone("b"), node("c", "test.ask", signal="go")))
    drain(run)
    assert run.step.node_id == "c"
    run.tell(CANCEL)
    go_on(run)
    undo = [(step.node_id, step.error_code) for step in run.hooks if step.role is StepRole.COMPENSATE]
    assert undo == [("b", None), ("a", "invalid_input")]


def test_a_hook_that_wants_to_wait_fails() -> None:
    run = three()
    drain(run)
    run.tell(CANCEL)
    go = list_ready(run)[0]
    run.claim(go)
    run.finish(Complete(), step=run.family.steps[go.id])
    [ready] = list_ready(run)
    run.claim(ready)
    run.finish(Wait(WaitSpec.signal("go")), step=run.family.steps[ready.id])
    assert (run.family.steps[ready.id].status, run.family.steps[ready.id].error_code) == ("failed", "invalid_output")
    assert [step.node_id for step in list_ready(run)] == ["a"]


def test_every_visit_of_a_round_is_undone() -> None:
    built = (
        graph("g")
        .trigger("manual")
        .node("l", "loop", over={"literal": [1, 2, 3]}, max_iterations=5)
        .node("a", "test.ok", value=ref("loops.l.item"))
        .compensate("test.ok", value=ref("loops.l.item"))
        .node("c", "test.ask", signal="go")
        .node("done", "end")
        .edge("start", "l")
        .edge("l", "a", "body")
        .edge("a", "l")
        .edge("l", "c", "done")
        .edge("c", "done")
    )
    run = Run(built)
    drain(run)
    run.tell(CANCEL)
    one_by_one(run)
    assert get_inputs(run) == [{"value": 3}, {"value": 2}, {"value": 1}]


def test_containers_are_undone_after_their_merge_and_what_never_merged_too() -> None:
    branches = parallel(
        "both", {"key": "both"}, x=body(undone("x")), y=body(undone("y"), node("z", "test.ask", signal="z"))
    )
    run = Run(document({**branches, "compensate": UNDO}))
    drain(run)
    assert [row.node_id for row in run.family.compensations.values()] == ["x", "y"]
    run.tell(CANCEL)
    assert one_by_one(run) == ["cancel:z", "compensate:y", "compensate:x"]


def test_a_merged_container_is_undone_before_its_bodies() -> None:
    one: JsonObject = {"type": "test.ok", "config": {"value": ref("item")}}
    all_: JsonObject = {"type": "test.ok", "config": {"value": ref("state.all.total")}}
    each = for_each({"literal": [1, 2, 3]}, body({**node("i"), "compensate": one}))
    whole: JsonObject = {**each, "save": {"key": "all"}, "compensate": all_}
    run = Run(document(whole, node("c", "test.ask", signal="go")))
    drain(run)
    run.tell(CANCEL)
    one_by_one(run)
    assert get_inputs(run) == [{"value": 3}, {"value": 3}, {"value": 2}, {"value": 1}]


def test_a_graph_without_hooks_keeps_nothing() -> None:
    run = Run(document(node("a"), node("c", "test.ask", signal="go")))
    drain(run)
    run.tell(CANCEL)
    assert (run.family.compensations, run.instance.walk) == ({}, None)


def test_what_a_rewind_left_behind_has_happened_and_is_undone_too() -> None:
    run = three()
    drain(run)
    run.tell(RewindAsked("a"))
    drain(run)
    run.tell(CANCEL)
    undone_ = [name for name in one_by_one(run) if name.startswith("compensate")]
    assert undone_ == ["compensate:b", "compensate:b", "compensate:a"]


def test_a_run_that_was_undone_is_not_rewound() -> None:
    failing = node("c", "test.flaky", for_good=True)
    run = Run(document(undone("a"), failing, compensate_on_failure=True))
    drain(run)
    with pytest.raises(Conflict):
        run.tell(RewindAsked("a"))


def test_a_cancel_hook_s_attempts_are_its_own() -> None:
    """A step that was cancelled at its last attempt is cleaned up with as many attempts as any other."""
    built: GraphBuilder = graph("g").trigger("manual").node("c", "test.ask", signal="go").retry(3, [1])
    run = Run(built.node("done", "end").edge("start", "c").edge("c", "done"))
    for _ in range(2):
        run.claim()
        run.finish(Raised("exception"))
        run.pass_time(10)
    run.claim()
    run.tell(CANCEL)
    [hook] = run.hooks
    assert (run.list_steps("c")[-1].attempt, hook.attempt) == (3, 1)
    run.claim(hook)
    run.finish(Raised("exception"), step=run.hooks[0])
    assert [step.attempt for step in run.hooks] == [1, 2]


def get_key(step: StepRun) -> str:
    return step.idempotency_key


def test_an_undo_has_a_key_of_its_own() -> None:
    """What the step did once is not taken for what its undo does."""
    run = three()
    drain(run)
    run.tell(CANCEL)
    go_on(run)
    [undo] = [step for step in run.hooks if step.node_id == "a"]
    assert get_key(undo) == f"{get_key(run.list_steps('a')[0])}:compensate"
