"""Values: literals and the forms that read a run, compiled once and resolved when a step needs them (DESIGN 6)."""

from __future__ import annotations

from typing import Any, Final

from korak.errors import Issue
from korak.graphs import durations, instants, paths
from korak.graphs.expressions import ExpressionFailed, compile_expression
from korak.graphs.forms import (
    CelValue,
    ListValue,
    LiteralValue,
    ObjectValue,
    RefValue,
    RelativeValue,
    SecretValue,
    TemplateValue,
    Value,
)
from korak.graphs.paths import Malformed, MissingValue, Reference, Unresolved
from korak.graphs.templates import Reveal, check_secret_name, compile_template, malformed
from korak.model import Json, JsonObject

__all__ = [
    "MAX_DEPTH",
    "ExpressionFailed",
    "Malformed",
    "MissingValue",
    "Reference",
    "Reveal",
    "Unresolved",
    "Value",
    "compile_value",
    "get_form",
]

MAX_DEPTH: Final = 64

_FORMS: Final = {
    frozenset({"ref"}): "ref",
    frozenset({"ref", "default"}): "ref",
    frozenset({"cel"}): "cel",
    frozenset({"template"}): "template",
    frozenset({"relative"}): "relative",
    frozenset({"secret"}): "secret",
    frozenset({"literal"}): "literal",
}


def get_form(raw: Json) -> str | None:
    """Which value form `raw` is by its keys: ref, cel, template, relative, secret or literal; None for any other."""
    if not isinstance(raw, dict) or not 1 <= len(raw) <= 2:
        return None
    return _FORMS.get(frozenset(raw))


def compile_value(raw: Json, *, secrets: bool = False) -> Value:
    """The value that `raw` writes. `secrets`: whether a secret may stand in it.

    Raises Malformed with code and pointer: invalid_value, invalid_expression, invalid_pattern, invalid_duration or
    secret_not_allowed.
    """
    return _compile(raw, secrets, 0)


def _compile(raw: Json, secrets: bool, depth: int) -> Value:
    if depth > MAX_DEPTH:
        raise malformed(f"A value is nested {MAX_DEPTH} deep at most.")
    if isinstance(raw, list):
        return _compile_list(raw, secrets, depth)
    if not isinstance(raw, dict):
        return LiteralValue(raw)
    form = get_form(raw)
    return _compile_object(raw, secrets, depth) if form is None else _compile_form(form, raw, secrets, depth)


def _compile_member(raw: Json, secrets: bool, depth: int, key: object) -> Value:
    try:
        return _compile(raw, secrets, depth + 1)
    except Malformed as error:
        raise error.at(paths.pointer([key])) from None


def _compile_list(raw: list[Json], secrets: bool, depth: int) -> Value:
    members = tuple(_compile_member(member, secrets, depth, index) for index, member in enumerate(raw))
    literals = [member.value for member in members if isinstance(member, LiteralValue)]
    if len(literals) < len(members):
        return ListValue(members)
    return LiteralValue(raw if all(map(_is, literals, raw)) else literals)


def _compile_object(raw: JsonObject, secrets: bool, depth: int) -> Value:
    members = {key: _compile_member(member, secrets, depth, key) for key, member in raw.items()}
    literals = {key: member.value for key, member in members.items() if isinstance(member, LiteralValue)}
    if len(literals) < len(members):
        return ObjectValue(tuple(members.items()))
    return LiteralValue(raw if all(map(_is, literals.values(), raw.values())) else literals)


def _is(one: Any, other: Any) -> bool:
    return one is other


def _compile_form(form: str, raw: JsonObject, secrets: bool, depth: int) -> Value:
    inner = raw[form]
    try:
        match form:
            case "ref":
                return _compile_ref(raw, secrets, depth)
            case "cel":
                return CelValue(compile_expression(inner))
            case "template":
                return TemplateValue(compile_template(inner, secrets=secrets))
            case "relative":
                return _compile_relative(inner)
            case "secret":
                return _compile_secret(inner, secrets)
            case _:
                return LiteralValue(inner)
    except Malformed as error:
        raise error if error.issue.pointer.startswith("/default") else error.at(f"/{form}") from None


def _compile_ref(raw: JsonObject, secrets: bool, depth: int) -> Value:
    path = paths.parse_rooted(raw["ref"])
    default = _compile_member(raw["default"], secrets, depth, "default") if "default" in raw else None
    return RefValue(path, default)


def _compile_secret(name: Json, secrets: bool) -> Value:
    if not secrets:
        raise Malformed(Issue("secret_not_allowed"))
    return SecretValue(check_secret_name(name))


def _compile_relative(inner: Json) -> Value:
    if not isinstance(inner, dict) or set(inner) != {"base", "offset"}:
        raise malformed("A relative value has exactly base and offset.")
    try:
        offset = durations.compile_duration(inner["offset"], signed=True)
    except Malformed as error:
        raise error.at("/offset") from None
    try:
        return RelativeValue(_compile_base(inner["base"]), offset)
    except Malformed as error:
        raise error.at("/base") from None


def _compile_base(base: Json) -> Value:
    """A path (`now` is one), an instant as text, or the form ref, cel or template."""
    if isinstance(base, str):
        return LiteralValue(base) if instants.parse(base) else RefValue(paths.parse_rooted(base), None)
    if get_form(base) not in ("ref", "cel", "template"):
        raise malformed("base is now, a path, a date and time, or an object that gives one.")
    return _compile(base, False, 0)
