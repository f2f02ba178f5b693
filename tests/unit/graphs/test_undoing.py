"""Compensations and hooks of settings at publish: their type, their config and what they read."""

from __future__ import annotations

from typing import cast

import pytest

from korak.errors import Invalid
from korak.graphs.builder import graph, ref
from korak.graphs.checksum import checksum
from korak.graphs.freezing import freeze
from korak.graphs.planning import build
from korak.graphs.plans import Plan
from korak.graphs.validation import validate
from korak.model import Json, JsonObject, StepRole
from tests.support.catalogue import CATALOGUE, WITH_CONTAINERS

REFUSED = (("invalid_config", 0, "start"), ("invalid_config", 2, "done"))
CHARGE: JsonObject = {"type": "test.charge", "config": {"amount": 5}}


def make(hook: JsonObject | None = None, **settings: Json) -> JsonObject:
    """A graph whose node `a`, the second one, is undone by a hook."""
    built = graph("g").trigger("manual").node("a", "test.quote").save("quote").node("done", "end")
    made = built.edge("start", "a").edge("a", "done").settings(**settings).document()
    if hook is not None:
        cast("list[JsonObject]", made["nodes"])[1]["compensate"] = hook
    return made


def found(document: JsonObject) -> list[tuple[str, str, str | None]]:
    return [(issue.code, issue.pointer, issue.node) for issue in validate(document, CATALOGUE).issues]


def plan(document: JsonObject) -> Plan:
    assert validate(document, CATALOGUE).issues == ()
    return build(document, freeze(document, CATALOGUE))


@pytest.mark.parametrize(
    ("hook", "code", "pointer"),
    [
        ({"type": "test.nowhere"}, "unknown_type", "/type"),
        ({"type": "test.open", "type_version": 7}, "unknown_type", "/type_version"),
        ({"type": "trigger"}, "invalid_config", "/type"),
        ({"type": "set_field", "config": {"field": "state.x", "value": 1}}, "invalid_config", "/type"),
        ({"type": "wait", "config": {"for": 5}}, "invalid_config", "/type"),
        ({"type": "test.ask"}, "invalid_config", "/type"),
        ({"type": "test.charge", "config": {"amount": "much"}}, "invalid_config", "/config/amount"),
        ({"type": "test.charge", "config": {"amount": 0}}, "invalid_config", "/config/amount"),
        ({"type": "test.charge"}, "invalid_config", "/config/amount"),
        ({"type": "test.rude"}, "invalid_config", "/config"),
        ({"type": "test.open", "config": {"x": {"cel": "1 +"}}}, "invalid_expression", "/config/x/cel"),
        ({"type": "test.open", "config": {"x": ref("state.nothing")}}, "unknown_reference", "/config/x/ref"),
        ({"type": "test.open", "config": {"x": ref("item")}}, "unknown_reference", "/config/x/ref"),
        ({"type": "test.open", "timeout": 0}, "invalid_duration", "/timeout"),
        (
            {"type": "test.open", "retry": {"max_attempts": 2, "backoff": ["soon"]}},
            "invalid_duration",
            "/retry/backoff/0",
        ),
        ({"type": "test.open", "label": "x"}, "invalid_config", "/label"),
        ({"config": {}}, "invalid_config", ""),
    ],
)
def test_what_can_not_clean_up_is_refused(hook: JsonObject, code: str, pointer: str) -> None:
    assert found(make(hook)) == [(code, f"/nodes/1/compensate{pointer}", "a")]
    for member in ("on_cancel", "on_deadline"):
        assert found(make(**{member: hook})) == [(code, f"/settings/{member}{pointer}", None)]


def test_an_undo_reads_what_its_node_came_to() -> None:
    hook: JsonObject = {"type": "test.charge", "config": {"amount": ref("steps.a.output.total")}}
    assert found(make(hook)) == []
    later = graph("g").trigger("manual").node("a", "test.open").compensate("test.open", x=ref("steps.b.output"))
    later.node("b", "test.open").node("done", "end").edge("start", "a").edge("a", "b").edge("b", "done")
    assert found(later.document()) == [("reference_not_ancestor", "/nodes/1/compensate/config/x/ref", "a")]
    assert found(make(on_cancel={"type": "test.open", "config": {"x": ref("steps.a.output")}})) == []


def test_what_does_nothing_has_no_undo() -> None:
    document = make()
    for node in cast("list[JsonObject]", document["nodes"]):
        node["compensate"] = {"type": "test.open"}
    assert found(document) == [(code, f"/nodes/{place}/compensate", name) for code, place, name in REFUSED]


def test_a_container_and_what_is_in_it_can_be_undone() -> None:
    inner: JsonObject = {
        "id": "i",
        "type": "test.open",
        "compensate": {"type": "test.open", "config": {"x": ref("item")}},
    }
    each: JsonObject = {
        "id": "a",
        "type": "for_each",
        "config": {"items": [1]},
        "body": {"start": "i", "nodes": [inner]},
        "compensate": {"type": "test.open", "config": {"x": ref("steps.a.output.total")}},
    }
    document = make()
    cast("list[JsonObject]", document["nodes"])[1] = each
    assert [issue.pointer for issue in validate(document, WITH_CONTAINERS).issues] == []
    planned = build(document, freeze(document, WITH_CONTAINERS)).nodes["a"]
    assert planned.bodies
    assert planned.compensate is not None
    assert (planned.compensate.bodies, planned.compensate.targets) == (False, {})


def test_hooks_are_frozen_and_planned() -> None:
    hook: JsonObject = {**CHARGE, "retry": {"max_attempts": 7}, "timeout": 9, "queue": "undo"}
    document = make(hook, on_cancel={"type": "test.versioned", "type_version": 1}, on_deadline={"type": "test.open"})
    made = plan(document)
    undo = made.find("a", StepRole.COMPENSATE)
    assert undo is not None
    assert (undo.type, undo.type_version, undo.queue, undo.timeout) == ("test.charge", 1, "undo", 9)
    assert (undo.retry and undo.retry.max_attempts, undo.config.resolve({})) == (7, {"amount": 5})
    assert (made.has_compensations, made.cleans_up, made.settings.compensate_on_failure) == (True, True, False)
    on_cancel, on_deadline = (made.find("$", role) for role in (StepRole.ON_CANCEL, StepRole.ON_DEADLINE))
    assert on_cancel is made.settings.on_cancel
    assert (on_cancel and on_cancel.type_version, on_deadline and on_deadline.type) == (1, "test.open")
    assert made.find("a", StepRole.CANCEL) is made.nodes["a"]
    plain = plan(make(compensate_on_failure=True))
    assert (plain.has_compensations, plain.cleans_up, plain.find("a", StepRole.COMPENSATE)) == (False, False, None)


def test_a_hook_takes_the_retry_and_queue_of_its_type_and_the_settings() -> None:
    made = plan(make(CHARGE))
    undo = made.find("a", StepRole.COMPENSATE)
    assert undo is not None
    assert (undo.queue, undo.retry and undo.retry.max_attempts, undo.max_output) == ("payments", 4, 100_000)
    made = plan(make({"type": "test.open"}, queue="slow", retry={"max_attempts": 2}))
    undo = made.find("a", StepRole.COMPENSATE)
    assert undo is not None
    assert (undo.queue, undo.retry and undo.retry.max_attempts) == ("slow", 2)


def test_a_hook_is_part_of_the_checksum() -> None:
    told = {
        checksum(make()),
        checksum(make(CHARGE)),
        checksum(make(on_cancel=CHARGE)),
        checksum(make(on_deadline=CHARGE)),
    }
    assert len(told | {checksum(make(compensate_on_failure=True))}) == 5


def test_the_builder_says_it_once() -> None:
    built = graph("g").trigger("manual").node("a", "test.open").compensate("test.open")
    with pytest.raises(Invalid, match="twice"):
        built.compensate("test.open")
