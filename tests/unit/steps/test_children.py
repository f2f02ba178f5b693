"""The types that start other runs and wait for them: their configs, and what they ask of the engine."""

from __future__ import annotations

from typing import Any

import pytest

from korak.errors import StepFailed
from korak.graphs.builder import graph
from korak.graphs.validation import validate
from korak.model import Json, JsonObject, SignalKind
from korak.steps.builtin.start_workflow import StartWorkflow, StartWorkflows
from korak.steps.builtin.wait_workflows import WaitWorkflows
from korak.steps.children import Awaiting, Collecting, Starting, collect, read_ulids
from korak.steps.registry import Registry
from korak.steps.results import Complete, Fail
from korak.steps.waits import Signal
from tests.support.entries import Context

ID = "01JAAAAAAAAAAAAAAAAAAAAAAA"
OTHER = "01JBBBBBBBBBBBBBBBBBBBBBBB"
REGISTRY = Registry()


async def handle(kind: Any, config: JsonObject, **rest: Any) -> Any:
    return await kind.handle(Context.of(config, **rest))


async def resume(kind: Any, config: JsonObject, signal: Signal, parked: JsonObject) -> Any:
    return await kind.resume(Context(config=config, parked=parked), signal)


@pytest.mark.parametrize(
    ("kind", "config", "pointers"),
    [
        ("start_workflow", {"definition": "child"}, []),
        ("start_workflow", {"definition": {"ref": "input.which"}, "version": 3, "wait": True, "timeout": "PT1H"}, []),
        ("start_workflow", {}, ["/definition"]),
        ("start_workflow", {"definition": " "}, ["/definition"]),
        ("start_workflow", {"definition": "child", "timeout": 5}, ["/timeout"]),
        ("start_workflow", {"definition": "child", "version": 1, "checksum": "0" * 64}, ["/checksum"]),
        ("start_workflow", {"definition": "child", "checksum": "short"}, ["/checksum"]),
        ("start_workflows", {"definition": "child", "items": {"ref": "input.items"}}, []),
        ("start_workflows", {"definition": "child", "items": [1, {"a": 2}], "group": "g"}, []),
        ("start_workflows", {"definition": "child"}, ["/items"]),
        ("start_workflows", {"definition": "child", "items": 3}, ["/items"]),
        ("start_workflows", {"definition": "child", "items": {"literal": [3]}}, []),
        ("start_workflows", {"definition": "child", "items": {"literal": 3}}, ["/items"]),
        ("start_workflows", {"definition": "child", "items": {"literal": {"ref": "input.items"}}}, ["/items"]),
        ("start_workflows", {"definition": "child", "items": [], "payload_key": "_own"}, ["/payload_key"]),
        ("start_workflows", {"definition": "child", "items": [], "wait": True}, ["/wait"]),
        ("wait_workflows", {"ids": [ID], "mode": "any"}, []),
        ("wait_workflows", {"group": "g", "mode": "quorum", "quorum": 2}, []),
        ("wait_workflows", {}, [""]),
        ("wait_workflows", {"ids": [ID], "group": "g"}, [""]),
        ("wait_workflows", {"ids": [ID], "mode": "quorum"}, ["/quorum"]),
        ("wait_workflows", {"ids": [ID], "quorum": 2}, ["/quorum"]),
        ("wait_workflows", {"ids": [ID], "mode": "quorum", "quorum": 2}, ["/quorum"]),
        ("wait_workflows", {"ids": ID, "mode": "quorum", "quorum": 2}, ["/quorum"]),
        ("wait_workflows", {"ids": [ID, ID], "mode": "quorum", "quorum": 2}, ["/quorum"]),
        ("wait_workflows", {"ids": [ID, {"ref": "input.id"}], "mode": "quorum", "quorum": 2}, []),
        ("wait_workflows", {"ids": [ID], "mode": "quorum", "quorum": 1}, []),
        ("wait_workflows", {"ids": [ID], "mode": "quorum", "quorum": 0}, ["/quorum"]),
        ("wait_workflows", {"ids": [ID], "mode": "some"}, ["/mode"]),
    ],
)
def test_configs_at_publish(kind: str, config: JsonObject, pointers: list[str]) -> None:
    built = graph("x").trigger().node("a", kind, config).edge("start", "a").node("done", "end").edge("a", "kids")
    built = built.node("kids", "start_workflows", definition="child", items=[], group="g").edge("kids", "done")
    if "timeout" in config:
        built = built.edge("a", "done", outcome="timed_out")
    issues = validate(built.document(), REGISTRY).issues
    where = {issue.pointer.removeprefix("/nodes/1/config") for issue in issues}
    assert where == set(pointers), issues


async def test_one_run_is_asked_for() -> None:
    config: JsonObject = {
        "definition": "child",
        "version": 2,
        "inputs": {"ref": "input"},
        "without": ["b"],
        "wait": True,
    }
    asked = await handle(StartWorkflow(), config, input={"a": 1, "b": 2, "_c": 3})
    assert asked == Starting("child", ({"a": 1},), "instance", number=2, is_single=True, awaits=True)


async def test_a_page_of_runs_is_asked_for_and_then_the_next_one() -> None:
    """T-START-1: behind those that this visit has started."""
    config: JsonObject = {"definition": "child", "items": list[Json](range(700)), "group": "g", "inputs": {"x": 1}}
    first = await handle(StartWorkflows(), config)
    assert (len(first.inputs), first.rest, first.group, first.inputs[0]) == (500, 200, "g", {"x": 1, "item": 0})
    before: list[Json] = [f"R{number}" for number in range(500)]
    for kind in (SignalKind.PROBE, SignalKind.TIMER):
        second = await resume(StartWorkflows(), config, Signal(kind), {"ids": before})
        assert (len(second.inputs), second.rest, len(second.before)) == (200, 0, 500)
        assert second.inputs[0] == {"x": 1, "item": 500}


@pytest.mark.parametrize("items", ["text", 3, {"a": 1}])
async def test_what_is_no_list_is_refused(items: Json) -> None:
    with pytest.raises(StepFailed, match="a list is expected"):
        await handle(StartWorkflows(), {"definition": "child", "items": {"literal": items}})


async def test_who_is_waited_for() -> None:
    asked = await handle(WaitWorkflows(), {"ids": {"ref": "input.ids"}, "mode": "any"}, input={"ids": [ID, ID.lower()]})
    assert asked == Awaiting((ID,), mode="any")
    grouped = await handle(WaitWorkflows(), {"group": "g", "mode": "quorum", "quorum": 2})
    assert grouped == Awaiting(group="g", mode="quorum", quorum=2)


async def test_what_woke_it_is_collected_or_fails() -> None:
    """T-DEP-5"""
    config: JsonObject = {"ids": [ID], "mode": "all"}
    done = await resume(WaitWorkflows(), config, Signal(SignalKind.ENDED, payload={"completed": 1}), {"ids": [ID]})
    assert done == Collecting((ID,))
    told: JsonObject = {"impossible": "the run X is failed"}
    failed = await resume(WaitWorkflows(), config, Signal(SignalKind.ENDED, payload=told), {"ids": [ID]})
    assert failed == Fail("wait_impossible", params={"pointer": "/ids", "detail": "the run X is failed"})
    late = await resume(WaitWorkflows(), config, Signal(SignalKind.TIMEOUT), {"ids": [ID]})
    assert late == Complete("timed_out", {})


@pytest.mark.parametrize("given", [None, 3, [3], [""], {"a": 1}])
def test_ids_that_are_none(given: Json) -> None:
    """A misspelt path isn't an empty list."""
    with pytest.raises(StepFailed, match="the id of a run"):
        read_ulids(given)


@pytest.mark.parametrize(
    ("wanted", "output"),
    [
        (Collecting((ID,)), {"a": 1}),
        (Collecting((OTHER,)), {"result": 5}),
        (Collecting((ID, OTHER)), {ID: {"a": 1}, OTHER: 5}),
        (Collecting((OTHER, ID), "any"), {OTHER: 5}),
        (Collecting((ID, OTHER), merges=True), {"a": 1, "result": 5}),
        (Collecting((ID, "GONE")), {ID: {"a": 1}}),
    ],
)
def test_what_several_runs_come_to(wanted: Collecting, output: JsonObject) -> None:
    assert collect(wanted, {ID: {"a": 1}, OTHER: 5}) == output
