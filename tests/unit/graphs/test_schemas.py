"""Config schemas (spec 13.4; ST-3: an unsupported keyword is refused by name)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from korak.graphs.paths import Malformed
from korak.graphs.schemas import BUILTIN_DEFS, MAX_ISSUES, check_schema, compile_schema
from tests.unit.graphs.test_hygiene import CLEAN

ORDER: Any = {
    "type": "object",
    "title": "Order",
    "properties": {
        "order": {"type": "string", "minLength": 1, "description": "Which", "x-korak-owner-specific": True},
        "count": {"type": "integer", "minimum": 1, "default": 1, "examples": [2]},
        "if": {"$ref": "#/$defs/condition"},
        "after": {"$ref": "#/$defs/duration"},
        "any": {"$ref": "#/$defs/value"},
        "to": {"$ref": "#/$defs/parties"},
        "url": {"type": "string", "x-korak-secret": True},
        "headers": {"type": "object", "additionalProperties": {"type": "string"}, "x-korak-secret": True},
        "mode": {"enum": ["all", "any"]},
        "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}},
    },
    "$defs": {"row": {"type": "object", "properties": {"sku": {"type": "string", "pattern": "^[a-z]+$"}}}},
    "required": ["order"],
    "additionalProperties": False,
}


def nested(depth: int) -> Any:
    schema: Any = {}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


def test_the_subset_is_accepted() -> None:
    assert check_schema(ORDER) == []
    assert check_schema(nested(32)) == []


@pytest.mark.parametrize(
    ("schema", "code", "pointer", "keyword"),
    [
        ({"patternProperties": {}}, "invalid_schema", "/patternProperties", "patternProperties"),
        ({"properties": {"a": {"if": {}}}}, "invalid_schema", "/properties/a/if", "if"),
        ({"items": {"not": {}}}, "invalid_schema", "/items/not", "not"),
        ({"$id": "x"}, "invalid_schema", "/$id", "$id"),
        ({"$dynamicRef": "#x"}, "invalid_schema", "/$dynamicRef", "$dynamicRef"),
        ({"x-other": 1}, "invalid_schema", "/x-other", "x-other"),
        ({"$ref": "https://example.com/x"}, "invalid_keyword", "/$ref", "$ref"),
        ({"$ref": "other.json#/a"}, "invalid_keyword", "/$ref", "$ref"),
        ({"$ref": "#/$defs/nope"}, "invalid_keyword", "/$ref", "$ref"),
        ({"$ref": "#/properties/a"}, "invalid_keyword", "/$ref", "$ref"),
        ({"$ref": 5}, "invalid_keyword", "/$ref", "$ref"),
        ({"pattern": "(?=a)"}, "invalid_pattern", "/pattern", "pattern"),
        ({"anyOf": [{"pattern": "("}]}, "invalid_pattern", "/anyOf/0/pattern", "pattern"),
        ({"pattern": "x" * 2000}, "invalid_pattern", "/pattern", "pattern"),
        ({"pattern": 5}, "invalid_keyword", "/pattern", "pattern"),
        ({"format": "email"}, "invalid_keyword", "/format", "format"),
        ({"type": "strng"}, "invalid_keyword", "/type", "type"),
        ({"type": []}, "invalid_keyword", "/type", "type"),
        ({"type": {"a": 1}}, "invalid_keyword", "/type", "type"),
        ({"enum": []}, "invalid_keyword", "/enum", "enum"),
        ({"required": "a"}, "invalid_keyword", "/required", "required"),
        ({"required": [1]}, "invalid_keyword", "/required", "required"),
        ({"minLength": -1}, "invalid_keyword", "/minLength", "minLength"),
        ({"minLength": True}, "invalid_keyword", "/minLength", "minLength"),
        ({"minimum": "1"}, "invalid_keyword", "/minimum", "minimum"),
        ({"multipleOf": 0}, "invalid_keyword", "/multipleOf", "multipleOf"),
        ({"uniqueItems": 1}, "invalid_keyword", "/uniqueItems", "uniqueItems"),
        ({"properties": []}, "invalid_keyword", "/properties", "properties"),
        ({"properties": {"a": 1}}, "invalid_keyword", "/properties/a", "schema"),
        ({"items": True}, "invalid_keyword", "/items", "schema"),
        ({"additionalProperties": 5}, "invalid_keyword", "/additionalProperties", "schema"),
        ({"oneOf": []}, "invalid_keyword", "/oneOf", "oneOf"),
        ({"allOf": {}}, "invalid_keyword", "/allOf", "allOf"),
        ({"title": 1}, "invalid_keyword", "/title", "title"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "invalid_keyword", "/$schema", "$schema"),
        (nested(33), "invalid_keyword", "/properties/a" * 33, "depth"),
        ([], "invalid_keyword", "", "schema"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_st3_what_is_not_in_the_subset_is_named(schema: Any, code: str, pointer: str, keyword: str) -> None:
    issue = check_schema(schema)[0]
    assert (issue.code, issue.pointer, issue.params["keyword"]) == (code, pointer, keyword)
    assert issue.message
    if isinstance(schema, dict):
        with pytest.raises(Malformed):
            compile_schema(schema)


def test_a_schema_nested_without_end_is_refused() -> None:
    assert check_schema(nested(5000))[0].params["keyword"] == "depth"


def test_a_schema_with_too_many_parts_is_refused() -> None:
    issue = check_schema({"properties": {str(number): {} for number in range(10_000)}})[0]
    assert issue.params["keyword"] == "depth"


def test_issues_about_a_schema_are_bounded() -> None:
    assert len(check_schema({f"k{number}": 1 for number in range(1000)})) == MAX_ISSUES


@pytest.mark.parametrize(
    ("value", "pointer", "keyword", "expected"),
    [
        ({}, "/order", "required", None),
        ({"order": 5}, "/order", "type", "string"),
        ({"order": ""}, "/order", "minLength", 1),
        ({"order": "x", "count": 0}, "/count", "minimum", 1),
        ({"order": "x", "count": True}, "/count", "type", "integer"),
        ({"order": "x", "count": 1.5}, "/count", "type", "integer"),
        ({"order": "x", "nope": 1}, "/nope", "additionalProperties", False),
        ({"order": "x", "mode": "some"}, "/mode", "enum", ["all", "any"]),
        ({"order": "x", "rows": [{"sku": "a"}, {"sku": "A"}]}, "/rows/1/sku", "pattern", "^[a-z]+$"),
        ({"order": "x", "rows": [5]}, "/rows/0", "type", "object"),
        ({"order": "x", "to": [{"role": "cfo"}, {"boss": 1}]}, "/to/1", "oneOf", None),
        ({"order": "x", "after": "soon"}, "/after", "duration", "duration"),
        ({"order": "x", "if": {"xor": []}}, "/if/xor", "condition", "condition"),
        ({"order": "x", "headers": {"a": 1}}, "/headers/a", "type", "string"),
        ([], "", "type", "object"),
    ],
    ids=str,
)
def test_a_resolved_value_is_checked(value: Any, pointer: str, keyword: str, expected: Any) -> None:
    (issue,) = compile_schema(ORDER).check(value, code="invalid_input")
    assert (issue.code, issue.pointer) == ("invalid_input", pointer)
    assert (issue.params["keyword"], issue.params["expected"]) == (keyword, expected)
    assert issue.params["detail"]
    assert issue.message


def test_a_right_value_has_no_issues() -> None:
    value: Any = {
        "order": "x",
        "count": 2.0,
        "if": {"ref": "state.x", "op": "eq", "value": 1},
        "after": "PT1H",
        "any": [None, {"ref": 5}],
        "to": [
            {"role": "cfo"},
            {"triggered_by": True, "id": "u1", "type": "user"},
            {"user": 42},
            {"field": "subject.boss"},
        ],
        "url": {"secret": "hook"},
        "headers": {"authorization": {"secret": "token"}, "x": "y"},
        "mode": "all",
        "rows": [{"sku": "a", "more": 1}],
    }
    assert compile_schema(ORDER).check(value) == []


def test_a_secret_is_a_string_only_where_it_may_stand() -> None:
    schema = compile_schema(ORDER)
    assert schema.secret_members == {"url", "headers"}
    (issue,) = schema.check({"order": {"secret": "token"}})
    assert issue.pointer == "/order"


def test_no_issue_repeats_the_value() -> None:
    schema = compile_schema({"properties": {"a": {"type": "integer"}, "b": {"enum": [1]}, "c": {"pattern": "^x$"}}})
    issues = schema.check({"a": "hunter2", "b": "hunter2", "c": "hunter2"})
    assert len(issues) == 3
    assert "hunter2" not in str([issue.to_json() for issue in issues])


@pytest.mark.parametrize(
    "config",
    [
        {"order": {"ref": "input.order"}},
        {"order": {"cel": "input.order + 'x'"}},
        {"order": {"template": "A-${input.n}"}},
        {"order": {"relative": {"base": "now", "offset": 1}}},
        {"order": {"literal": "x"}},
        {"order": "x", "count": {"ref": "input.n", "default": 1}},
        {"order": "x", "mode": {"ref": "input.mode"}, "rows": {"cel": "state.rows"}},
        {"order": "x", "rows": [{"ref": "item"}, {"sku": {"ref": "item.sku"}}]},
        {"order": "x", "to": [{"user": {"ref": "input.user"}}, {"ref": "state.party"}]},
        {"order": "x", "after": {"ref": "input.delay"}},
        {"order": "x", "after": {"days": 2}},
        {"order": "x", "after": {"literal": 5}},
        {"order": "x", "if": {"cel": "state.total > 1"}},
        {"order": "x", "if": {"all": [{"ref": "state.x", "op": "eq", "value": {"ref": "input.y"}}]}},
        {"order": "x", "any": {"a": [{"cel": "1"}]}},
        {"order": "x", "url": {"secret": "hook"}, "headers": {"a": {"template": "Bearer ${secret.token}"}}},
    ],
    ids=str,
)
def test_a_config_may_hold_forms_anywhere(config: Any) -> None:
    assert compile_schema(ORDER).check_config(config) == []


@pytest.mark.parametrize(
    ("config", "code", "pointer"),
    [
        ({"order": {"literal": 5}}, "invalid_config", "/order"),
        ({"order": "x", "count": {"template": "5"}}, "invalid_config", "/count"),
        ({"order": "x", "count": {"relative": {"base": "now", "offset": 1}}}, "invalid_config", "/count"),
        ({"order": "x", "rows": [{"sku": "A"}, {"ref": "item"}]}, "invalid_config", "/rows/0/sku"),
        ({"order": {"cel": "1 +"}}, "invalid_expression", "/order/cel"),
        ({"order": {"ref": "nowhere.x"}}, "invalid_value", "/order/ref"),
        ({"order": "x", "any": [{"ref": 5}]}, "invalid_value", "/any/0/ref"),
        ({"order": "x", "if": {"cel": "1 +"}}, "invalid_expression", "/if/cel"),
        ({"order": "x", "if": {"ref": "state.x", "op": "is"}}, "invalid_condition", "/if/op"),
        ({"order": "x", "if": {"literal": True}}, "invalid_condition", "/if/literal"),
        ({"order": "x", "if": True}, "invalid_condition", "/if"),
        ({"order": "x", "after": "soon"}, "invalid_duration", "/after"),
        ({"order": "x", "after": {"literal": "soon"}}, "invalid_duration", "/after"),
        ({"order": "x", "after": {"business": "P2D"}}, "invalid_duration", "/after/business"),
        ({"order": {"secret": "token"}}, "secret_not_allowed", "/order/secret"),
        ({"order": {"template": "${secret.token}"}}, "secret_not_allowed", "/order/template"),
        ({"order": "x", "any": {"deep": [{"secret": "token"}]}}, "secret_not_allowed", "/any/deep/0/secret"),
        ({"ref": "input.x"}, "invalid_config", "/order"),
    ],
    ids=str,
)
def test_a_config_is_checked_where_it_is_literal(config: Any, code: str, pointer: str) -> None:
    issues = compile_schema(ORDER).check_config(config)
    assert (code, pointer) in [(issue.code, issue.pointer) for issue in issues]


def test_nothing_is_said_twice() -> None:
    (issue,) = compile_schema(ORDER).check_config({"order": "x", "if": {"cel": "1 +"}})
    assert issue.code == "invalid_expression"


def test_a_config_whose_members_are_called_like_a_form_is_no_form() -> None:
    schema = compile_schema({"type": "object", "properties": {"ref": {"type": "integer"}}, "required": ["ref"]})
    assert schema.check_config({"ref": 5}) == []
    assert schema.check_config({"ref": "x"})[0].pointer == "/ref"


def test_one_of_several_is_enough_while_forms_are_open() -> None:
    def branch(kind: str) -> Any:
        return {"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]}

    schema = compile_schema({"properties": {"m": {"oneOf": [branch("string"), branch("integer")]}}})
    assert schema.check_config({"m": {"x": {"ref": "input.x"}}}) == []
    assert schema.check_config({"m": {"x": None}})[0].pointer == "/m"
    assert schema.check_config({"m": {"x": {"template": "a"}}}) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("date", ["2028-02-29"], ["2026-02-29", "20260101", "2026-1-1", "2026-01-01T00:00:00Z", ""]),
        (
            "date-time",
            ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+02:00"],
            ["2026-01-01T00:00:00", "2026-01-01", "x"],
        ),
        ("duration", ["PT1H", "P1M"], ["1h", "", "P"]),
        ("timezone", ["Europe/Ljubljana", "UTC"], ["Mars/Olympus", "../x", ""]),
        (
            "cron",
            ["0 9 * * 1-5", "*/5 * * * *", "0 0 1 jan *"],
            ["0 9 * *", "61 * * * *", "@daily", "* * * * * *", "x"],
        ),
        ("field-path", ["state.x", 'a["b c"][0]'], ["", "a..b", "a b"]),
        ("node-id", ["price", "a_1"], ["Price", "1a", "a-b", "a" * 65, "a\n"]),
    ],
)
def test_formats(name: str, right: list[str], wrong: list[str]) -> None:
    schema = compile_schema({"format": name})
    assert [text for text in right if schema.check(text)] == []
    assert [text for text in wrong if not schema.check(text)] == []
    assert schema.check(5) == []


@pytest.mark.parametrize(
    ("schema", "right", "wrong"),
    [
        ({"type": ["string", "null"]}, [None, "x"], [1, []]),
        ({"const": {"a": 1}}, [{"a": 1.0}], [{"a": True}, {}]),
        ({"multipleOf": 0.01}, [19.99, 1, 1e300], [0.001]),
        ({"multipleOf": 3}, [9, 0, -3, "x"], [10, 9.5]),
        ({"uniqueItems": True}, [[1, "1", True], [], "xx"], [[1, 1.0], [{"a": [1]}, {"a": [1]}]]),
        ({"exclusiveMinimum": 0, "exclusiveMaximum": 1}, [0.5], [0, 1]),
        ({"minItems": 1, "maxItems": 2}, [[1]], [[], [1, 2, 3]]),
        ({"maxLength": 2}, ["žš"], ["abc"]),
        ({"anyOf": [{"type": "string"}, {"minimum": 5}]}, ["x", 6], [4]),
        ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, [1.5], [0, 3]),
        ({"additionalProperties": {"type": "integer"}, "properties": {"a": {}}}, [{"a": "x", "b": 1}], [{"b": "x"}]),
        ({"$ref": "#/$defs/field"}, ["state.x"], ["state..x"]),
    ],
    ids=str,
)
def test_keywords(schema: Any, right: list[Any], wrong: list[Any]) -> None:
    compiled = compile_schema(schema)
    assert [value for value in right if compiled.check(value)] == []
    assert [value for value in wrong if not compiled.check(value)] == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"$ref": "#"}, 1),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1),
        (
            {
                "oneOf": [{"$ref": "#/$defs/a"}] * 50,
                "$defs": {"a": {"oneOf": [{"$ref": "#/$defs/b"}] * 50}, "b": {"oneOf": [{"type": "string"}] * 50}},
            },
            1,
        ),
        ({"items": {"type": "integer"}}, [1] * 10_001),
        ({"properties": {"a": {"$ref": "#"}}, "type": "object"}, None),
    ],
    ids=["itself", "either", "wide", "long", "deep"],
)
def test_work_is_bounded(schema: Any, value: Any) -> None:
    if value is None:
        value = {}
        for _ in range(60):
            value = {"a": value}
    (issue,) = compile_schema(schema).check(value)
    assert issue.params["keyword"] == "bound"


@pytest.mark.timeout(20)
def test_a_pattern_made_to_be_slow_is_quick() -> None:
    (issue,) = compile_schema({"pattern": "^(a+)+$"}).check("a" * 50_000 + "!")
    assert issue.params["keyword"] == "pattern"


def test_issues_about_a_value_are_bounded() -> None:
    assert len(compile_schema({"items": {"type": "string"}}).check([1] * 1000)) == MAX_ISSUES


def test_trivial_schemas_take_the_short_way() -> None:
    trivial: list[Any] = [{}, {"type": "object"}, {"type": "object", "properties": {}}]
    assert all(compile_schema(schema).fits_objects for schema in trivial)
    empty = compile_schema({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False})
    assert empty.fits_empty
    assert not empty.fits_objects
    assert empty.check({}) == []
    assert empty.check({"a": 1}) != []
    assert not compile_schema(ORDER).fits_empty


def test_the_shared_definitions_are_a_schema() -> None:
    assert check_schema({"$defs": BUILTIN_DEFS}) == []
    assert set(BUILTIN_DEFS) == {"value", "condition", "duration", "field", "party", "parties"}


def test_an_authors_definition_goes_before_a_shared_one() -> None:
    schema = compile_schema({"$ref": "#/$defs/party", "$defs": {"party": {"type": "integer"}}})
    assert schema.check(5) == []
    assert schema.check({"role": "x"}) != []


SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
            | st.just(["string", "null"]),
            "enum": st.lists(CLEAN, min_size=1, max_size=3),
            "minimum": st.integers(-5, 5),
            "exclusiveMaximum": st.integers(-5, 5),
            "minLength": st.integers(0, 3),
            "maxItems": st.integers(0, 3),
            "required": st.lists(st.sampled_from("ab"), unique=True),
            "pattern": st.sampled_from(["^a", "b$", "[0-9]"]),
            "uniqueItems": st.booleans(),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "additionalProperties": st.booleans() | inner,
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
        },
    ),
    max_leaves=6,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-6, 6) | st.sampled_from([1.0, 2.5]) | st.text("ab0", max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(SCHEMAS, VALUES)
def test_what_is_right_is_what_jsonschema_says(schema: Any, value: Any) -> None:
    assert check_schema(schema) == []
    assert (compile_schema(schema).check(value) == []) is Draft202012Validator(schema).is_valid(value)


@given(SCHEMAS, VALUES)
def test_a_literal_config_is_checked_like_a_value(schema: Any, value: Any) -> None:
    whole = compile_schema({"properties": {"x": schema}})
    if "oneOf" not in str(schema):
        assert bool(whole.check({"x": value})) is bool(whole.check_config({"x": value}))


@given(SCHEMAS)
def test_a_reference_fits_any_schema(schema: Any) -> None:
    assert compile_schema({"properties": {"x": schema}}).check_config({"x": {"ref": "input.x"}}) == []


@given(CLEAN)
def test_any_json_is_a_schema_or_has_issues(value: Any) -> None:
    assert check_schema(value) or isinstance(value, dict)
