"""Going back to where a run stood, and runs of their own that begin there (T-X-1, T-X-2, T-LOG-2)."""

from __future__ import annotations

from typing import Any

import pytest

from korak.core.changes import Changes
from korak.core.facts import CancelAsked, ForkAsked, PauseAsked, Raised, ResumeAsked, RewindAsked
from korak.core.states import list_removed, list_written, replay
from korak.errors import Conflict
from korak.model import EventType, InstanceStatus, JsonObject, StepRole, StepStatus
from korak.steps.results import Complete
from korak.store.sealing import seal
from tests.support.bodies import (
    body,
    document,
    drain,
    find,
    for_each,
    get_state,
    get_status,
    list_ready,
    node,
    parallel,
)
from tests.support.runs import Run

RUNNING, WAITING = InstanceStatus.RUNNING, InstanceStatus.WAITING
COMPLETED, FAILED = InstanceStatus.COMPLETED, InstanceStatus.FAILED
OTHER = "01JBBBBBBBBBBBBBBBBBBBBBBB"


def save(name: str, kind: str = "test.ok", **members: Any) -> JsonObject:
    return node(name, kind, save={"key": name}, **members)


def line_of(*names: str, **settings: Any) -> Run:
    """Steps that each save under their name, the last of which waits for its engine."""
    run = Run(document(*(save(name) for name in names), **settings))
    for _ in names[:-1]:
        run.work()
    return run


def list_done(run: Run) -> list[str]:
    """The nodes of the completed attempts that stand."""
    steps = sorted(run.family.steps.values(), key=lambda step: step.id)
    return [step.node_id for step in steps if step.status is StepStatus.COMPLETED and step.undone_at is None]


def fork(run: Run, to: str | None = None) -> Run:
    """The fork, a run of its own in a memory of its own."""
    run.tell(ForkAsked(OTHER, to, {"user": "u"}))
    changes = run.last.fork
    assert changes is not None
    return adopt(run, changes)


def adopt(run: Run, changes: Changes) -> Run:
    other = Run(run.plan, policy=run.memory.policy)
    other.memory.families.clear()
    seal(changes, other.ids)
    for step in changes.ready:
        step.sent_at = step.ready_at
    assert other.memory.apply(changes)
    other.now = run.now
    return other


def test_t_x_1_a_rewind_has_the_state_after_its_step_and_goes_on_from_there() -> None:
    run = line_of("a", "b", "c")
    after_a = {"a": run.list_steps("a")[0].output}
    waiting = run.step
    run.tell(RewindAsked("a"))
    assert get_state(run) == after_a
    assert (run.step.node_id, run.step.status, run.step.visit) == ("b", StepStatus.QUEUED, 2)
    assert run.family.steps[waiting.id].status is StepStatus.CANCELLED
    assert list_done(run) == ["a"]
    [told] = run.list_events(EventType.INSTANCE_REWOUND)
    assert told.data == {"to": {"node": "a", "step": run.list_steps("a")[0].ulid}, "seq": 3, "actor": None}
    drain(run)
    assert get_status(run) is COMPLETED
    assert sorted(get_state(run)) == ["a", "b", "c"]


def test_no_key_is_used_twice_however_often_a_run_goes_back() -> None:
    run = line_of("a", "b", "c")
    for _ in range(3):
        run.tell(RewindAsked("a"))
        run.work()
    drain(run)
    keys = [step.idempotency_key for step in run.family.steps.values()]
    assert len(keys) == len(set(keys))
    assert [step.visit for step in run.list_steps("b")] == [1, 2, 3, 4]
    assert [step.visit for step in run.list_steps("c")] == [1, 2, 3, 4]


@pytest.mark.parametrize("by", ["ulid", "execution_id", "node_id"])
def test_a_place_has_many_names(by: str) -> None:
    run = line_of("a", "b", "c")
    run.tell(RewindAsked(str(getattr(run.list_steps("b")[0], by))))
    assert (sorted(get_state(run)), run.step.node_id) == (["a", "b"], "c")


def test_the_trigger_is_the_beginning() -> None:
    run = line_of("a", "b", "c")
    run.tell(RewindAsked("start"))
    assert (get_state(run), run.step.node_id) == ({}, "a")


@pytest.mark.parametrize("to", ["c", "nothing", "done"])
def test_what_has_not_completed_is_no_place(to: str) -> None:
    run = line_of("a", "b", "c")
    with pytest.raises(Conflict) as refused:
        run.tell(RewindAsked(to))
    assert refused.value.code == "step_not_completed"
    assert [issue.pointer for issue in refused.value.issues] == ["/to"]


def test_what_was_undone_is_no_place_any_more() -> None:
    run = line_of("a", "b", "c")
    undone = run.list_steps("b")[0].ulid
    run.tell(RewindAsked("a"))
    with pytest.raises(Conflict, match="names no completed step"):
        run.tell(RewindAsked(undone))


def test_a_paused_run_goes_back_and_stays_paused() -> None:
    run = line_of("a", "b", "c")
    run.tell(PauseAsked())
    run.tell(RewindAsked("a"))
    assert run.instance.paused_at is not None
    assert list_ready(run) == []
    run.tell(ResumeAsked())
    drain(run)
    assert get_status(run) is COMPLETED


def test_a_failed_run_goes_back_and_is_open_again() -> None:
    run = line_of("a", "b", "c")
    run.claim()
    run.finish(Raised("no", is_retryable=False))
    assert get_status(run) is FAILED
    run.tell(RewindAsked("a"))
    instance = run.instance
    assert (get_status(run), instance.failure_code, instance.failed_node_id, instance.ended_at) == (
        RUNNING,
        *[None] * 3,
    )
    drain(run)
    assert get_status(run) is COMPLETED


@pytest.mark.parametrize("end", ["completed", "cancelled"])
def test_what_has_ended_otherwise_is_forked_instead(end: str) -> None:
    run = line_of("a", "b")
    if end == "cancelled":
        run.tell(CancelAsked())
    drain(run)
    with pytest.raises(Conflict, match="fork it instead") as refused:
        run.tell(RewindAsked("a"))
    assert refused.value.code == "instance_not_rewindable"
    assert get_status(fork(run, "a")) is RUNNING


def test_what_waits_is_given_up_and_signals_stay() -> None:
    run = Run(document(save("a"), save("ask", "wait", signal="go"), save("again", "wait", signal="go")))
    drain(run)
    run.signal("later", {"n": 1})
    run.signal("go", {"n": 1})
    run.tell(RewindAsked("a"))
    [wait] = run.waits
    assert (run.step.node_id, run.step.visit, wait.step_run_id) == ("ask", 2, run.step.id)
    assert [row.name for row in run.family.signals.values() if row.taken_at is None] == ["later"]


def test_a_running_result_comes_too_late() -> None:
    run = line_of("a", "b", "c")
    run.claim()
    running = run.step
    run.tell(RewindAsked("a"))
    assert run.finish(Complete(output={"late": True}), step=running).dropped == "stale_token"
    assert "c" not in get_state(run)


def test_a_step_that_had_begun_cleans_up() -> None:
    run = Run(document(save("a"), node("ask", "test.ask", signal="go")))
    run.work()
    run.claim()
    run.tell(RewindAsked("a"))
    assert [(hook.role, hook.node_id) for hook in run.hooks] == [(StepRole.CANCEL, "ask")]


def test_rounds_go_back_too() -> None:
    looped = node("again", "loop", over={"literal": ["x", "y", "z"]}, max_iterations=9)
    taken = save("a", value={"ref": "loops.again.item", "default": None})
    edges = [("start", "next", "again"), ("again", "body", "a"), ("a", "next", "again"), ("again", "done", "done")]
    run = Run(document(looped, taken, edges=edges))
    run.work()
    first = run.list_steps("a")[0]
    run.work()
    assert get_state(run)["a"]["value"] == "y"
    run.tell(RewindAsked(first.ulid))
    assert get_state(run)["a"]["value"] == "x"
    run.work()
    assert get_state(run)["a"]["value"] == "y"
    drain(run)
    assert (get_status(run), get_state(run)["a"]["value"]) == (COMPLETED, "z")


def test_what_was_undone_is_read_no_more() -> None:
    reads = save("c", value={"ref": "steps.b.output.value", "default": "nothing"})
    edges = [("start", "next", "a"), ("a", "yes", "b"), ("a", "no", "c"), ("b", "next", "c"), ("c", "next", "done")]
    run = Run(document(save("a", "test.fork"), save("b", value=1), reads, edges=edges))
    run.work()
    run.work()
    run.tell(RewindAsked("start"))
    run.claim()
    run.finish(Complete("no"))
    drain(run)
    assert get_state(run)["c"]["value"] == "nothing"


def test_the_transitions_and_writers_of_what_counts_with_the_step_before_it_are_rolled_back() -> None:
    run = Run(document(save("a"), save("b", counts=False), save("c"), save("d"), prune_state_after=2))
    for _ in range(3):
        run.work()
    run.tell(RewindAsked("b"))
    assert run.instance.transitions_count == 1
    run.work()
    assert (sorted(get_state(run)), run.instance.transitions_count) == (["a", "b", "c"], 2)
    run.work()
    assert (sorted(get_state(run)), run.instance.transitions_count) == (["c", "d"], 3)


def test_bodies_are_left_and_entered_anew() -> None:
    both = parallel("both", a=body(save("x")), b=body(save("y"), save("z")))
    run = Run(document(save("a"), both, save("b")))
    run.work()
    for name in ("x", "y"):
        run.claim(find(run, name))
        run.finish(Complete(output={"value": name}), step=find(run, name))
    run.tell(RewindAsked("a"))
    assert sorted(step.node_id for step in list_ready(run)) == ["x", "y"]
    drain(run)
    assert get_status(run) is COMPLETED
    assert sorted(get_state(run)) == ["a", "b", "x", "y", "z"]
    assert find_state_before(run, "b") == ["a", "x", "y", "z"]


def find_state_before(run: Run, name: str) -> list[str]:
    standing = replay(run.plan, run.memory.load(run.instance.id, is_backward=True).past.lines)  # type: ignore[union-attr]  # it was loaded
    index = next(i for i, each in enumerate(standing) if each.line.step and each.line.step.node_id == name)
    return sorted(standing[index - 1].position.state)


def test_a_container_is_a_place_with_all_that_its_bodies_wrote() -> None:
    both = parallel("both", a=body(save("x")), b=body(save("y")))
    run = Run(document(both, for_each([1, 2], body(node("item")), save={"key": "each"}), save("c"), save("d")))
    drain(run, choose=lambda ready: ready[0])
    other = fork(run, "each")
    assert sorted(get_state(other)) == ["each", "x", "y"]
    assert other.step.node_id == "c"


def test_pruning_goes_back_with_its_bookkeeping() -> None:
    run = line_of("a", "b", "c", "d", "e", prune_state_after=2)
    assert sorted(get_state(run)) == ["c", "d"]
    run.tell(RewindAsked("b"))
    assert sorted(get_state(run)) == ["a", "b"]
    drain(run)
    assert sorted(get_state(run)) == ["d", "e"]


def test_t_guard_1_transitions_go_back_too() -> None:
    run = line_of("a", "b", "c", limits={"max_transitions": 3})
    for _ in range(4):
        run.tell(RewindAsked("a"))
        run.work()
    drain(run)
    assert (get_status(run), run.instance.transitions_count) == (COMPLETED, 3)


def test_t_x_2_a_fork_and_what_it_came_from_end_on_their_own() -> None:
    run = line_of("a", "b", "c")
    before = get_state(run)
    other = fork(run, "a")
    assert (get_state(run), run.step.node_id) == (before, "c")
    assert (sorted(get_state(other)), other.step.node_id, other.step.visit) == (["a"], "b", 1)
    other.claim()
    other.finish(Complete(output={"value": "other"}))
    drain(other)
    drain(run)
    assert get_status(run) is get_status(other) is COMPLETED
    assert get_state(run)["b"] != get_state(other)["b"]
    [source], [made] = run.list_events(EventType.INSTANCE_FORKED), other.list_events(EventType.INSTANCE_FORKED)
    where = {"node": "a", "step": run.list_steps("a")[0].ulid}
    assert source.data == {"fork": OTHER, "to": where, "actor": {"user": "u"}}
    assert made.data == {"source": run.instance.ulid, "to": where, "actor": {"user": "u"}}
    assert other.instance.labels == [f"forked_from:{run.instance.ulid}"]
    assert other.instance.idempotency_digest is None


def test_a_fork_begins_behind_the_newest_step_and_may_be_rewound_like_any_run() -> None:
    run = line_of("a", "b", "c")
    other = fork(run)
    assert (other.step.node_id, other.instance.steps_count, other.instance.transitions_count) == ("c", 3, 2)
    other.tell(RewindAsked("a"))
    assert (sorted(get_state(other)), other.step.node_id) == (["a"], "b")
    keys = [step.idempotency_key for step in (*run.family.steps.values(), *other.family.steps.values())]
    assert len(keys) == len(set(keys))


def test_a_fork_reads_what_its_steps_came_to_before() -> None:
    run = Run(document(save("a"), save("b"), save("c", value={"ref": "steps.a.output.visit"})))
    run.work()
    run.work()
    other = fork(run)
    drain(other)
    assert get_state(other)["c"]["value"] == 1


def test_a_fork_of_a_fork_has_one_label() -> None:
    run = line_of("a", "b", "c")
    other = fork(run)
    other.tell(ForkAsked("01JCCCCCCCCCCCCCCCCCCCCCCC"))
    assert other.last.fork is not None
    assert other.last.fork.instance.labels == [f"forked_from:{OTHER}"]


def test_a_run_that_waits_is_forked_with_a_wait_of_its_own() -> None:
    run = Run(document(save("a"), save("ask", "wait", signal="go"), save("b")))
    run.work()
    other = fork(run)
    assert (get_status(other), other.step.node_id) == (WAITING, "ask")
    other.signal("go", {"n": 1})
    drain(other)
    assert (get_status(other), get_status(run)) == (COMPLETED, WAITING)


def test_a_fork_of_a_completed_run_completes_like_it() -> None:
    run = line_of("a", "b")
    drain(run)
    other = fork(run)
    assert (get_status(other), get_state(other), other.instance.result) == (
        COMPLETED,
        get_state(run),
        run.instance.result,
    )


def test_a_history_that_does_not_begin_with_a_start_tells_no_place() -> None:
    run = line_of("a", "b")
    run.family.events[0].type = EventType.INSTANCE_RESUMED
    with pytest.raises(Conflict) as refused:
        run.tell(RewindAsked("a"))
    assert refused.value.code == "position_unknown"


def test_t_log_2_what_a_step_added_to_the_state_is_what_it_returned() -> None:
    run = line_of("a", "b", "c", prune_state_after=2)
    drain(run)
    state: JsonObject = {}
    for event in run.list_events(EventType.STEP_COMPLETED):
        step = run.family.steps[event.step_run_id or 0]
        told = event.data or {}
        written = list_written(run.plan.nodes[step.node_id], step.output, told)
        assert written == ({} if step.node_id == "done" else {step.node_id: step.output})
        state = {key: value for key, value in {**state, **written}.items() if key not in list_removed(told)}
    assert state == get_state(run)
