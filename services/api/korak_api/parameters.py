"""Parameters of a query: how each is read, and how it stands in OpenAPI."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias

import orjson

from korak.errors import Invalid, Issue
from korak.graphs import paths
from korak.model import JsonObject

Kind: TypeAlias = Literal["text", "time", "count", "seconds", "flag"]
MAX_TEXT: Final = 512
MAX_VALUES: Final = 100
"""How often a parameter may be repeated at most."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter by its name."""

    name: str
    description: str
    kind: Kind = "text"
    is_list: bool = False
    choices: tuple[str, ...] = ()

    def read(self, given: Sequence[str]) -> Any:
        """Its value; a list where it may be repeated. Raises Invalid (`invalid_parameter`)."""
        if not self.is_list and len(given) > 1:
            raise refuse(self.name, "it may stand once")
        if len(given) > MAX_VALUES:
            raise refuse(self.name, f"it may stand {MAX_VALUES} times at most")
        values = [self._read_one(text) for text in given]
        return values if self.is_list else values[0]

    def _read_one(self, text: str) -> Any:
        if len(text) > MAX_TEXT or "\0" in text:
            raise refuse(self.name, f"it has {MAX_TEXT} characters at most, and no NUL")
        if self.choices and text not in self.choices:
            raise refuse(self.name, f"it is one of {', '.join(self.choices)}")
        try:
            return READERS[self.kind](text)
        except (ValueError, OverflowError):
            raise refuse(self.name, WANTED[self.kind]) from None

    def to_openapi(self) -> JsonObject:
        """As it stands in an operation of OpenAPI."""
        schema: JsonObject = dict(SCHEMAS[self.kind])
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.is_list:
            schema = {"type": "array", "items": schema, "maxItems": MAX_VALUES}
        return {"name": self.name, "in": "query", "description": self.description, "schema": schema}


def refuse(name: str, detail: str) -> Invalid:
    """What is raised for what is wrong in the query, the address or the headers; it is pointed to by its name."""
    issue = Issue("invalid_parameter", paths.pointer([name]), {"name": name, "detail": detail})
    return Invalid("invalid_parameter", issues=[issue], name=name, detail=detail)


def read_query(declared: Sequence[Parameter], given: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The parameters of a request. Raises Invalid for one that is unknown or wrong."""
    known = {parameter.name: parameter for parameter in declared}
    for name in given:
        if name not in known:
            issue = Issue("unknown_parameter", paths.pointer([name]), {"name": name[:100]})
            raise Invalid("unknown_parameter", issues=[issue], name=name[:100])
    return {name: known[name].read(values) for name, values in given.items()}


def _read_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text.replace(" ", "+"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)


def _read_count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise ValueError(text)
    return int(text)


def _read_seconds(text: str) -> float:
    seconds = float(text)
    if not math.isfinite(seconds) or seconds < 0:
        raise ValueError(text)
    return seconds


def _read_flag(text: str) -> bool:
    if text not in FLAGS:
        raise ValueError(text)
    return FLAGS[text]


FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}
READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "text": str,
    "time": _read_time,
    "count": _read_count,
    "seconds": _read_seconds,
    "flag": _read_flag,
}
WANTED: Final = {
    "text": "it is a text",
    "time": "it is a time such as 2026-03-01T12:00:00Z",
    "count": "it is a whole number",
    "seconds": "it is a number of seconds",
    "flag": "it is true or false",
}
SCHEMAS: Final[Mapping[str, JsonObject]] = {
    "text": {"type": "string", "maxLength": MAX_TEXT},
    "time": {"type": "string", "format": "date-time"},
    "count": {"type": "integer", "minimum": 0},
    "seconds": {"type": "number", "minimum": 0},
    "flag": {"type": "boolean"},
}

LIMIT: Final = Parameter("limit", "Items of the page; the server has a bound of its own.", "count")
CURSOR: Final = Parameter("cursor", "`next` of the page before.")
PAGE: Final = (LIMIT, CURSOR)
WAIT: Final = Parameter("wait", "Seconds to wait for the instance to end, 60 at most.", "seconds")

DEFAULT_PAGE: Final = 50
MAX_PLACE: Final = 2**31 - 1
"""The greatest number in a cursor."""


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a list is asked for: after what, and how many items. One more is read to see whether any follow."""

    limit: int
    after: Sequence[Any] = ()

    @property
    def asked(self) -> int:
        """How many rows to read."""
        return self.limit + 1


def read_page(query: Mapping[str, Any], kinds: Sequence[type], *, most: int) -> Page:
    """The page that a query asks for; its cursor holds values of these kinds. Raises Invalid for another cursor."""
    limit = min(query.get("limit", DEFAULT_PAGE), most)
    if limit < 1:
        raise refuse("limit", "it is 1 at least")
    cursor = query.get("cursor")
    if cursor is None:
        return Page(limit)
    try:
        after = orjson.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error):
        after = None
    if not isinstance(after, list) or [type(value) for value in after] != list(kinds):
        raise refuse("cursor", "it is no cursor of this list")
    if not all("\0" not in value if isinstance(value, str) else 0 <= value <= MAX_PLACE for value in after):
        raise refuse("cursor", "it is no cursor of this list")
    return Page(limit, after)


def make_page(page: Page, rows: Sequence[Any], items: Sequence[Any], cursor: Callable[[Any], Sequence[Any]]) -> Any:
    """A page as it is answered: items, and `next` where more follow; `cursor` reads from a row what comes after it."""
    has_more = len(rows) > page.limit
    after = cursor(rows[page.limit - 1]) if has_more else None
    encoded = None if after is None else base64.urlsafe_b64encode(orjson.dumps(list(after))).decode().rstrip("=")
    return {"items": list(items[: page.limit]), "next": encoded}
