"""What counts as JSON here: one check, one reader, one writer, one canonical form (DESIGN 10, row JSON)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any, Final

import orjson

from korak.errors import Invalid, Issue, TooLarge
from korak.graphs import paths
from korak.model import Json

MAX_DEPTH: Final = 64
SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""The integers that 64 bits hold, signed or not."""

_STRICT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS
_LONG_NUMBER = re.compile(rb"[0-9]{19}")

_Trail = tuple[Any, ...]
"""Where the walk is, innermost first: (key, (key of the parent, ...)); () is the root."""


def check_json(value: object, *, max_depth: int = MAX_DEPTH, code: str = "invalid_json") -> Issue | None:
    """What keeps `value` from being stored as JSON, with its pointer; None where nothing does.

    Refused are NUL and lone surrogates in strings and keys, NaN and infinities, integers beyond 64 bits, keys that
    aren't strings, types that aren't JSON's own (tuples and subclasses too), and lists and objects more than
    `max_depth` deep. A member of an enumeration of strings or integers counts as its value.
    """
    if _is_plainly_clean(value, max_depth):
        return None
    return next(_walk(value, max_depth, code), None)


def _is_plainly_clean(value: object, max_depth: int) -> bool:
    """Whether a round trip proves it. False proves nothing: the walk then decides."""
    try:
        raw = orjson.dumps(value, option=_STRICT)
    except (TypeError, ValueError):
        return False
    if b"\\u0000" in raw or raw.count(b"[") + raw.count(b"{") > max_depth:
        return False
    return bool(orjson.loads(raw) == value)


def _walk(root: object, max_depth: int, code: str) -> Iterator[Issue]:
    stack: list[tuple[object, _Trail, int]] = [(root, (), 0)]
    while stack:
        value, trail, depth = stack.pop()
        if type(value) is dict or type(value) is list:
            if depth >= max_depth:
                yield _issue(code, trail, f"it is nested more than {max_depth} deep")
                continue
            for key, member in value.items() if type(value) is dict else enumerate(value):
                if type(value) is dict and (why := _why_not_key(key)):
                    yield _issue(code, (key, trail), why)
                stack.append((member, (key, trail), depth + 1))
        elif why := _why_not_scalar(value):
            yield _issue(code, trail, why)


def _why_not_key(key: object) -> str | None:
    return _why_not_text(key) if type(key) is str else f"a key is of type {type(key).__name__}, not a string"


def _why_not_scalar(value: object) -> str | None:
    if isinstance(value, (StrEnum, IntEnum)):
        value = value.value
    if value is None or type(value) is bool:
        return None
    if type(value) is str:
        return _why_not_text(value)
    if type(value) is int:
        return None if SMALLEST <= value <= LARGEST else "an integer needs more than 64 bits"
    if type(value) is float:
        return None if math.isfinite(value) else f"{value} is no JSON number"
    return f"{type(value).__name__} is no JSON type"


def _why_not_text(text: str) -> str | None:
    if "\0" in text:
        return "a string holds NUL"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "a string holds a lone surrogate"
    return None


def _issue(code: str, trail: _Trail, why: str) -> Issue:
    parts: list[object] = []
    while trail:
        parts.append(trail[0])
        trail = trail[1]
    pointer = paths.pointer(reversed(parts))
    return Issue(code, pointer, {"pointer": pointer, "detail": why, "why": why})


def loads(raw: bytes, *, max_bytes: int | None = None, max_depth: int = MAX_DEPTH) -> Json:
    """The JSON in `raw`, as `check_json` wants it.

    Raises TooLarge("body_too_large") over `max_bytes`, else Invalid("invalid_json") with the pointer in its issue.
    """
    if max_bytes is not None and len(raw) > max_bytes:
        raise TooLarge(limit=max_bytes)
    value = _read(raw)
    if issue := check_json(value, max_depth=max_depth):
        raise Invalid("invalid_json", issues=[issue], why=issue.params["why"], pointer=issue.pointer)
    return value


def _read(raw: bytes) -> Json:
    try:
        value: Json = orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        why = str(error)
        raise Invalid("invalid_json", issues=[Issue("invalid_json", params={"why": why})], why=why) from None
    if _LONG_NUMBER.search(raw) is None:
        return value
    return _read_exactly(raw)


def _read_exactly(raw: bytes) -> Json:
    """Read again where orjson may have turned a long integer into a float: it stays one, for the check to refuse."""
    try:
        value: Json = json.loads(raw)
    except (ValueError, RecursionError):
        why = "a number has too many digits, or it is nested too deep"
        raise Invalid("invalid_json", issues=[Issue("invalid_json", params={"why": why})], why=why) from None
    return value


def dumps(value: Json) -> bytes:
    """`value` as compact JSON in UTF-8. It must have passed `check_json`, or come from `loads`."""
    return orjson.dumps(value)


def size(value: Json) -> int:
    """The bytes of `dumps(value)`."""
    return len(orjson.dumps(value))


def canonical(value: Json) -> bytes:
    """RFC 8785: sorted keys, shortest numbers; integers of more than 53 bits keep all their digits."""
    return "".join(_write(value)).encode()


def _write(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        yield "{"
        for number, key in enumerate(sorted(value, key=_utf16)):
            yield f"{',' if number else ''}{_text(key)}:"
            yield from _write(value[key])
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, member in enumerate(value):
            yield "," if number else ""
            yield from _write(member)
        yield "]"
    elif isinstance(value, float):
        yield _number(value)
    else:
        yield _text(value)


def _utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def _text(value: Json) -> str:
    return orjson.dumps(value).decode()


def _number(value: float) -> str:
    magnitude = abs(value)
    if value.is_integer() and magnitude < 1e21:
        return str(int(value))
    if 1e-6 <= magnitude < 1e21:
        return format(Decimal(repr(value)), "f")
    mantissa, _, exponent = repr(value).partition("e")
    return f"{mantissa}e{int(exponent):+d}"
