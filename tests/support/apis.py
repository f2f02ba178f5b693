"""The API on a database of the test's own, called in this process, and small graphs for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx

from korak.broker.notify import NotifyBroker
from korak.clock import Clock
from korak.config import Settings, load_settings
from korak.metrics import Metrics
from korak.model import JsonObject, OwnerRole
from korak.owners.scopes import parse_owner
from korak.owners.tokens import Credential, create_secret, digest
from korak.service import Health
from korak.store import tokens
from korak.store.channels import Channels
from korak.store.database import Database
from korak_api.app import make_app
from korak_api.resources import Ground, Resources
from korak_api.service import connect
from tests.support.types import get_registry

URL = "http://korak.test"


@dataclass
class Api:
    """The API under test. Requests go out as the app-wide admin unless another secret is given."""

    resources: Resources
    client: httpx.AsyncClient
    admin: str
    stop: asyncio.Event
    secrets: dict[tuple[str, ...], str] = field(default_factory=dict)

    @property
    def database(self) -> Database:
        """The database that it stands on."""
        return self.resources.database

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        **params: Any,
    ) -> httpx.Response:
        """One request; a body goes out as JSON."""
        given = {"authorization": f"Bearer {token or self.admin}", **(headers or {})}
        return await self.client.request(method, path, json=body, headers=given, params=params)

    async def get(self, path: str, **rest: Any) -> httpx.Response:
        """A GET."""
        return await self.send("GET", path, **rest)

    async def post(self, path: str, body: Any = None, **rest: Any) -> httpx.Response:
        """A POST."""
        return await self.send("POST", path, body, **rest)

    async def make_token(self, *roles: OwnerRole, owner: str = "*", user: str | None = None) -> str:
        """The secret of a new token."""
        secret = create_secret()
        credential = Credential.for_owner(parse_owner(owner), frozenset(roles), user=user, name="test")
        async with self.database.acquire() as connection:
            await tokens.create(connection, digest(secret), credential=credential, now=self.resources.clock.now())
        return secret

    async def publish(self, document: JsonObject, **rest: Any) -> Any:
        """The definition, published."""
        path, body = f"/v1/definitions/{document['key']}", {"graph": document}
        response = await self.send("PUT", path, body, publish="true", headers={"if-match": "*"}, **rest)
        if response.status_code == 412:
            response = await self.send("PUT", path, body, publish="true", **rest)
        assert response.status_code in (200, 201), response.text
        return response.json()

    async def start(self, key: str, body: Any = None, **rest: Any) -> Any:
        """The instance of a new start."""
        response = await self.post(f"/v1/definitions/{key}/start", body or {}, **rest)
        assert response.status_code == 201, response.text
        return response.json()["instance"]

    async def show(self, ulid: str, **rest: Any) -> Any:
        """The instance."""
        response = await self.get(f"/v1/instances/{ulid}", **rest)
        assert response.status_code == 200, response.text
        return response.json()

    async def list_all(self, ulid: str, what: str) -> Any:
        """The items of one page of what belongs to the instance."""
        return (await self.get(f"/v1/instances/{ulid}/{what}", limit=200)).json()["items"]

    async def get_id(self, ulid: str) -> int:
        """The instance's id."""
        [row] = await self.fetch("select id from workflow_instances where ulid = $1", ulid)
        found: int = row["id"]
        return found

    async def fetch(self, query: str, *given: Any) -> list[Any]:
        """Rows of the database."""
        async with self.database.acquire() as connection:
            return list(await connection.fetch(query, *given))


@asynccontextmanager
async def open_api(url: str, *, clock: Clock | None = None, **variables: str) -> AsyncIterator[Api]:
    """The API on a migrated database, with the Postgres broker; settings by the names of their variables."""
    settings = get_settings(url, **variables)
    stop = asyncio.Event()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(url, settings.database.schema, name="api under test"))
        channels = await stack.enter_async_context(Channels(url, settings.database.schema))
        broker = await stack.enter_async_context(NotifyBroker(channels))
        ground = Ground(settings, database, broker, get_registry(), clock or Clock(), Metrics(), Health())
        resources = await connect(stack, ground, stop)
        transport = httpx.ASGITransport(make_app(resources), raise_app_exceptions=True)
        client = await stack.enter_async_context(httpx.AsyncClient(transport=transport, base_url=URL))
        api = Api(resources, client, "", stop)
        api.admin = await api.make_token(OwnerRole.ADMIN)
        yield api
        stop.set()


def get_settings(url: str, **variables: str) -> Settings:
    """Settings on that database."""
    return load_settings({"KORAK_DATABASE__URL": url, **variables})


def chain(key: str, *nodes: JsonObject, inputs: JsonObject | None = None, **settings: Any) -> JsonObject:
    """A graph of nodes one after the other, ending in `done`."""
    trigger: JsonObject = {"on": "manual"} if inputs is None else {"on": "manual", "inputs": inputs}
    listed: list[Any] = [{"id": "start", "type": "trigger", "config": trigger}, *nodes]
    listed.append({"id": "done", "type": "end", "config": {"result": {"ref": "state"}}})
    edges: list[Any] = [{"from": before["id"], "to": after["id"]} for before, after in pairwise(listed)]
    late = [each["id"] for each in listed if each["type"] == "wait" and "timeout" in each["config"]]
    edges += [{"from": name, "outcome": "timed_out", "to": "done"} for name in late]
    return {
        "schema": "korak.graph/v1",
        "key": key,
        "name": key.title(),
        "nodes": listed,
        "edges": edges,
        "settings": settings,
    }


def node(name: str, kind: str, **config: Any) -> JsonObject:
    """A node of a chain."""
    return {"id": name, "type": kind, "config": config}


def save(name: str) -> JsonObject:
    """One that saves what it gives under its name."""
    return node(name, "test.price", order=name) | {"save": {"key": name}}


ORDER = chain(
    "order",
    node("price", "test.price", order={"ref": "input.order"}),
    inputs={
        "order": {"type": "string", "required": True},
        "count": {"type": "integer", "default": 1},
    },
)
"""One step of an engine's, with a declared input."""

PURE = chain("pure", node("note", "set_field", field="state.note", value="seen"))
"""Ends in the transaction that starts it."""
