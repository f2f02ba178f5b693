"""Which keywords a config schema may use, and what each may say (spec 13.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from korak.errors import Issue
from korak.graphs import paths, patterns
from korak.graphs.formats import FORMATS
from korak.graphs.ordering import is_number
from korak.graphs.paths import Malformed
from korak.model import Json

MAX_DEPTH: Final = 32
MAX_PARTS: Final = 5000
DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_types(value: Any) -> bool:
    names = value if type(value) is list else [value]
    return bool(names) and all(type(name) is str and name in _TYPES for name in names)


def _is_names(value: Any) -> bool:
    return type(value) is list and all(type(name) is str for name in value)


def _is_filled_list(value: Any) -> bool:
    return type(value) is list and bool(value)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_anything(value: Any) -> bool:
    return True


_RULES: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "type": (_is_types, "it is a type or a list of types"),
    "enum": (_is_filled_list, "it is a list with a member"),
    "const": (_is_anything, ""),
    "required": (_is_names, "it is a list of names"),
    "minItems": (_is_count, "it is a whole number from 0"),
    "maxItems": (_is_count, "it is a whole number from 0"),
    "minLength": (_is_count, "it is a whole number from 0"),
    "maxLength": (_is_count, "it is a whole number from 0"),
    "uniqueItems": (lambda value: type(value) is bool, "it is a bool"),
    "minimum": (is_number, "it is a number"),
    "maximum": (is_number, "it is a number"),
    "exclusiveMinimum": (is_number, "it is a number"),
    "exclusiveMaximum": (is_number, "it is a number"),
    "multipleOf": (lambda value: is_number(value) and value > 0, "it is a number above 0"),
    "format": (lambda value: _is_text(value) and value in FORMATS, f"it is one of {', '.join(sorted(FORMATS))}"),
    "pattern": (_is_text, "it is a string"),
    "title": (_is_text, "it is a string"),
    "description": (_is_text, "it is a string"),
    "default": (_is_anything, ""),
    "examples": (lambda value: type(value) is list, "it is a list"),
    "$schema": (lambda value: value == DRAFT, f"it is {DRAFT}"),
    "$comment": (_is_text, "it is a string"),
    "$ref": (_is_text, "it is a string"),
    "properties": (lambda value: type(value) is dict, "it is an object of schemas"),
    "$defs": (lambda value: type(value) is dict, "it is an object of schemas"),
    "allOf": (_is_filled_list, "it is a list of schemas"),
    "anyOf": (_is_filled_list, "it is a list of schemas"),
    "oneOf": (_is_filled_list, "it is a list of schemas"),
    "items": (_is_anything, ""),
    "additionalProperties": (_is_anything, ""),
}
_NAMED = frozenset({"properties", "$defs"})
_LISTED = frozenset({"allOf", "anyOf", "oneOf"})


def walk(schema: Json, definitions: Mapping[str, Json]) -> Iterator[Issue]:
    """What a schema may not say, part by part: "invalid_schema", "invalid_keyword" or "invalid_pattern"."""
    pending: list[tuple[Json, str, int]] = [(schema, "", 0)]
    parts = 0
    while pending:
        part, pointer, depth = pending.pop()
        parts += 1
        if depth > MAX_DEPTH or parts > MAX_PARTS:
            yield _wrong("depth", pointer, f"a schema is {MAX_DEPTH} deep and has {MAX_PARTS} parts at most")
            return
        if type(part) is not dict:
            yield _wrong("schema", pointer, "a schema is an object")
            continue
        for keyword, value in part.items():
            yield from _check(keyword, value, pointer + paths.pointer([keyword]), definitions)
            pending.extend((inner, pointer + at, depth + 1) for at, inner in _list_parts(keyword, value))


def _check(keyword: str, value: Any, pointer: str, definitions: Mapping[str, Json]) -> Iterator[Issue]:
    is_right, detail = _RULES.get(keyword, (None, ""))
    if is_right is None:
        if not keyword.startswith("x-korak-"):
            yield Issue("invalid_schema", pointer, {"keyword": keyword[:100]})
    elif not is_right(value):
        yield _wrong(keyword, pointer, detail)
    elif keyword == "pattern":
        yield from _check_pattern(value, pointer)
    elif keyword == "$ref" and not _is_local(value, definitions):
        yield _wrong(keyword, pointer, "it is # or #/$defs/<name>, and the name is defined")


def _check_pattern(text: str, pointer: str) -> Iterator[Issue]:
    try:
        patterns.compile_pattern(text)
    except Malformed as error:
        yield Issue("invalid_pattern", pointer, {"keyword": "pattern", **error.params})


def _is_local(target: str, definitions: Mapping[str, Json]) -> bool:
    return target == "#" or (target.startswith("#/$defs/") and target.removeprefix("#/$defs/") in definitions)


def _list_parts(keyword: str, value: Any) -> Iterator[tuple[str, Json]]:
    if keyword in _NAMED and type(value) is dict:
        yield from ((paths.pointer([keyword, name]), inner) for name, inner in value.items())
    elif keyword in _LISTED and type(value) is list:
        yield from ((paths.pointer([keyword, index]), inner) for index, inner in enumerate(value))
    elif keyword == "items" or (keyword == "additionalProperties" and type(value) is not bool):
        yield paths.pointer([keyword]), value


def _wrong(keyword: str, pointer: str, detail: str) -> Issue:
    return Issue("invalid_keyword", pointer, {"keyword": keyword, "detail": detail})
