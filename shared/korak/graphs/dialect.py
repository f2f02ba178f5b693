"""The config schema's dialect of JSON Schema 2020-12: jsonschema's keywords, bounded, with RE2 and value forms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, Final, TypeAlias

from jsonschema import Draft202012Validator, FormatChecker, validators
from jsonschema.exceptions import ValidationError

from korak.graphs import hygiene, patterns
from korak.graphs.conditions import compile_condition
from korak.graphs.durations import compile_duration
from korak.graphs.formats import FORMATS
from korak.graphs.ordering import is_number
from korak.graphs.paths import Malformed
from korak.graphs.values import get_form

MAX_CHECKS: Final = 10_000
MAX_DESCENTS: Final = 64
FORM: Final = "x-korak-form"
"""Marks the shared definitions that are more than JSON Schema: value, condition, duration."""

Keyword: TypeAlias = Callable[[Any, Any, Any, Any], Iterable[ValidationError]]

_TEXTUAL = frozenset({"template", "relative", "secret"})
"""The forms that always give a string."""

_COMBINING = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_DESCENDING = _COMBINING | {"properties", "additionalProperties", "items"}


class Unbounded(Exception):
    """Internal: the check would take more than one of its bounds."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"it takes more than {limit} {what}")
        self.limit = limit


class Run(FormatChecker):
    """One check: what is left of its bounds, and which objects are value forms.

    It travels in the validator's place for formats, the one that jsonschema hands down to every part. `root` is the
    config itself, which is never a form; None for a resolved value, in which only `secrets` (by id) are opaque.
    """

    def __init__(self, root: object = None, secrets: frozenset[int] = frozenset()) -> None:
        super().__init__(formats=())
        self.root = root
        self.secrets = secrets
        self.spent: int = 0
        self.descents = 0

    def spend(self) -> None:
        """Count one keyword. Raises Unbounded."""
        self.spent += 1
        if self.spent > MAX_CHECKS:
            raise Unbounded("checks", MAX_CHECKS)

    def get_form(self, instance: Any) -> str | None:
        """Which form stands here, if what it gives isn't known yet."""
        if type(instance) is not dict:
            return None
        if self.root is None:
            return "secret" if id(instance) in self.secrets else None
        return None if instance is self.root else get_form(instance)


def _bounded(name: str, function: Keyword) -> Keyword:
    """The keyword with its work counted, and forms let through."""

    def check(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterable[ValidationError]:
        run: Run = validator.format_checker
        run.spend()
        form = run.get_form(instance)
        if form == "literal" and name not in _COMBINING:
            return function(validator, expected, instance["literal"], schema)
        if form is not None and name not in _COMBINING:
            return _check_form(form, expected) if name == "type" else ()
        return function(validator, expected, instance, schema)

    return _descending(check) if name in _DESCENDING else check


def _descending(function: Keyword) -> Keyword:
    def check(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        run: Run = validator.format_checker
        run.descents += 1
        if run.descents > MAX_DESCENTS:
            raise Unbounded("levels", MAX_DESCENTS)
        try:
            yield from function(validator, expected, instance, schema)
        finally:
            run.descents -= 1

    return check


def _list_types(expected: Any) -> list[str]:
    return [expected] if isinstance(expected, str) else expected


def _check_form(form: str, expected: Any) -> Iterator[ValidationError]:
    if form in _TEXTUAL and "string" not in _list_types(expected):
        yield ValidationError(f"a {form} gives a string")


def _check_type(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not any(validator.is_type(instance, name) for name in _list_types(expected)):
        yield ValidationError(f"{' or '.join(_list_types(expected))} is expected")


def _check_required(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if type(instance) is dict:
        for name in expected:
            if name not in instance:
                yield ValidationError("it is missing", path=(name,))


def _check_additional(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if type(instance) is not dict:
        return
    for name in instance.keys() - schema.get("properties", {}).keys():
        if expected is False:
            yield ValidationError("it is not allowed", path=(name,))
        elif expected is not True:
            yield from validator.descend(instance[name], expected, path=name)


def _check_unique(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if expected and type(instance) is list and len({hygiene.canonical(item) for item in instance}) < len(instance):
        yield ValidationError("two members are the same")


def _check_multiple(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if is_number(instance) and (Fraction(repr(instance)) / Fraction(repr(expected))).denominator != 1:
        yield ValidationError(f"a multiple of {expected} is expected")


def _check_pattern(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not patterns.compile_pattern(expected).matches(instance):
        yield ValidationError(f"the pattern is {expected}")


def _check_format(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not FORMATS[expected](instance):
        yield ValidationError(f"a {expected} is expected")


def _check_one_of(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """While forms stand in a config, more than one branch may still fit: then it is enough that one does."""
    run: Run = validator.format_checker
    fitting = sum(validator.evolve(schema=branch).is_valid(instance) for branch in expected)
    if fitting == 0 or (fitting > 1 and run.root is None):
        yield ValidationError(f"one of the {len(expected)} forms is expected")


def _check_any_of(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not any(validator.evolve(schema=branch).is_valid(instance) for branch in expected):
        yield ValidationError(f"one of the {len(expected)} forms is expected")


def _check_korak_form(validator: Any, expected: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """A condition or duration as it is written; a form in a duration's place gives one. A value may be anything."""
    run: Run = validator.format_checker
    run.spend()
    form = run.get_form(instance)
    try:
        if expected == "condition":
            compile_condition(instance)
        elif expected == "duration" and form in (None, "literal"):
            compile_duration(instance if form is None else instance["literal"])
    except Malformed as error:
        yield ValidationError(error.message, cause=error)


_OWN: Final[dict[str, Keyword]] = {
    "type": _check_type,
    "required": _check_required,
    "additionalProperties": _check_additional,
    "uniqueItems": _check_unique,
    "multipleOf": _check_multiple,
    "pattern": _check_pattern,
    "format": _check_format,
    "oneOf": _check_one_of,
    "anyOf": _check_any_of,
}
_KEPT: Final = (
    *("$ref", "properties", "items", "enum", "const", "allOf", "minItems", "maxItems", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
)
_KEYWORDS: Final[dict[str, Keyword]] = {name: Draft202012Validator.VALIDATORS[name] for name in _KEPT} | _OWN
_BOUNDED: Final[dict[str, Any]] = {name: _bounded(name, function) for name, function in _KEYWORDS.items()}

Validator: Final[Any] = validators.create(
    meta_schema=Draft202012Validator.META_SCHEMA,
    validators=_BOUNDED | {FORM: _check_korak_form},
    type_checker=Draft202012Validator.TYPE_CHECKER,
)
"""jsonschema's validator class of the dialect; it is given a `Run` as its format checker."""
