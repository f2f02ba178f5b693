"""HTTP around a service: /healthz, /readyz and /metrics on every one, and the one way in which an app is served."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from korak import config
from korak.errors import SettingsError
from korak.metrics import CONTENT_TYPE, Metrics
from korak.service import Health

GRACE = 5
"""How many seconds open requests have once the service stops."""


def get_routes(health: Health, metrics: Metrics) -> list[Route]:
    """The routes that every service has."""

    async def healthz(request: Request) -> Response:
        return PlainTextResponse("alive\n")

    async def readyz(request: Request) -> Response:
        status = "ready" if health.is_ready else "not ready"
        return JSONResponse({"status": status, "failing": health.failing}, 200 if health.is_ready else 503)

    async def show_metrics(request: Request) -> Response:
        return Response(metrics.expose(), headers={"content-type": CONTENT_TYPE})

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", show_metrics)]


async def serve_health(stop: asyncio.Event, settings: config.Health, health: Health, metrics: Metrics) -> None:
    """Serve those routes on the port of the settings until `stop` is set; without a port only wait for it."""
    if settings.port is None:
        await stop.wait()
        return
    listener = listen(settings.host, settings.port, setting="KORAK_HEALTH__PORT")
    await serve(stop, Starlette(routes=get_routes(health, metrics)), listener)


def listen(host: str, port: int, *, setting: str) -> socket.socket:
    """A socket on the address. Raises SettingsError, which names the setting to change, where it can't be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = f"{host}:{port} can't be listened on ({error.strerror or error}): set {setting} to another port, or stop"
        raise SettingsError("invalid_setting", f"{why} what uses it.") from error


async def serve(stop: asyncio.Event, app: ASGIApp, listener: socket.socket, *, grace: int = GRACE) -> None:
    """Serve the app until `stop` is set, then let open requests end for `grace` seconds."""
    server = _Server(
        uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, timeout_graceful_shutdown=grace)
    )
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))
    stopping = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopping.cancel()
        server.should_exit = True
        await serving
        listener.close()


class _Server(uvicorn.Server):
    """Signals belong to the command line, not to a server inside a service."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
