"""What services share: where they are found, how they say that they are ready, how HTTP starts and stops."""

from __future__ import annotations

import asyncio
import socket

import httpx
import pytest
from starlette.applications import Starlette

from korak import config, serving
from korak.errors import SettingsError
from korak.metrics import Metrics
from korak.service import Health, get_service, list_services


def test_the_four_services_are_found_by_their_entry_points() -> None:
    assert set(list_services()) == {"api", "engine", "escalator", "waker"}


def test_a_service_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(SettingsError, match="api, engine, escalator, waker"):
        get_service("mailer")


def test_a_service_is_not_ready_before_it_says_so() -> None:
    health = Health()
    assert not health.is_ready
    health.mark("service")
    assert health.is_ready
    health.mark("database", "connection refused")
    assert health.failing == {"database": "connection refused"}
    health.mark("database")
    assert health.is_ready


def make_client(health: Health, metrics: Metrics) -> httpx.AsyncClient:
    app = Starlette(routes=serving.get_routes(health, metrics))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://korak")


async def test_health_readiness_and_metrics_are_answered() -> None:
    health, metrics = Health(), Metrics()
    metrics.starts.labels("created").inc()
    async with make_client(health, metrics) as client:
        assert (await client.get("/healthz")).status_code == 200
        waiting = await client.get("/readyz")
        assert (waiting.status_code, waiting.json()["failing"]) == (503, {"service": "starting"})
        health.mark("service")
        assert (await client.get("/readyz")).json() == {"status": "ready", "failing": {}}
        shown = await client.get("/metrics")
        assert 'korak_starts_total{result="created"} 1.0' in shown.text
        assert shown.headers["content-type"].startswith("text/plain; version=0.0.4")


async def test_serving_ends_with_the_stop_and_frees_the_port() -> None:
    stop, health = asyncio.Event(), Health()
    listener = serving.listen("127.0.0.1", 0, setting="KORAK_HEALTH__PORT")
    port = listener.getsockname()[1]
    app = Starlette(routes=serving.get_routes(health, Metrics()))
    running = asyncio.ensure_future(serving.serve(stop, app, listener))
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"http://127.0.0.1:{port}/healthz")).text == "alive\n"
    stop.set()
    await asyncio.wait_for(running, 10)
    serving.listen("127.0.0.1", port, setting="KORAK_HEALTH__PORT").close()


async def test_a_stop_before_the_start_ends_serving() -> None:
    stop = asyncio.Event()
    stop.set()
    listener = serving.listen("127.0.0.1", 0, setting="KORAK_HEALTH__PORT")
    await asyncio.wait_for(serving.serve(stop, Starlette(), listener), 10)


async def test_without_a_port_health_is_not_served() -> None:
    stop = asyncio.Event()
    waiting = asyncio.ensure_future(serving.serve_health(stop, config.Health(), Health(), Metrics()))
    stop.set()
    await asyncio.wait_for(waiting, 5)


async def test_a_taken_port_is_told_with_the_setting_to_change() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings = config.Health(port=port)
        with pytest.raises(SettingsError, match=f"127.0.0.1:{port}.*KORAK_HEALTH__PORT"):
            await serving.serve_health(asyncio.Event(), settings, Health(), Metrics())
