"""Config schemas: a subset of JSON Schema 2020-12, checked at registration, publish and run (spec 13.4)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from jsonschema.exceptions import ValidationError

from korak.errors import Issue
from korak.graphs import keywords, paths
from korak.graphs.dialect import FORM, MAX_CHECKS, Run, Unbounded, Validator
from korak.graphs.paths import Malformed
from korak.graphs.values import compile_value, get_form
from korak.model import Json, JsonObject

__all__ = ["BUILTIN_DEFS", "MAX_CHECKS", "MAX_ISSUES", "Schema", "check_schema", "compile_schema"]

MAX_ISSUES: Final = 100
SECRET: Final = "x-korak-secret"

_PERSON: Final[JsonObject] = {"id": {"type": ["string", "integer"]}, "type": {"type": "string"}}
_PLAIN: Final = frozenset({"type", "properties", "additionalProperties", "title", "description", "$schema", "$defs"})


def _party(member: str, schema: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": {member: schema, **_PERSON},
        "required": [member],
        "additionalProperties": False,
    }


BUILTIN_DEFS: Final[JsonObject] = {
    "value": {FORM: "value"},
    "condition": {FORM: "condition"},
    "duration": {FORM: "duration"},
    "field": {"type": "string", "format": "field-path"},
    "party": {
        "oneOf": [
            _party("user", {"type": ["string", "integer"]}),
            _party("role", {"type": "string", "minLength": 1}),
            _party("field", {"$ref": "#/$defs/field"}),
            _party("triggered_by", {"const": True}),
        ]
    },
    "parties": {"type": "array", "items": {"$ref": "#/$defs/party"}},
}
"""What every schema may refer to without declaring it. A resolved party carries the person's id and type too."""


def check_schema(schema: Json, defs: JsonObject = BUILTIN_DEFS) -> list[Issue]:
    """What keeps `schema` from being used, with pointers into it.

    "invalid_schema" names a keyword that isn't in the subset, "invalid_keyword" one that says something wrong (a remote
    `$ref`, more than 32 levels), "invalid_pattern" what RE2 refuses.
    """
    declared = schema.get("$defs") if isinstance(schema, dict) else None
    known = {**defs, **declared} if isinstance(declared, dict) else defs
    return list(islice(keywords.walk(schema, known), MAX_ISSUES))


def compile_schema(schema: JsonObject, defs: JsonObject = BUILTIN_DEFS) -> Schema:
    """The schema that checks. Raises Malformed with the first of `check_schema`'s issues."""
    for issue in check_schema(schema, defs):
        raise Malformed(issue)
    declared = schema.get("$defs")
    whole: JsonObject = {**schema, "$defs": {**defs, **(declared if isinstance(declared, dict) else {})}}
    return Schema(schema, whole, _list_secret_members(schema), _fits_empty(schema), _fits_objects(schema))


def _list_secret_members(schema: JsonObject) -> frozenset[str]:
    properties = schema.get("properties")
    members: Mapping[str, Json] = properties if isinstance(properties, dict) else {}
    return frozenset(
        name for name, member in members.items() if isinstance(member, dict) and member.get(SECRET) is True
    )


def _fits_empty(schema: JsonObject) -> bool:
    return (
        schema.get("type", "object") == "object"
        and schema.keys() <= _PLAIN | {"required"}
        and not schema.get("required")
    )


def _fits_objects(schema: JsonObject) -> bool:
    return _fits_empty(schema) and not schema.get("properties") and schema.get("additionalProperties", True) is True


@dataclass(frozen=True, slots=True)
class Schema:
    """A compiled schema. Checks give at most 100 issues, whose params are keyword, expected and detail."""

    source: JsonObject
    whole: JsonObject = field(repr=False)
    secret_members: frozenset[str] = frozenset()
    """The top-level members in which a secret may stand."""

    fits_empty: bool = field(default=False, repr=False)
    fits_objects: bool = field(default=False, repr=False)

    def check(self, value: Json, *, code: str = "invalid_config") -> list[Issue]:
        """What is wrong with a resolved value. In a member marked `x-korak-secret` a secret's reference is a string."""
        if isinstance(value, dict) and (self.fits_objects or (self.fits_empty and not value)):
            return []
        return list(self._run(value, Run(secrets=self._find_secrets(value)), code))

    def check_config(self, config: JsonObject, *, code: str = "invalid_config") -> list[Issue]:
        """What is wrong with a config as it is written, where a value form may stand for any member.

        Literals are checked, forms must compile and must be able to give the type: a template a string. A form or
        condition that can't be compiled has its own code ("invalid_expression", "secret_not_allowed", ...).
        """
        issues = list(self._run(config, Run(root=config), code))
        wrong = {issue.pointer for issue in issues}  # seen through the schema already: not said twice
        for name, member in config.items():
            try:
                compile_value(member, secrets=name in self.secret_members)
            except Malformed as error:
                issue = error.at(paths.pointer([name])).issue
                if issue.code == "secret_not_allowed" or not any(map(issue.pointer.startswith, wrong)):
                    issues.append(issue)
        return issues

    def _run(self, value: Json, run: Run, code: str) -> Iterator[Issue]:
        validator = Validator(self.whole, format_checker=run)
        is_config = run.root is not None
        try:
            for error in islice(validator.iter_errors(value), MAX_ISSUES):
                yield _to_issue(error, code, is_config=is_config)
        except Unbounded as error:
            yield Issue(code, "", {"keyword": "bound", "expected": error.limit, "detail": str(error)})

    def _find_secrets(self, value: Json) -> frozenset[int]:
        if not self.secret_members or not isinstance(value, dict):
            return frozenset()
        pending: list[Any] = [value[name] for name in self.secret_members if name in value]
        found: set[int] = set()
        while pending:
            inner = pending.pop()
            if get_form(inner) == "secret":
                found.add(id(inner))
            elif isinstance(inner, (dict, list)):
                pending.extend(inner.values() if isinstance(inner, dict) else inner)
        return frozenset(found)


def _to_issue(error: ValidationError, code: str, *, is_config: bool) -> Issue:
    pointer = paths.pointer(error.absolute_path)
    if isinstance(error.cause, Malformed):
        if is_config:
            return error.cause.issue.at(pointer)
        pointer += error.cause.issue.pointer
    keyword = error.validator_value if error.validator == FORM else error.validator
    params: JsonObject = {"keyword": str(keyword), "expected": _get_expected(error), "detail": _describe(error)}
    return Issue(code, pointer, {"pointer": pointer, **params})


def _get_expected(error: ValidationError) -> Json:
    """What the keyword asks for, where that is short: no schema, and no list without end."""
    expected: Any = error.validator_value
    if isinstance(expected, list) and error.validator in ("enum", "type"):
        return expected[:20]
    return expected if expected is None or isinstance(expected, (str, int, float)) else None


_OWN_WORDS: Final = frozenset(
    {
        "type",
        "required",
        "additionalProperties",
        "uniqueItems",
        "multipleOf",
        "pattern",
        "format",
        "oneOf",
        "anyOf",
        FORM,
    }
)


def _describe(error: ValidationError) -> str:
    """In words that never repeat the value: it may be long, or secret."""
    if error.validator in _OWN_WORDS:
        return error.message
    expected: Any = error.validator_value
    if error.validator == "enum":
        return f"one of {', '.join(str(member)[:40] for member in expected[:20])} is expected"
    return f"{error.validator} is {str(expected)[:100]}"
