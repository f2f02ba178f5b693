"""The application: every operation behind one way in, which reads, allows, answers and counts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, nullcontext
from typing import Final, cast

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from korak.errors import Invalid, NotAnswered, NotFound
from korak.owners.context import within
from korak.owners.reach import Reach, get_reach
from korak.owners.roles import require
from korak.owners.scopes import APPLICATION
from korak.owners.tokens import Credential
from korak.serving import get_routes
from korak_api import addressing, idempotency, openapi, problems
from korak_api.operations import Answer, Call, Operation
from korak_api.parameters import read_query, refuse
from korak_api.requests import check_body, read_json
from korak_api.resources import Resources
from korak_api.routes import OPERATIONS
from korak_api.spooling import receive

NOBODY: Final = Credential.for_owner(APPLICATION, frozenset(), name="nobody")
"""Who asks for what is open to everybody."""

MAX_NAME: Final = 191
"""Characters of a name in an address."""

JSON: Final = "application/json"
ACT_AS: Final = "Korak-Act-As"
SINGLE: Final = ("Authorization", "Korak-Owner", "Idempotency-Key", "If-Match")
UNKNOWN: Final = "unknown"
"""The label of requests to addresses that aren't there."""


def make_app(resources: Resources, operations: Sequence[Operation] = OPERATIONS) -> Starlette:
    """The API."""
    entrance = Entrance(resources)
    routes = [entrance.get_route(path, methods) for path, methods in _by_path(operations).items()]
    description = orjson.dumps(openapi.describe(operations))

    async def show_openapi(request: Request) -> Response:
        return Response(description, media_type=JSON)

    async def refuse(request: Request, error: Exception) -> Response:
        return entrance.refuse(request, error)

    app = Starlette(
        routes=[
            *routes,
            Route("/openapi.json", show_openapi),
            *get_routes(resources.health, resources.metrics),
        ],
        exception_handlers={HTTPException: refuse},
    )
    app.router.redirect_slashes = False
    return app


def _by_path(operations: Sequence[Operation]) -> dict[str, dict[str, Operation]]:
    """What each address answers. Addresses without a variable go first: `/validate` is no key."""
    found: dict[str, dict[str, Operation]] = {}
    for operation in sorted(operations, key=lambda operation: operation.path.count("{")):
        found.setdefault(operation.path, {})[operation.method] = operation
    return found


class Entrance:
    """The one way in."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    def get_route(self, path: str, methods: Mapping[str, Operation]) -> Route:
        """The route of one address, for all its methods."""

        async def answer(request: Request) -> Response:
            method = "GET" if request.method == "HEAD" else request.method
            return await self._measure(request, methods[method])

        # An owner's id may have slashes.
        return Route(path.replace("{scope}", "{scope:path}"), answer, methods=list(methods))

    def refuse(self, request: Request, error: Exception) -> Response:
        """The answer where no operation is meant."""
        if isinstance(error, HTTPException) and error.status_code == 405:
            allow = (error.headers or {}).get("Allow", "")
            response = problems.answer(NotAnswered(method=request.method[:20]), allow=allow)
        else:
            response = problems.answer(NotFound("route_not_found", path=request.url.path[:200]))
        self._resources.metrics.http_requests.labels(UNKNOWN, UNKNOWN, str(response.status_code)).inc()
        return response

    async def _measure(self, request: Request, operation: Operation) -> Response:
        clock, metrics = self._resources.clock, self._resources.metrics
        began = clock.monotonic()
        response = await self._try(request, operation)
        names = (operation.method, operation.path)
        metrics.http_request_seconds.labels(*names).observe(clock.monotonic() - began)
        metrics.http_requests.labels(*names, str(response.status_code)).inc()
        return response

    async def _try(self, request: Request, operation: Operation) -> Response:
        try:
            call = await self._open(request, operation)
            with within(call.reach.owner), call.lines or nullcontext():
                answer = await self._answer(call, operation)
            if answer.stream is not None and request.method == "HEAD":
                await cast("AsyncGenerator[bytes, None]", answer.stream).aclose()
                return Response(media_type=answer.media_type)
            return _respond(answer)
        except Exception as error:
            return problems.answer(error)

    async def _answer(self, call: Call, operation: Operation) -> Answer:
        if not operation.is_kept:
            return await addressing.answer(call, operation)
        return await idempotency.answer(call, operation)

    async def _open(self, request: Request, operation: Operation) -> Call:
        """Read and allow a request: who asks comes first, so that nobody else costs more than that."""
        credential, reach = NOBODY, Reach(APPLICATION)
        _check_headers(request)
        if not operation.is_public:
            credential = await self._resources.credentials.identify(request.headers.get("authorization"))
            reach = get_reach(credential, request.headers.get("korak-owner"))
        if operation.verb is not None:
            require(credential, operation.verb)
        _check_names(request)
        given: dict[str, list[str]] = {}
        for name, value in request.query_params.multi_items():
            given.setdefault(name, []).append(value)
        query = read_query(operation.query, given)
        has_body = operation.method in ("POST", "PUT") and operation.lines is None
        body = await read_json(request, limit=self._resources.settings.api.max_body) if has_body else None
        if operation.translate is not None:
            body = operation.translate(request.headers, body)
        checked = check_body(operation.body, body)
        lines = None if operation.lines is None else await receive(request, self._resources.spools)
        return Call(
            resources=self._resources,
            credential=credential,
            reach=reach,
            path=request.path_params,
            query=query,
            headers=request.headers,
            body=checked if lines is None else {"sha256": lines.digest},
            now=self._resources.clock.now(),
            lines=lines,
        )


def _check_headers(request: Request) -> None:
    """Headers that say who asks, for whom, or for what once, stand once: a proxy may have read the other one."""
    for name in SINGLE:
        if len(request.headers.getlist(name)) > 1:
            raise refuse(name, "the header may stand once")


def _check_names(request: Request) -> None:
    """Whether the names in the address could be anything's: no key or id has other characters, or more.

    Nobody acts as somebody else yet: who asks for it is told, rather than acting as himself.
    """
    if ACT_AS in request.headers:
        raise Invalid("not_available", what=ACT_AS)
    for name in request.path_params.values():
        if len(name) > MAX_NAME or not name.isascii() or not name.isprintable():
            raise NotFound("route_not_found", path=request.url.path[:200])


class Streaming(StreamingResponse):
    """What is sent piece by piece. Whatever ends the connection ends what makes it."""

    def __init__(self, answer: Answer) -> None:
        assert answer.stream is not None
        self._source = answer.stream
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(answer.stream, answer.status, headers, answer.media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer. A connection that is lost before the first piece ends it too."""
        async with aclosing(cast("AsyncGenerator[bytes, None]", self._source)):
            await super().__call__(scope, receive, send)

    async def stream_response(self, send: Send) -> None:
        """Send what comes."""
        async with aclosing(cast("AsyncGenerator[bytes, None]", self._source)):
            await super().stream_response(send)


def _respond(answer: Answer) -> Response:
    if answer.stream is not None:
        return Streaming(answer)
    if answer.body is None:
        return Response(status_code=answer.status, headers=dict(answer.headers))
    return Response(orjson.dumps(answer.body), answer.status, {"content-type": JSON, **answer.headers})
