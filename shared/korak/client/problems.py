"""From an answer to what it says: its JSON, or the exception that the API's problem stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import httpx
import orjson

from korak.errors import (
    Conflict,
    Forbidden,
    Invalid,
    Issue,
    NotAnswered,
    NotFound,
    Problem,
    Refused,
    Stale,
    TooLarge,
    Unauthenticated,
    Unavailable,
    Unconditional,
    Unreadable,
    Unsupported,
)
from korak.model import JsonObject

_CLASSES: Final[tuple[type[Problem], ...]] = (
    Unreadable,
    Unauthenticated,
    Forbidden,
    NotFound,
    NotAnswered,
    Conflict,
    Stale,
    TooLarge,
    Unsupported,
    Invalid,
    Unconditional,
    Refused,
    Unavailable,
)
BY_STATUS: Final[Mapping[int, type[Problem]]] = {kind.status: kind for kind in _CLASSES}
"""The exceptions of `korak.errors` that an answer may stand for."""

PASSING: Final = frozenset({502, 503, 504})
"""Statuses of a server that can't answer now."""

IN_PROGRESS: Final = "request_in_progress"


class Unreachable(Unavailable):
    """Nothing answers where the API is said to be, or what answers isn't Korak's API."""


def passes(response: httpx.Response) -> bool:
    """Whether the same request may have another answer in a moment."""
    return response.status_code in PASSING or (
        response.status_code == Conflict.status and _read_body(response).get("code") == IN_PROGRESS
    )


def get_pause(response: httpx.Response) -> float:
    """The seconds that a server asks to wait."""
    said = response.headers.get("retry-after", "")
    return float(said) if said.isascii() and said.isdecimal() else 0.0


def read(response: httpx.Response) -> Any:
    """The JSON of an answer, None where it is empty. Raises the Problem that it tells, with its code and issues."""
    if response.is_success:
        try:
            return orjson.loads(response.content) if response.content else None
        except orjson.JSONDecodeError:
            raise Unreachable("unavailable", f"{response.url} answers, but it isn't Korak's API.") from None
    body = _read_body(response)
    kind = BY_STATUS.get(response.status_code, Problem)
    told = f"{response.url} answered {response.status_code} {response.reason_phrase}"
    problem = kind(
        str(body.get("code") or "internal"),
        _tell(str(body.get("detail") or body.get("title") or told), body),
        issues=_list_issues(body),
    )
    problem.params = _get_object(body, "params")
    problem.status = response.status_code
    problem.body = {"detail": told, **body}
    raise problem


def _tell(detail: str, body: Mapping[str, Any]) -> str:
    """What went wrong, with the first thing that is wrong where the whole doesn't say it."""
    error = next(iter(body.get("errors") or ()), None)
    if error is None:
        return detail
    first = str(error.get("message") or error.get("code"))
    return detail if first in detail else f"{detail} {error.get('pointer') or '/'}: {first}"


def _read_body(response: httpx.Response) -> dict[str, Any]:
    """The problem that was answered. Whatever stands between here and the API may have answered something else."""
    try:
        body = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(body, dict):
        return {}
    errors = body.get("errors")
    if isinstance(errors, list) and all(isinstance(error, dict) for error in errors):
        return body
    return {name: value for name, value in body.items() if name != "errors"}


def _list_issues(body: Mapping[str, Any]) -> Iterator[Issue]:
    for error in body.get("errors") or ():
        yield Issue(
            str(error.get("code")),
            error.get("pointer") or "",
            _get_object(error, "params"),
            node=error.get("node"),
            edge=error.get("edge"),
        )


def _get_object(body: Mapping[str, Any], name: str) -> JsonObject:
    value = body.get(name)
    return value if isinstance(value, dict) else {}
