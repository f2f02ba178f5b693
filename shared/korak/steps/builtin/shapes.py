"""How the built-in types write their config and output schemas, and what is wrong with a config."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from korak.errors import Issue
from korak.graphs.values import get_form
from korak.model import Json, JsonObject

VALUE: JsonObject = {"$ref": "#/$defs/value"}
CONDITION: JsonObject = {"$ref": "#/$defs/condition"}
DURATION: JsonObject = {"$ref": "#/$defs/duration"}
OUTCOME_KEY = "^[A-Za-z_][A-Za-z0-9_-]{0,31}$"


def shape(members: JsonObject, *, required: Sequence[str] = ()) -> JsonObject:
    """The schema of an object with these members and no others."""
    schema: JsonObject = {"type": "object", "properties": members, "additionalProperties": False}
    if required:
        schema["required"] = list(required)
    return schema


def titled(schema: JsonObject, title: str) -> JsonObject:
    """The same with the label that an editor shows."""
    return {**schema, "title": title}


def wrong(pointer: str, detail: str) -> Issue:
    """A config that fits the schema and makes no sense."""
    return Issue("invalid_config", pointer, {"detail": detail})


def list_given(config: JsonObject, names: Iterable[str]) -> list[str]:
    """Which of `names` are written."""
    return [name for name in names if name in config]


def exactly_one(config: JsonObject, names: Sequence[str]) -> list[Issue]:
    """Nothing, where exactly one of `names` is written."""
    given = list_given(config, names)
    if len(given) == 1:
        return []
    return [wrong("", f"Exactly one of {', '.join(names)} is needed; {', '.join(given) or 'none'} is given.")]


def get_written(value: Json) -> Json:
    """What a member is, where it is written out, be it as a literal; else the value form that it is."""
    return value["literal"] if isinstance(value, dict) and get_form(value) == "literal" else value


def may_be_list(value: Json) -> bool:
    """Whether a member is a list, written out or as a literal, or a value form that may come to one."""
    written = get_written(value)
    return isinstance(written, list) or (written is value and is_form(value))


def is_form(value: Json) -> bool:
    """Whether a member is a value form, so that what it is isn't known before it runs."""
    return get_form(value) is not None
