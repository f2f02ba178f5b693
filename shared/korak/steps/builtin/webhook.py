"""webhook: one HTTP call out, safe to repeat by its Idempotency-Key."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Final, cast

import httpx

from korak.errors import Invalid, Issue, StepFailed, StepRetry
from korak.graphs import hygiene, paths
from korak.graphs.contracts import Scope
from korak.model import Json, JsonObject
from korak.steps.builtin import shapes
from korak.steps.context import StepContext, StepView
from korak.steps.contract import SECRET_MARK, StepType
from korak.steps.guard import Guard
from korak.steps.results import Complete
from korak.steps.transport import GuardedTransport, Resolve, resolve

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
TRY_AGAIN: Final = frozenset({408, 425, 429})
LONGEST_WAIT: Final = timedelta(days=7)
MAX_OUTPUT: Final = 64 * 1024
ENVELOPE: Final = 64
"""The bytes of an output around its body."""
MAX_DEPTH: Final = 60

OWN_HEADERS = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "idempotency-key", "te", "transfer-encoding", "upgrade"}
)
"""Set by this type alone."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]{0,8192}")


@dataclass(frozen=True, slots=True)
class Call:
    """What is sent, secrets in it. Its repr shows nothing of them."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None

    def __repr__(self) -> str:
        return f"Call({self.method})"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, as much of it as an output can hold."""

    status: int
    headers: httpx.Headers
    body: bytes
    is_whole: bool


class Webhook(StepType):
    """Calls a URL.

    2xx completes, or the statuses in `expect` instead. 408, 425, 429, 5xx and what keeps an answer from coming are
    tried again, not before the Retry-After; every other status, a redirect too, fails for good.
    """

    key = "webhook"
    label = "Webhook"
    description: str | None = "Calls a URL and takes the answer as its output."
    category = "integration"
    config_schema: JsonObject = shapes.shape(
        {
            "url": {"title": "URL", "type": "string", "minLength": 1, SECRET_MARK: True},
            "method": {"title": "Method", "enum": list(METHODS), "default": "POST"},
            "headers": {
                "title": "Headers",
                "type": "object",
                "additionalProperties": shapes.VALUE,
                SECRET_MARK: True,
            },
            "body": {**shapes.VALUE, "title": "Body", SECRET_MARK: True},
            "expect": {
                "title": "Statuses that are a success",
                "type": "array",
                "items": {"type": "integer", "minimum": 200, "maximum": 599},
                "minItems": 1,
                "uniqueItems": True,
            },
        },
        required=["url"],
    )
    output_schema: JsonObject | None = shapes.shape(
        {"status": {"type": "integer"}, "body": {}}, required=["status", "body"]
    )

    def __init__(self, guard: Guard | None = None, *, seconds: float = 30, resolve: Resolve = resolve) -> None:
        self._guard = guard or Guard()
        self._seconds = seconds
        self._resolve = resolve

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """A URL and header names that are written out must be ones that can be sent."""
        issues = []
        url = config.get("url")
        if isinstance(url, str) and not url.startswith(("http://", "https://")):
            issues.append(shapes.wrong("/url", "An http or https URL is expected."))
        headers = config.get("headers")
        names = headers if isinstance(headers, dict) and not shapes.is_form(headers) else ()
        wrong = ((name, _why_not_header(name)) for name in names)
        return [*issues, *(shapes.wrong(paths.pointer(("headers", name)), why) for name, why in wrong if why)]

    async def handle(self, ctx: StepContext) -> Complete:
        """Call once; the engine repeats."""
        call = read_call(ctx)
        try:
            async with asyncio.timeout(self._seconds):
                answer = await self._send(call)
        except TimeoutError:
            raise _unavailable(f"no answer within {self._seconds:g} s") from None
        except httpx.TransportError as error:
            raise _unavailable(type(error).__name__) from None
        return _judge(answer, ctx)

    async def _send(self, call: Call) -> Answer:
        limits = httpx.Limits(max_keepalive_connections=0)
        inner = httpx.AsyncHTTPTransport(verify=self._tls, trust_env=False, limits=limits)
        transport = GuardedTransport(self._guard, inner, self._resolve)
        async with httpx.AsyncClient(transport=transport, timeout=self._seconds, trust_env=False) as client:
            try:
                request = client.build_request(call.method, call.url, headers=dict(call.headers), content=call.content)
                response = await client.send(request, stream=True)
            except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeError):  # the last for a wrong xn-- name
                raise StepFailed("invalid_input", pointer="/url", detail="it can't be called") from None
            try:
                return await _read(response)
            finally:
                await response.aclose()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return httpx.create_ssl_context()


def read_call(ctx: StepView) -> Call:
    """What the config says to send, with its secrets. Raises `invalid_input`, `secret_missing`."""
    config = ctx.config
    url = ctx.reveal("url")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")):
        raise StepFailed("invalid_input", pointer="/url", detail="an http or https URL is expected")
    given = ctx.reveal("headers") if "headers" in config else {}
    headers = _read_headers(given)
    content, kind = _encode(ctx.reveal("body")) if "body" in config else (None, None)
    if kind is not None:
        headers = {"content-type": kind, **headers}
    headers |= {"accept-encoding": "identity", "idempotency-key": ctx.idempotency_key}
    headers.setdefault("user-agent", "korak")
    return Call(cast("str", config.get("method", "POST")), url, headers, content)


def _read_headers(given: Json) -> dict[str, str]:
    if not isinstance(given, dict):
        raise StepFailed("invalid_input", pointer="/headers", detail="an object is expected")
    headers = {}
    for name, value in given.items():
        if value is None:
            continue
        text = value if isinstance(value, str) else hygiene.dumps(value).decode()
        why = _why_not_header(name) or (None if _HEADER_VALUE.fullmatch(text) else "It can't be sent in a header.")
        if why is not None:
            raise StepFailed("invalid_input", pointer=paths.pointer(("headers", name)), detail=why)
        headers[name.lower()] = text
    return headers


def _why_not_header(name: str) -> str | None:
    if not _HEADER_NAME.fullmatch(name):
        return "It is no header's name."
    return "This header is set by the step itself." if name.lower() in OWN_HEADERS else None


def _encode(body: Json) -> tuple[bytes, str]:
    if isinstance(body, str):
        return body.encode(), "text/plain; charset=utf-8"
    return hygiene.dumps(body), "application/json"


async def _read(response: httpx.Response) -> Answer:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_OUTPUT:
            break
    return Answer(response.status_code, response.headers, bytes(body[:MAX_OUTPUT]), len(body) <= MAX_OUTPUT)


def _judge(answer: Answer, ctx: StepView) -> Complete:
    expected = ctx.config.get("expect") or range(200, 300)
    if answer.status in cast("Sequence[int]", expected):
        return Complete(output={"status": answer.status, "body": read_body(answer)})
    if answer.status in TRY_AGAIN or answer.status >= 500:
        after = read_retry_after(answer.headers.get("retry-after"), ctx.now)
        raise _unavailable(f"status {answer.status}", after)
    raise StepFailed("webhook_rejected", status=answer.status)


def read_body(answer: Answer, room: int = MAX_OUTPUT - ENVELOPE) -> Json:
    """The body as JSON where it is that and fits, else as text, clipped to `room` bytes; None where there is none."""
    if not answer.body or answer.headers.get("content-encoding", "identity") != "identity":
        return None
    if answer.is_whole and "json" in answer.headers.get("content-type", ""):
        try:
            value = hygiene.loads(answer.body, max_depth=MAX_DEPTH)
        except Invalid:
            return _clip(answer.body, room)
        if hygiene.size(value) <= room:
            return value
    return _clip(answer.body, room)


def _clip(body: bytes, room: int) -> str:
    text = body.decode("utf-8", "replace").replace("\0", "\ufffd")
    while (size := hygiene.size(text)) > room:
        text = text[: max(len(text) * room // size - 1, 0)]
    return text


def read_retry_after(header: str | None, now: datetime) -> timedelta | None:
    """How long a receiver asks to be left alone, a week at most; None where it says nothing that can be read."""
    if header is None:
        return None
    if header.isascii() and header.isdigit():
        return min(timedelta(seconds=int(header[:9])), LONGEST_WAIT)
    try:
        time = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return None
    wait = (time if time.tzinfo else time.replace(tzinfo=UTC)) - now
    return min(max(wait, timedelta()), LONGEST_WAIT)


def _unavailable(detail: str, after: timedelta | None = None) -> StepRetry:
    return StepRetry("webhook_unavailable", after=after, detail=detail)
