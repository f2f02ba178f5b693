"""What publish refuses of the trigger and of the settings, each at its pointer (spec 14, DESIGN 6)."""

from __future__ import annotations

import pytest

from korak.model import Json, JsonObject
from tests.support.publishing import END, check, document, found, one


@pytest.mark.parametrize(
    ("member", "pointer"),
    [
        ({"settings": {"calendar": "office"}}, "/settings/calendar"),
        ({"settings": {"events": ["*"]}}, "/settings/events"),
    ],
)
def test_settings_of_later_versions_are_refused_by_name(member: JsonObject, pointer: str) -> None:
    issues = check(one({}, **member)).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", pointer)]
    assert "not available in this version" in issues[0].message


def triggered(config: JsonObject, **settings: Json) -> JsonObject:
    raw = document(edges=["start done"])
    trigger: JsonObject = {"id": "start", "type": "trigger", "config": config}
    return raw | {"nodes": [trigger, END]} | ({"settings": settings} if settings else {})


@pytest.mark.parametrize(
    ("inputs", "pointer"),
    [
        ({"n": "integer"}, "/nodes/0/config/inputs/n"),
        ({"n": {"type": "integer", "required": 1}}, "/nodes/0/config/inputs/n/required"),
        ({"n": {"type": "integer", "default": "x"}}, "/nodes/0/config/inputs/n/default"),
        ({"n": {"typo": "integer"}}, "/nodes/0/config/inputs/n"),
        (
            {"type": "object", "properties": {"n": {"type": "integer", "default": "x"}}},
            "/nodes/0/config/inputs/properties/n/default",
        ),
        ({"type": "object", "patternProperties": {}}, "/nodes/0/config/inputs"),
    ],
)
def test_inputs_that_can_not_be_used(inputs: JsonObject, pointer: str) -> None:
    issues = found(triggered({"on": "manual", "inputs": inputs}))
    assert len(issues) == 1
    assert issues[0][1].startswith(pointer)


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"n": {"type": "integer", "required": True, "minimum": 1}, "type": {"type": "string", "default": "x"}},
        {"type": "object", "properties": {"n": {"type": "integer", "default": 3}}, "required": ["n"]},
    ],
)
def test_inputs_that_can_be_used(inputs: JsonObject) -> None:
    assert found(triggered({"on": "manual", "inputs": inputs})) == []


@pytest.mark.parametrize("on", [{"cron": "* * * * *"}, {"webhook": True}, ["manual", {"webhook": True}]])
def test_an_actor_where_nobody_starts(on: Json) -> None:
    assert ("actor_requires_user", "/settings/actor") in found(triggered({"on": on}, actor="on_behalf_of"))


def test_on_behalf_of_who_starts() -> None:
    assert found(triggered({"on": "manual"}, actor="on_behalf_of")) == []


def test_unknown_timezone() -> None:
    assert found(one({}, settings={"timezone": "Europe/Nowhere"})) == [("invalid_config", "/settings/timezone")]
    assert found(one({}, settings={"timezone": "Europe/Ljubljana"})) == []


def test_limits_only_lower() -> None:
    """LM-1."""
    assert found(one({}, settings={"limits": {"max_steps": 200}})) == []
    assert found(one({}, settings={"limits": {"max_steps": 201}})) == [("invalid_config", "/settings/limits/max_steps")]
    assert found(one({}, settings={"limits": {"max_starts_per_minute": 1}})) == []


def test_the_label() -> None:
    assert found(one({}, settings={"label": {"template": "Order ${input.id}"}})) == []
    assert found(one({}, settings={"label": {"ref": "state.ghost"}})) == [("unknown_reference", "/settings/label/ref")]
    assert found(one({}, settings={"label": {"template": "${"}}))[0][0] == "invalid_value"
