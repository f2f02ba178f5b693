"""Reading a request: its body within its bound, as JSON that can be stored, with the members that it may have."""

from __future__ import annotations

from typing import Final

from starlette.requests import ClientDisconnect, Request

from korak.errors import Invalid, Issue, TooLarge, Unreadable, Unsupported
from korak.graphs import hygiene, paths
from korak.model import Json, JsonObject
from korak_api.operations import Body
from korak_api.parameters import refuse

DRAINED: Final = 32
"""How many times its bound a body that is too large is read to, so that its sender sees the answer."""


async def read_json(request: Request, *, limit: int) -> Json:
    """The JSON of a body; None where there is none.

    Raises TooLarge, Unsupported, Unreadable for what isn't JSON, and Invalid for JSON that can't be stored.
    """
    raw = await _read_body(request, limit)
    if not raw:
        return None
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Unsupported
    try:
        return hygiene.loads(raw)
    except Invalid as error:
        if "pointer" in error.params:
            raise
        raise Unreadable(error.code, error.message, issues=error.issues, why=error.params.get("why")) from None


async def _read_body(request: Request, limit: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in request.stream():
            size += len(chunk)
            if size <= limit:
                chunks.append(chunk)
            elif size > limit * DRAINED:
                break
    except ClientDisconnect:
        raise Unreadable("invalid_json", None, why="the connection was closed before its end") from None
    if size > limit:
        raise TooLarge(limit=limit)
    return b"".join(chunks)


def check_body(declared: Body | None, given: Json) -> JsonObject:
    """The members of a body. Raises Invalid with every member that is wrong, unknown or not served yet."""
    if declared is None:
        if given not in (None, {}):
            raise _refuse([Issue("invalid_value", "", {"detail": "This call takes no body"})])
        return {}
    body = {} if given is None else given
    if not isinstance(body, dict):
        raise _refuse([Issue("invalid_value", "", {"detail": "It is an object"})])
    early = [
        Issue("not_available", paths.pointer([name]), {"what": name}) for name in body if name in declared.unserved
    ]
    if early:
        raise _refuse(early)
    issues = declared.checked.check(body, code="invalid_value")
    if issues:
        raise _refuse(issues)
    return body


def _refuse(issues: list[Issue]) -> Invalid:
    return Invalid("invalid_request", issues=issues)


def read_header(name: str, value: str | None, most: int) -> str | None:
    """A header's text, printable and not too long. Raises Invalid."""
    if value is None:
        return None
    if not 0 < len(value) <= most or not value.isprintable() or not value.isascii():
        raise refuse(name, f"it has 1 to {most} printable characters")
    return value
