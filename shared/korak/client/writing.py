"""What a client sends, looked at before it goes out: a body as JSON, the key of a request, how long to wait."""

from __future__ import annotations

import math
from typing import Any, Final

import orjson
from ulid import ULID

from korak.errors import Invalid, Issue
from korak.graphs import hygiene, paths

MAX_KEY: Final = 191


def write(body: Any) -> bytes:
    """A body as JSON; tuples become lists, dates and times text. Raises Invalid("invalid_json") for what isn't."""
    issue = hygiene.check_json(body)
    if issue is None:
        return orjson.dumps(body)
    try:
        raw = orjson.dumps(body)
    except TypeError:
        raise _refuse(issue) from None
    if issue := _find_odd_number(body):
        raise _refuse(issue)
    return raw


def read_key(key: str | None) -> str:
    """The Idempotency-Key of a request, one of its own where none is given. Raises Invalid("invalid_parameter")."""
    if key is None:
        return f"korak-{ULID()}"
    if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY or not key.isascii() or not key.isprintable():
        detail = f"it has 1 to {MAX_KEY} printable characters"
        raise Invalid("invalid_parameter", None, name="Idempotency-Key", detail=detail)
    return key


def read_wait(wait: float) -> float:
    """The seconds that the server waits. Raises Invalid("invalid_parameter")."""
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not 0 <= wait < math.inf:
        raise Invalid("invalid_parameter", None, name="wait", detail="it is a number of seconds")
    return wait


def _find_odd_number(body: Any) -> Issue | None:
    """A number that JSON hasn't got, and that would go out as null."""
    pending: list[tuple[Any, tuple[Any, ...]]] = [(body, ())]
    while pending:
        value, at = pending.pop()
        if isinstance(value, float) and not math.isfinite(value):
            pointer = paths.pointer(at)
            return Issue("invalid_json", pointer, {"pointer": pointer, "why": f"{value} is no JSON number"})
        if isinstance(value, dict):
            pending += [(member, (*at, key)) for key, member in value.items()]
        elif isinstance(value, (list, tuple)):
            pending += [(member, (*at, index)) for index, member in enumerate(value)]
    return None


def _refuse(issue: Issue) -> Invalid:
    return Invalid("invalid_json", None, issues=[issue], why=str(issue.params["why"]), pointer=issue.pointer)
