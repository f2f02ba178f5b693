"""Paths into what a run knows: `steps.price.output["unit price"][0]`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

from korak.errors import Issue, KorakError
from korak.graphs import instants
from korak.model import Json

Path: TypeAlias = tuple[str | int, ...]
Roots: TypeAlias = Mapping[str, Any]
"""What a path may start from, by the names of `ROOTS`. `now` is an aware datetime or an ISO 8601 string."""

ROOTS: Final = frozenset(
    {"input", "state", "steps", "subject", "trigger", "item", "index", "loops", "instance", "signal", "now"}
)
MAX_LENGTH: Final = 512
MAX_PARTS: Final = 64

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PART = re.compile(r'\.([A-Za-z_][A-Za-z0-9_-]*)|\[([0-9]{1,9})\]|\[("(?:[^"\\]|\\.)*")\]')


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""Stands where a path leads nowhere; null is a value and isn't missing."""

Missing: TypeAlias = Literal[_Missing.MISSING]


class Malformed(KorakError):
    """Internal: something written in a document can't be used; `issue` says what and where. Publish reports it."""

    code = "invalid_value"

    def __init__(self, issue: Issue) -> None:
        super().__init__(issue.code, issue.message)
        self.params: dict[str, Json] = dict(issue.params)
        self.issue = issue

    def at(self, prefix: str) -> Malformed:
        """The same, seen from further out: `prefix` goes before the pointer."""
        return Malformed(self.issue.at(prefix))


class Unresolved(KorakError):
    """Internal: a value can't be told at run time. Permanent; the step or the instance fails with its code."""

    code = "type_mismatch"


class MissingValue(Unresolved):
    """Internal: nothing stands at `params["path"]`, where something must."""

    code = "missing_value"

    def __init__(self, path: str) -> None:
        super().__init__(path=path)


@dataclass(frozen=True, slots=True)
class Reference:
    """A path that a value, condition or expression reads. `pointer` is where it is written, from the raw value on.

    `has_default` is true where a missing path is allowed for: by a default, a null test or `has()`.
    """

    path: Path
    has_default: bool
    pointer: str


def parse(text: object) -> Path:
    """The parts of `text`, names and keys as str and indexes as int. Raises Malformed("invalid_value")."""
    if not isinstance(text, str):
        raise _malformed("A path is a string.")
    if len(text) > MAX_LENGTH:
        raise _malformed(f"A path has {MAX_LENGTH} characters at most.")
    return _parse(text)


def parse_rooted(text: object) -> Path:
    """Like `parse`, and the first name must be one of `ROOTS`."""
    path = parse(text)
    if path[0] not in ROOTS:
        raise _malformed(f"The path {text} starts from none of {', '.join(sorted(ROOTS))}.")
    return path


@lru_cache(maxsize=4096)
def _parse(text: str) -> Path:
    first = _NAME.match(text)
    if first is None:
        raise _malformed(f"{text[:80]!r} is no path: it begins with a name.")
    parts: list[str | int] = [first.group()]
    position = first.end()
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            raise _malformed(
                f'{text[:80]!r} is no path: .name, [n] or ["key"] is expected at character {position + 1}.'
            )
        parts.append(_part(match, text))
        position = match.end()
    if len(parts) > MAX_PARTS:
        raise _malformed(f"A path has {MAX_PARTS} parts at most.")
    return tuple(parts)


def _part(match: re.Match[str], text: str) -> str | int:
    name, index, key = match.groups()
    if name is not None:
        return str(name)
    if index is not None:
        return int(index)
    try:
        decoded = str(json.loads(key))
        decoded.encode()
    except ValueError:
        raise _malformed(f"{text[:80]!r} is no path: {key[:40]} is no JSON string.") from None
    return decoded


def lookup(path: Path, roots: Roots) -> Json | Missing:
    """What stands at `path`; MISSING where a key or an index isn't there. `now` gives an ISO 8601 string in UTC."""
    value: Any = roots
    for part in path:
        if isinstance(part, str):
            if not isinstance(value, (dict, Mapping)) or part not in value:
                return MISSING
            value = value[part]
        else:
            if not isinstance(value, list) or part >= len(value):
                return MISSING
            value = value[part]
    found: Json = instants.render(value) if isinstance(value, datetime) else value
    return found


def render(path: Path) -> str:
    """The text of `path`, such that `parse(render(path)) == path` where it begins with a name."""
    return "".join(_render_part(part, number) for number, part in enumerate(path))


def _render_part(part: str | int, number: int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    if _NAME.fullmatch(part):
        return f".{part}" if number else part
    return f"[{json.dumps(part)}]"


def pointer(parts: Iterable[object]) -> str:
    """The RFC 6901 pointer of `parts`, printable whatever a key holds."""
    return "".join("/" + _token(part) for part in parts)


def _token(part: object) -> str:
    text = part if isinstance(part, str) else repr(part)
    text = text[:100].replace("\0", "\\u0000").encode("utf-8", "backslashreplace").decode()
    return text.replace("~", "~0").replace("/", "~1")


def _malformed(detail: str) -> Malformed:
    return Malformed(Issue("invalid_value", params={"detail": detail}))
