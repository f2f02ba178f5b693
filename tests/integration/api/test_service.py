"""The service itself: it listens, answers over a socket, and stops."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from korak.clock import Clock
from korak.errors import SettingsError
from korak.model import OwnerRole
from korak.owners.scopes import APPLICATION
from korak.owners.tokens import Credential, digest
from korak.store import tokens
from korak.store.database import Database
from korak_api.service import run
from tests.support import eventually
from tests.support.apis import ORDER, PURE, get_settings

SECRET = "korak_of_this_test"


def get_free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@asynccontextmanager
async def running(url: str, **variables: str) -> AsyncIterator[tuple[httpx.AsyncClient, asyncio.Event]]:
    """The service, listening, and a client with an admin's token."""
    port, stop = get_free_port(), asyncio.Event()
    async with Database(url, "korak") as database, database.transaction() as connection:
        admin = Credential.for_owner(APPLICATION, frozenset({OwnerRole.ADMIN}))
        settings = get_settings(url, KORAK_API__PORT=str(port), **variables)

        await tokens.create(connection, digest(SECRET), credential=admin, now=Clock().now())
    service = asyncio.create_task(run(stop, settings))
    headers = {"authorization": f"Bearer {SECRET}"}
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, trust_env=False) as client:

            async def is_ready() -> bool:
                if service.done():
                    service.result()
                try:
                    return (await client.get("/readyz")).status_code == 200
                except httpx.TransportError:
                    return False

            await eventually(is_ready)
            yield client, stop
    finally:
        stop.set()
        await service


async def test_it_answers_over_a_socket_and_stops(database_url: str) -> None:
    async with running(database_url) as (client, _):
        made = await client.put("/v1/definitions/pure", json={"graph": PURE}, params={"publish": "true"})
        started = await client.post("/v1/definitions/pure/start", json={})
        head = await client.head("/v1/me")

    assert (made.status_code, started.status_code) == (201, 201)
    assert started.json()["instance"]["status"] == "completed"
    assert (head.status_code, head.content) == (200, b"")


async def test_a_body_of_10_mb_gets_its_answer(database_url: str) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 100_000

    async with running(database_url) as (client, _):
        kind = {"content-type": "application/json"}
        whole = await client.post("/v1/emit", content=b"x" * 10_000_000, headers=kind)
        chunked = await client.post("/v1/emit", content=chunks(), headers=kind)
        after = await client.get("/v1/me")

    assert [answer.status_code for answer in (whole, chunked, after)] == [413, 413, 200]
    assert whole.json()["code"] == chunked.json()["code"] == "body_too_large"


async def test_who_waits_is_answered_when_it_stops(database_url: str) -> None:
    async with running(database_url, KORAK_STEPS="tests.support.types") as (client, stop):
        await client.put("/v1/definitions/order", json={"graph": ORDER}, params={"publish": "true"})
        start = client.post("/v1/definitions/order/start", json={"input": {"order": "a"}}, params={"wait": "60"})
        waiting = asyncio.create_task(start)

        async def has_started() -> bool:
            return bool((await client.get("/v1/instances")).json()["items"])

        await eventually(has_started)
        stop.set()
        response = await waiting

    assert (response.status_code, response.json()["instance"]["status"]) == (201, "running")


async def test_a_stop_before_the_start_ends_it_at_once(database_url: str) -> None:
    stop = asyncio.Event()
    stop.set()

    await run(stop, get_settings(database_url))


async def test_a_port_that_is_taken_is_said_with_its_setting(database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = get_settings(database_url, KORAK_API__PORT=str(taken.getsockname()[1]))
        with pytest.raises(SettingsError, match="KORAK_API__PORT"):
            await run(asyncio.Event(), settings)


async def test_it_isn_t_ready_without_its_database() -> None:
    port, stop = get_free_port(), asyncio.Event()
    gone = f"postgresql://nobody@127.0.0.1:{get_free_port()}/nothing"
    service = asyncio.create_task(run(stop, get_settings(gone, KORAK_API__PORT=str(port))))
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:

            async def get_reason() -> str:
                try:
                    response = await client.get("/readyz")
                except httpx.TransportError:
                    return ""
                return str(response.json()["failing"].get("database", "")) if response.status_code == 503 else ""

            assert await eventually(get_reason)
            response = await client.get("/v1/me", headers={"authorization": "Bearer korak_x"})
            assert (response.status_code, response.json()["code"]) == (503, "unavailable")
            assert (await client.get("/healthz")).status_code == 200
    finally:
        stop.set()
        await service
