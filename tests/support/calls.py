"""A client of the real API, as patient as a caller should be: what got no answer is asked again under the same key."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

import httpx

from korak.model import JsonObject
from tests.support.waiting import eventually

PATIENCE = 60.0
UNANSWERED = (500, 502, 503, 504)


class Refused(Exception):
    """The API has answered with a problem."""

    def __init__(self, answer: httpx.Response) -> None:
        self.status = answer.status_code
        self.problem: dict[str, Any] = answer.json() if answer.content else {}
        super().__init__(
            f"{answer.request.method} {answer.request.url.path}: {answer.status_code} {answer.text[:2000]}"
        )

    @property
    def code(self) -> str | None:
        """The problem's code."""
        return self.problem.get("code")


class Calls:
    """An async context manager. Every call gives the answer's body, and raises Refused where it is a problem."""

    def __init__(self, url: str, token: str) -> None:
        self._client = httpx.AsyncClient(
            base_url=url,
            headers={"authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(70, connect=5),
            limits=httpx.Limits(max_connections=32),
            trust_env=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def send(self, method: str, path: str, body: Any = None, **given: Any) -> Any:
        """One call, repeated until it has an answer: it must be one that may be repeated."""

        async def ask() -> httpx.Response | None:
            try:
                answer = await self._client.request(method, path, json=body, **given)
            except httpx.TransportError:
                return None
            return None if answer.status_code in UNANSWERED else answer

        answer = await eventually(ask, PATIENCE, message=f"{method} {path} has no answer")
        assert answer is not None
        if answer.status_code >= 400:
            raise Refused(answer)
        return answer.json() if answer.content else None

    async def raw(self, method: str, path: str, **given: Any) -> httpx.Response:
        """One call as it is, with its answer as it came."""
        return await self._client.request(method, path, **given)

    async def publish(self, graph: Mapping[str, Any]) -> None:
        """Make a definition and publish it."""
        key = graph["key"]
        await self.send("POST", "/v1/definitions", {"graph": graph})
        await self.send("POST", f"/v1/definitions/{key}/publish")

    async def start(self, key: str, given: Mapping[str, Any], *, once: str | None = None, wait: float = 0) -> Any:
        """The instance that was started, or that was under the key `once`."""
        headers = {"idempotency-key": once or token_hex(8)}
        path = f"/v1/definitions/{key}/start"
        answer = await self.send("POST", path, {"input": given}, headers=headers, params={"wait": wait} if wait else {})
        return answer["instance"]

    async def get(self, instance: str, what: str = "", **query: Any) -> Any:
        """An instance, or one of its lists."""
        found = await self.send("GET", f"/v1/instances/{instance}{what and '/'}{what}", params=query)
        return found["items"] if what else found

    async def wait_for_end(self, instance: str, timeout: float = 30) -> Any:
        """The instance, once it has ended."""

        async def look() -> Any:
            found = await self.get(instance)
            return found if found["ended_at"] else None

        return await eventually(look, timeout, message=f"{instance} doesn't end")

    async def signal(self, instance: str, name: str, payload: JsonObject | None = None) -> Any:
        """Send a signal: one, however often it had to be sent."""
        body = {"name": name, "payload": payload or {}, "id": token_hex(8)}
        return await self.send("POST", f"/v1/instances/{instance}/signal", body)

    async def emit(self, name: str, payload: JsonObject | None = None) -> Any:
        """Emit an event: one, however often it had to be sent."""
        return await self.send("POST", "/v1/emit", {"name": name, "payload": payload or {}, "id": token_hex(8)})
