"""JSON Schemas of Python types, in the subset that a config may use (spec 13.4)."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from types import SimpleNamespace, UnionType
from typing import Annotated, Any, Final, cast

import typing_extensions
from pydantic import PydanticUserError, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.json_schema import JsonSchemaMode

from korak.errors import InvalidStepType
from korak.model import Json, JsonObject

KEYWORDS: Final = frozenset(
    {
        *("type", "enum", "const", "properties", "required", "additionalProperties", "items", "minItems", "maxItems"),
        *("uniqueItems", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "pattern", "oneOf", "anyOf", "allOf", "$ref", "title", "description", "default", "examples"),
    }
)
FORMATS: Final = frozenset({"date", "date-time", "timezone", "cron", "field-path", "node-id"})
UUID: Final = "^[0-9A-Fa-f]{8}-?([0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}$"


def read_annotations(function: Any, names: Iterable[str]) -> dict[str, Any]:
    """The annotations of `names`, strings evaluated; the others may name what only a type checker sees."""
    written = {name: function.__annotations__[name] for name in names if name in function.__annotations__}
    holder = SimpleNamespace(__annotations__=written)
    try:
        hints = typing.get_type_hints(holder, globalns=function.__globals__, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise InvalidStepType(message=f"{function.__qualname__}: an annotation can't be read: {error}") from error
    return {name: modernise(hint) for name, hint in hints.items()}


def adapt(hint: Any, where: str) -> TypeAdapter[Any]:
    """What converts to and from a type. Raises InvalidStepType where JSON can't carry it."""
    try:
        return TypeAdapter(hint)
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise InvalidStepType(message=f"{where}: {hint!r} is no type that JSON can carry") from error


def describe(
    adapters: Mapping[str, TypeAdapter[Any]], mode: JsonSchemaMode, where: str
) -> tuple[dict[str, JsonObject], JsonObject]:
    """The schema of each, and the definitions that they share."""
    inputs = [(name, mode, adapter) for name, adapter in adapters.items()]
    try:
        schemas, shared = TypeAdapter.json_schemas(inputs)
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        raise InvalidStepType(message=f"{where}: {error.message}") from error
    definitions = cast("dict[str, JsonObject]", shared.get("$defs", {}))
    return (
        {name: normalise(schema) for (name, _), schema in schemas.items()},
        {name: normalise(definition) for name, definition in definitions.items()},
    )


def modernise(hint: Any) -> Any:
    """The same type, with every TypedDict in one form that pydantic reads on all Pythons."""
    if typing.is_typeddict(hint):
        return _rebuild(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if not arguments or origin is typing.Literal:
        return hint
    if origin is Annotated:
        return Annotated[(modernise(arguments[0]), *hint.__metadata__)]
    inner = tuple(modernise(argument) for argument in arguments)
    if origin in (typing.Union, UnionType):
        return reduce(or_, inner)
    return origin[inner] if inner != arguments else hint


def _rebuild(hint: Any) -> Any:
    if isinstance(hint, typing_extensions._TypedDictMeta):  # type: ignore[attr-defined]  # the one way to tell the two
        return hint
    required: frozenset[str] = hint.__required_keys__
    members = {
        name: modernise(member) if name in required else typing_extensions.NotRequired[modernise(member)]
        for name, member in typing.get_type_hints(hint).items()
    }
    return typing_extensions.TypedDict(hint.__name__, members)  # type: ignore[operator]  # the members are computed


def normalise(schema: Mapping[str, Any]) -> JsonObject:
    """A schema that pydantic made, in the subset."""
    result: JsonObject = {}
    for keyword, value in schema.items():
        if keyword in ("properties", "$defs"):
            result[keyword] = {name: normalise(member) for name, member in value.items()}
        elif keyword in ("anyOf", "oneOf", "allOf"):
            result[keyword] = [normalise(member) for member in value]
        elif keyword in ("items", "additionalProperties") and isinstance(value, Mapping):
            result[keyword] = normalise(value)
        elif keyword == "prefixItems":
            result["items"] = _merge(value)
        elif keyword == "format":
            result |= _format(value)
        elif keyword in KEYWORDS or keyword.startswith("x-korak-"):
            result[keyword] = value
    return result


def _merge(members: Sequence[Mapping[str, Any]]) -> JsonObject:
    """One schema for the places of a tuple; the type itself tells them apart."""
    different: list[Json] = []
    for member in map(normalise, members):
        if member not in different:
            different.append(member)
    return cast("JsonObject", different[0]) if len(different) == 1 else {"anyOf": different}


def _format(name: str) -> JsonObject:
    if name in FORMATS:
        return {"format": name}
    if name == "duration":
        return {"type": ["string", "number"], "format": "duration"}
    return {"pattern": UUID} if name == "uuid" else {}
