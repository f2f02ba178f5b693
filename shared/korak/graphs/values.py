"""Values: literals and the forms that read a run, compiled once and resolved when a step needs them (DESIGN 6)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from korak.errors import Issue
from korak.graphs import durations, instants, paths
from korak.graphs.durations import Duration
from korak.graphs.expressions import Expression, ExpressionFailed, compile_expression
from korak.graphs.paths import MISSING, Malformed, MissingValue, Path, Reference, Roots, Unresolved
from korak.graphs.templates import Reveal, Template, check_secret_name, compile_template, malformed
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


@dataclass(frozen=True, slots=True)
class Scope:
    """What a value is resolved with. `secrets` is None where their references stay."""

    roots: Roots
    secrets: Reveal | None = None
    is_strict: bool = False


class Value(ABC):
    """A compiled value. What it gives is shared, not copied: callers don't change it."""

    __slots__ = ()

    is_literal: bool = False
    """Whether it gives the same whatever the roots."""

    def resolve(self, roots: Roots, *, strict: bool = False) -> Json:
        """The value now; a secret gives its reference, a missing path null, or with `strict` a MissingValue.

        Raises MissingValue and ExpressionFailed from an expression, Unresolved for a base that is no date and time.
        """
        return self.evaluate(Scope(roots, None, strict))

    def reveal(self, roots: Roots, secrets: Reveal) -> Json:
        """Like `resolve`, with the secrets' texts in their places: `secrets` gives one by its name."""
        return self.evaluate(Scope(roots, secrets))

    def references(self) -> tuple[Reference, ...]:
        """The paths that are read, with pointers from the raw value on."""
        return tuple(self.walk(""))

    @abstractmethod
    def evaluate(self, scope: Scope) -> Json:
        """The value in a scope: what `resolve` and `reveal` come down to."""

    def walk(self, pointer: str) -> Iterator[Reference]:
        """The paths that are read by what stands at `pointer`."""
        yield from ()


@dataclass(frozen=True, slots=True)
class LiteralValue(Value):
    """JSON as it stands."""

    value: Json

    @property
    def is_literal(self) -> bool:  # type: ignore[override]  # a constant of the class
        """Always."""
        return True

    def resolve(self, roots: Roots, *, strict: bool = False) -> Json:
        """The JSON itself, not a copy."""
        return self.value

    def evaluate(self, scope: Scope) -> Json:
        """The JSON itself, not a copy."""
        return self.value


@dataclass(frozen=True, slots=True)
class RefValue(Value):
    """What stands at a path, else the default, else null."""

    path: Path
    default: Value | None

    def evaluate(self, scope: Scope) -> Json:
        """Looks the path up."""
        found = paths.lookup(self.path, scope.roots)
        if found is not MISSING:
            return found
        if self.default is not None:
            return self.default.evaluate(scope)
        if scope.is_strict:
            raise MissingValue(paths.render(self.path))
        return None

    def walk(self, pointer: str) -> Iterator[Reference]:
        """The path, and what the default reads."""
        yield Reference(self.path, self.default is not None, f"{pointer}/ref")
        if self.default is not None:
            yield from self.default.walk(f"{pointer}/default")


@dataclass(frozen=True, slots=True)
class CelValue(Value):
    """The result of an expression."""

    expression: Expression

    def evaluate(self, scope: Scope) -> Json:
        """Evaluates it."""
        return self.expression.evaluate(scope.roots)

    def walk(self, pointer: str) -> Iterator[Reference]:
        """The paths that it reads."""
        for reference in self.expression.references():
            yield Reference(reference.path, reference.has_default, f"{pointer}/cel")


@dataclass(frozen=True, slots=True)
class TemplateValue(Value):
    """Text with paths in it."""

    template: Template

    def evaluate(self, scope: Scope) -> Json:
        """Fills it."""
        return self.template.fill(scope.roots, secrets=scope.secrets, strict=scope.is_strict)

    def walk(self, pointer: str) -> Iterator[Reference]:
        """Each of its paths; a missing one is empty text."""
        for path in self.template.list_paths():
            yield Reference(path, False, f"{pointer}/template")


@dataclass(frozen=True, slots=True)
class RelativeValue(Value):
    """An instant some way from another, as ISO 8601 in UTC.

    Months and `{"days"}` go by the wall clock of `instance.timezone`, or of UTC where that isn't there.
    """

    base: Value
    offset: Duration

    def evaluate(self, scope: Scope) -> Json:
        """Adds; null where the base is null."""
        base = self.base.evaluate(scope)
        if base is None:
            return None
        start = instants.parse(base) if isinstance(base, str) else None
        if start is None:
            raise Unresolved(detail="The base of a relative value is a date and time with an offset.")
        return instants.render(self._move(start, scope.roots))

    def _move(self, start: datetime, roots: Roots) -> datetime:
        timezone = paths.lookup(("instance", "timezone"), roots)
        try:
            return self.offset.after(start, timezone if isinstance(timezone, str) else "UTC")
        except OverflowError:
            raise Unresolved(detail="The relative time is beyond the year 9999.") from None

    def walk(self, pointer: str) -> Iterator[Reference]:
        """What the base reads."""
        for reference in self.base.walk(""):
            yield Reference(reference.path, reference.has_default, f"{pointer}/relative/base")


@dataclass(frozen=True, slots=True)
class SecretValue(Value):
    """A secret's reference, or its text where it is revealed."""

    name: str

    def evaluate(self, scope: Scope) -> Json:
        """The reference or the text."""
        return {"secret": self.name} if scope.secrets is None else scope.secrets(self.name)


@dataclass(frozen=True, slots=True)
class ListValue(Value):
    """A list of which some member isn't literal."""

    members: tuple[Value, ...]

    def evaluate(self, scope: Scope) -> Json:
        """A new list."""
        return [member.evaluate(scope) for member in self.members]

    def walk(self, pointer: str) -> Iterator[Reference]:
        """What the members read."""
        for index, member in enumerate(self.members):
            yield from member.walk(f"{pointer}/{index}")


@dataclass(frozen=True, slots=True)
class ObjectValue(Value):
    """An object of which some member isn't literal."""

    members: tuple[tuple[str, Value], ...]

    def evaluate(self, scope: Scope) -> Json:
        """A new object."""
        return {key: member.evaluate(scope) for key, member in self.members}

    def walk(self, pointer: str) -> Iterator[Reference]:
        """What the members read."""
        for key, member in self.members:
            yield from member.walk(pointer + paths.pointer([key]))


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
