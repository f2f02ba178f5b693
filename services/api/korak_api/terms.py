"""The words that the shapes of the API are written in."""

from __future__ import annotations

from typing import Any, Final

ANY: Final[dict[str, Any]] = {}
TEXT: Final = {"type": "string"}
OBJECT: Final = {"type": "object"}
COUNT: Final = {"type": "integer"}
FLAG: Final = {"type": "boolean"}
SECONDS: Final = {"type": "number"}
TIME: Final = {"type": "string", "format": "date-time"}
ULID: Final = {"type": "string", "pattern": "^[0-9A-HJKMNP-TV-Z]{26}$"}
NAMES: Final = {"type": "array", "items": TEXT}
ACTION: Final = {"description": "true, or the code of why not.", "oneOf": [{"const": True}, TEXT]}


def or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The same, or null."""
    return {"oneOf": [schema, {"type": "null"}]}


def one_of(*names: str) -> dict[str, Any]:
    """One of these words."""
    return {"type": "string", "enum": list(names)}


def shape(**members: Any) -> dict[str, Any]:
    """An object that always has these members."""
    return {"type": "object", "properties": members, "required": list(members)}


def extend(schema: dict[str, Any], **members: Any) -> dict[str, Any]:
    """The same object, which may have these members besides."""
    return {**schema, "properties": {**schema["properties"], **members}}


def ref(name: str) -> dict[str, Any]:
    """What stands under a name among the shapes."""
    return {"$ref": f"#/components/schemas/{name}"}


def page(name: str) -> dict[str, Any]:
    """A page of these."""
    cursor = {**or_null(TEXT), "description": "The `cursor` of the page after this one."}
    return shape(items={"type": "array", "items": ref(name)}, next=cursor)
