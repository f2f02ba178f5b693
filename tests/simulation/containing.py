"""What must hold of containers and of runs below runs: what they count is what there is, and it enters once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import cast

from korak.core.changes import Changes
from korak.core.counters import Counters
from korak.core.rows import Scope, StepRun
from korak.model import DeliveryKind, EventType, JsonObject, ScopeStatus, StepStatus, WaitKind, WaitStatus
from tests.support.memory import Family, Memory

OPEN = (ScopeStatus.PENDING, ScopeStatus.RUNNING)


def check_containers(family: Family, live: Sequence[StepRun], changes: Changes) -> None:
    """One token a body that runs, and none in any other; bodies live only while their container does."""
    scopes = family.scopes.values()
    open_ = {scope.id: scope for scope in scopes if scope.status in OPEN}
    if not family.instance.is_ended:
        running = [None, *(key for key, row in open_.items() if row.status is ScopeStatus.RUNNING)]
        assert Counter(step.scope_id for step in live) == Counter(running)
    if not scopes:
        return
    containers = {step.id: step for step in live if step.counters is not None}
    mine: dict[int, list[Scope]] = {}
    for scope in scopes:
        mine.setdefault(scope.step_run_id, []).append(scope)
    for scope in open_.values():
        assert scope.step_run_id in containers, scope
    for step in containers.values():
        _check_counters(step, mine.get(step.id, []))
    for step in (*changes.steps, *changes.new_steps):
        if step.counters is not None and step.status is StepStatus.COMPLETED and step.id in family.steps:
            _check_output(family.steps[step.id], mine.get(step.id, []))


def _check_counters(step: StepRun, mine: Sequence[Scope]) -> None:
    counters = Counters.from_json(step.counters or {})
    told = Counter(scope.status for scope in mine)
    order = [scope.finish_order for scope in mine if scope.finish_order is not None]
    assert len(mine) == counters.created
    assert len(set(order)) == len(order)
    assert all(number < counters.order for number in order)
    if counters.verdict is None:
        assert counters.running <= counters.concurrency
        assert told[ScopeStatus.PENDING] == counters.created - counters.started, (told, counters)
        assert told[ScopeStatus.RUNNING] == counters.running
        assert told[ScopeStatus.COMPLETED] == counters.succeeded
        assert told[ScopeStatus.FAILED] == counters.failed
        assert told[ScopeStatus.COMPLETED] + told[ScopeStatus.FAILED] == counters.settled


def _check_output(step: StepRun, mine: Sequence[Scope]) -> None:
    """Each body's output is in its container's once, as it stands in its row."""
    done = sorted((row for row in mine if row.status is ScopeStatus.COMPLETED), key=lambda row: row.item_index or 0)
    output: Mapping[str, object] = step.output or {}
    if step.node_type == "for_each":
        results = cast("list[JsonObject]", output["results"])
        assert [(each["index"], each["output"]) for each in results] == [(row.item_index, row.output) for row in done]
        assert (output["succeeded"], output["settled"]) == (
            len(done),
            sum(row.finish_order is not None for row in mine if row.status is not ScopeStatus.CANCELLED),
        )
    elif step.node_type == "parallel":
        assert output == {row.name: row.output for row in done}


def check_kin(memory: Memory, family: Family, changes: Changes) -> None:
    """No start is lost or done twice; a wait for a child is settled by one end, which is the child's own."""
    if changes.outward is not None and changes.outward.children:
        count = cast("JsonObject", (family.instance.walk or {})["children"])["count"]
        assert len(memory.list_children(family.instance.id)) == count
    received = [
        ((event.data or {}).get("name"), (event.data or {}).get("source_id"))
        for event in changes.events
        if event.type is EventType.SIGNAL_RECEIVED
    ]
    for wait in (*changes.waits, *changes.new_waits):
        if wait.kind is WaitKind.CHILD:
            told = [row for row in family.signals.values() if row.wait_id == wait.id]
            assert all(row.kind is DeliveryKind.CHILD and row.name == wait.event_key for row in told)
            assert wait.event_key in memory.ulids
            if wait.status is WaitStatus.FIRED:
                heard = [row for row in told if (row.name, row.source_id) in received]
                assert [row.id for row in heard] == [max(row.id for row in told if row.taken_at == wait.fired_at)], told


HELD = (EventType.STEP_STARTED, EventType.STEP_RESUMED)


def check_pause(changes: Changes) -> None:
    """Nothing of a paused run begins."""
    if changes.before.instance.paused_at is not None and changes.instance.paused_at is not None:
        assert not any(event.type in HELD for event in changes.events), changes.events
