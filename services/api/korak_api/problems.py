"""The one place where what was raised becomes an answer: problems of RFC 9457."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson
import structlog
from starlette.responses import Response

from korak.codes import render
from korak.errors import Issue, KorakError, Problem, Refused, TransientError, Unauthenticated

TYPE: Final = "urn:korak:problem:"
MEDIA: Final = "application/problem+json"
SHORTLY: Final = "1"
"""Seconds after which what is unavailable may be tried again."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class StartRefused(Refused):
    """A limit on starts holds. The refused instance was kept, and the start may come again after `retry_after` s."""

    def __init__(self, ulid: str, limit: int, retry_after: int) -> None:
        super().__init__(limit=limit)
        self.ulid = ulid
        self.retry_after = retry_after


def answer(error: Exception, *, allow: str | None = None) -> Response:
    """The problem that a caller gets for an exception. What isn't meant for callers is logged, and not told."""
    if isinstance(error, Problem):
        return _respond(error.status, error, get_headers(error, allow), get_members(error))
    if isinstance(error, TransientError):
        unavailable = KorakError("unavailable", None, what=error.params.get("what") or "The server")
        return _respond(503, unavailable, {"retry-after": SHORTLY}, {})
    log.error("request_failed", exc_info=error)
    return _respond(500, KorakError("internal"), {}, {})


def get_headers(error: Problem, allow: str | None) -> dict[str, str]:
    """The headers that go with a problem."""
    match error:
        case Unauthenticated():
            return {"www-authenticate": 'Bearer realm="korak"'}
        case StartRefused():
            return {"retry-after": str(error.retry_after)}
        case Problem(status=405):
            return {"allow": allow or ""}
        case Problem(status=413):
            return {"connection": "close"}
        case Problem(status=503):
            return {"retry-after": SHORTLY}
        case _:
            return {}


def get_members(error: Problem) -> dict[str, Any]:
    """What a problem has besides the members that all have."""
    return {"refused_instance": error.ulid} if isinstance(error, StartRefused) else {}


def show_issues(issues: tuple[Issue, ...]) -> list[Any]:
    """The errors of a problem."""
    return [issue.to_json() for issue in issues]


def _respond(status: int, error: KorakError, headers: Mapping[str, str], members: Mapping[str, Any]) -> Response:
    body = {
        "type": f"{TYPE}{error.code}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": error.message or render(error.code, error.params),
        "code": error.code,
        "params": error.params,
        "errors": show_issues(error.issues) if isinstance(error, Problem) else [],
        **members,
    }
    return Response(orjson.dumps(body), status, {**headers, "content-type": MEDIA})
