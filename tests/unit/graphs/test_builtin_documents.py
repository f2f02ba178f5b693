"""Documents made of the real built-in types: they pass, are frozen and can be run."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from korak.graphs import hygiene
from korak.graphs.builder import GraphBuilder, graph, ref
from korak.graphs.freezing import freeze
from korak.graphs.planning import build
from korak.graphs.validation import validate
from korak.model import Json, JsonObject
from korak.steps.registry import Registry

REGISTRY = Registry()


def every_type() -> GraphBuilder:
    built = (
        graph("order")
        .trigger("manual", inputs={"url": {"type": "string", "required": True}, "lines": {"type": "array"}})
        .node("call", "webhook", url=ref("input.url"), headers={"Authorization": {"template": "Bearer ${secret.shop}"}})
        .retry(3, [1])
        .timeout(10)
        .node("keep", "set_field", field="state.status", value=ref("steps.call.output.status"))
        .node("ok", "condition", {"if": {"ref": "state.status", "op": "lt", "value": 300}})
        .node("way", "branch", cases=[{"key": "big", "if": {"cel": "size(input.lines) > 10"}}])
        .node("around", "loop", over=ref("input.lines"), max_iterations=100)
        .node("nap", "delay", {"for": "PT1S"})
        .node("settled", "wait", event="payment.settled", match={"order": ref("input.url")}, timeout="P1D")
        .node("go", "wait", signals=["a", "b"], mode="any")
        .node("done", "end", result=ref("state"))
    )
    edges = "start call,call keep,keep ok,ok true way,ok false done,way big around,way default done,around body nap"
    more = "nap around,around done settled,settled go,settled timed_out done,go done,call error done"
    for edge in f"{edges},{more}".split(","):
        source, *outcome, target = edge.split()
        built.edge(source, target, *outcome)
    return built


def waiting_for_a_group(started: Json, awaited: str, inside: bool = False) -> JsonObject:
    """A document that starts runs under a group, in a body if `inside`, and waits for those of a group."""
    config: JsonObject = {"definition": "child", "items": [1], "group": started}
    start: JsonObject = {"id": "kids", "type": "start_workflows", "config": config}
    if inside:
        start = {"id": "all", "type": "parallel", "branches": {"a": {"start": "kids", "nodes": [start], "edges": []}}}
    wait: JsonObject = {"id": "them", "type": "wait_workflows", "config": {"group": awaited}}
    trigger: JsonObject = {"id": "start", "type": "trigger", "config": {"on": "manual"}}
    ids = ["start", str(start["id"]), "them", "done"]
    edges: list[Json] = [{"from": one, "to": next_} for one, next_ in pairwise(ids)]
    nodes: list[Json] = [trigger, start, wait, {"id": "done", "type": "end"}]
    return {"schema": "korak.graph/v1", "key": "g", "nodes": nodes, "edges": edges}


@pytest.mark.parametrize("inside", [False, True])
def test_a_group_that_no_step_starts_is_not_waited_for(inside: bool) -> None:
    """It would always be empty: a wait for all of it would go on at once, as if all had come."""
    assert validate(waiting_for_a_group("agents", "agents", inside), REGISTRY).issues == ()
    [issue] = validate(waiting_for_a_group("agents", "agent", inside), REGISTRY).issues
    assert (issue.code, issue.pointer, issue.node) == ("unknown_group", "/nodes/2/config/group", "them")
    assert issue.message == "No step here starts runs under the group agent."


def test_every_type_can_be_published_and_run() -> None:
    document = every_type().document()
    report = validate(document, REGISTRY)
    assert report.issues == ()
    assert report.warnings == ()
    plan = build(document, hygiene.loads(hygiene.dumps(freeze(document, REGISTRY))))
    assert plan.signals == frozenset({"payment.settled", "a", "b"})
    assert plan.referenced == {"call"}
    assert {name for name, node in plan.nodes.items() if node.repeats} == {"around", "nap"}
    assert not plan.nodes["call"].is_pure
    assert plan.nodes["settled"].outcomes == {"next": True, "timed_out": True}


@pytest.mark.parametrize("on", [{"event": "x"}, {"cron": "* * * * *"}, {"webhook": True}, ["manual", {"event": "x"}]])
def test_triggers_of_later_versions(on: Json) -> None:
    """They are well formed and nothing serves them yet."""
    trigger: JsonObject = {"id": "start", "type": "trigger", "config": {"on": on}}
    document: JsonObject = {
        "schema": "korak.graph/v1",
        "key": "x",
        "nodes": [trigger, {"id": "done", "type": "end"}],
        "edges": [{"from": "start", "to": "done"}],
    }
    issues = validate(document, REGISTRY).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", "/nodes/0/config/on")]


def test_a_timeout_on_a_wait_has_a_hint() -> None:
    built = graph("x").trigger().node("w", "wait", signal="go").timeout(5).node("done", "end")
    issues = validate(built.edge("start", "w").edge("w", "done").document(), REGISTRY).issues
    assert [issue.pointer for issue in issues] == ["/nodes/1/timeout"]
    assert "config.timeout" in issues[0].message


@pytest.mark.parametrize("key", ["approval", "code", "notify", "decision"])
def test_types_of_later_versions_are_unknown(key: str) -> None:
    document = graph("x").trigger().node("a", key).edge("start", "a").document()
    assert [issue.code for issue in validate(document, REGISTRY).issues] == ["unknown_type"]


@pytest.mark.parametrize(
    ("kind", "config", "pointer"),
    [
        ("loop", {"over": [1], "max_iterations": {"ref": "input.n"}}, "/max_iterations"),
        ("loop", {"over": [1], "max_iterations": {"literal": 3}}, "/max_iterations"),
        ("loop", {"over": [1], "max_iterations": 3, "on_max": {"ref": "input.n"}}, "/on_max"),
        ("wait", {"signals": ["a", "b"], "mode": {"ref": "input.n"}}, "/mode"),
        ("wait", {"event": "e", "since": {"cel": "input.n"}}, "/since"),
        ("wait", {"signal": "s", "correlation": {"template": "${input.n}"}}, "/correlation"),
        ("branch", {"cases": {"ref": "input.n"}}, "/cases"),
        ("branch", {"cases": [{"key": {"ref": "input.n"}, "if": {"cel": "true"}}]}, "/cases/0/key"),
        ("set_field", {"field": {"ref": "input.n"}, "value": 1}, "/field"),
        ("end", {"terminate": {"ref": "input.n"}}, "/terminate"),
    ],
)
def test_what_a_pure_type_reads_as_it_is_written_is_no_value(kind: str, config: JsonObject, pointer: str) -> None:
    """A form would be found out when the instance is there: it would fail as if somebody had edited its graph."""
    built = graph("x").trigger().node("a", kind, config).edge("start", "a").node("done", "end")
    issues = validate(built.document(), REGISTRY).issues
    assert ("invalid_config", f"/nodes/1/config{pointer}") in [(issue.code, issue.pointer) for issue in issues]


def waiting(**config: Any) -> GraphBuilder:
    """One wait for a signal."""
    built = graph("x").trigger().node("done", "end").node("a", "wait", {"signal": "s", **config})
    return built.edge("start", "a").edge("a", "done")


@pytest.mark.parametrize(
    ("member", "written", "pointer"),
    [
        ("match", {"a..b": 1}, "/match/a..b"),
        ("match", {"order.id": 1, "": 1}, "/match/"),
        ("match", {"a b": 1}, "/match/a b"),
        ("match", {"x~/y": 1}, "/match/x~0~1y"),
        ("match", {"literal": {"a..b": 1}}, "/match/literal/a..b"),
        ("correlation", "a..b", "/correlation"),
        ("correlation", "_hidden", "/correlation"),
    ],
)
def test_what_must_stand_in_a_payload_is_told_by_paths(member: str, written: Any, pointer: str) -> None:
    """A wait for what no payload can have would fail, or wait for ever, when the instance is there."""
    built = waiting(**{member: written})
    issues = validate(built.document(), REGISTRY).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", f"/nodes/2/config{pointer}")]


@pytest.mark.parametrize("written", [{"a.b": 1}, {'a["b c"][0]': 1}, {"literal": {"ref": 1}}, {"cel": "{'a': 1}"}])
def test_any_path_may_stand_there(written: Any) -> None:
    built = waiting(match=written)
    assert validate(built.document(), REGISTRY).issues == ()
