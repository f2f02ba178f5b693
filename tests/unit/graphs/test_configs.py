"""What publish refuses of the config of a node, each at its pointer (spec 14, DESIGN 6)."""

from __future__ import annotations

import pytest

from korak.model import JsonObject
from tests.support.publishing import charge, check, configured, document, found, one


def test_more_rounds_than_the_limit() -> None:
    """LM-4."""
    node: JsonObject = {"id": "l", "type": "loop", "config": {"over": [1], "max_iterations": 1001}}
    raw = document(node, edges=["start l", "l body done", "l done done"])
    assert found(raw) == [("invalid_config", "/nodes/1/config/max_iterations")]


def test_a_config_against_its_schema() -> None:
    assert found(charge({"amount": "five"})) == [("invalid_config", "/nodes/1/config/amount")]
    assert found(charge({"colour": 1})) == [("invalid_config", "/nodes/1/config/colour")]


def test_a_value_form_stands_for_anything() -> None:
    assert found(charge({"amount": {"ref": "input.amount"}})) == []


def test_the_types_own_checks() -> None:
    """Spec 13.9."""
    assert found(charge({"amount": 0})) == [("invalid_config", "/nodes/1/config/amount")]
    assert found(charge({"after": "done"})) == [("invalid_config", "/nodes/1/config/after")]


def test_a_type_whose_own_check_breaks() -> None:
    issues = check(one({"type": "test.rude"})).issues
    assert [(issue.code, issue.pointer) for issue in issues] == [("invalid_config", "/nodes/1/config")]
    assert "RuntimeError" in issues[0].message


def test_a_type_that_can_not_tell_its_outcomes() -> None:
    assert found(one({"type": "test.lost"})) == [("invalid_config", "/nodes/1/config")]


def test_a_type_whose_schema_can_not_be_used() -> None:
    assert found(one({"type": "test.odd"})) == [("invalid_config", "/nodes/1/type")]


def test_a_node_id_that_is_not_there() -> None:
    assert ("edge_unknown_node", "/nodes/1/config/after") in found(charge({"after": "ghost"}))


@pytest.mark.parametrize(
    ("value", "code", "pointer"),
    [
        ({"ref": "a b"}, "invalid_value", "/nodes/1/config/x"),
        ({"ref": "nowhere.x"}, "invalid_value", "/nodes/1/config/x"),
        ({"template": "${"}, "invalid_value", "/nodes/1/config/x"),
        ({"cel": "1 +"}, "invalid_expression", "/nodes/1/config/x"),
    ],
)
def test_a_value_that_can_not_be_used(value: JsonObject, code: str, pointer: str) -> None:
    issues = found(configured({"x": value}))
    assert [issue_code for issue_code, _ in issues] == [code]
    assert issues[0][1].startswith(pointer)


def test_a_condition_that_can_not_be_used() -> None:
    node: JsonObject = {"id": "a", "type": "condition", "config": {"if": {"ref": "input.x", "op": "resembles"}}}
    issues = found(document(node, edges=["start a", "a true done", "a false done"]))
    assert issues
    assert issues[0][0] == "invalid_condition"
    assert issues[0][1].startswith("/nodes/1/config/if")


def test_a_pattern_in_a_condition_that_can_not_be_used() -> None:
    node: JsonObject = {"id": "a", "type": "condition", "config": {"if": {"cel": "input.x.matches('(')"}}}
    issues = found(document(node, edges=["start a", "a true done", "a false done"]))
    assert [code for code, _ in issues] in (["invalid_pattern"], ["invalid_expression"])


def test_secrets_stand_where_they_may() -> None:
    assert found(charge({"token": {"secret": "stripe"}})) == []
    assert found(charge({"note": {"secret": "stripe"}})) == [("secret_not_allowed", "/nodes/1/config/note/secret")]
    assert found(configured({"x": {"template": "${secret.stripe}"}}))[0][0] == "secret_not_allowed"
