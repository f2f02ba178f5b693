"""One request and what comes of it. The blocking one is made from this module: `python -m tests.support.twins`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

import httpx

from korak.client import problems, writing
from korak.client.finding import find_place
from korak.client.gathering import AsyncPieces, gather_async
from korak.client.pausing import rest_async
from korak.client.streaming import Reader, Sent
from korak.clock import Clock
from korak.loop import Backoff

TIMEOUT = 10.0
RETRIES = 6
BACKOFF = Backoff(first=0.1, most=5.0)
QUIET = 60.0
"""Seconds without a word after which a stream counts as lost."""

LONG = 600.0
"""Seconds that a run may take to be written down, or to be read."""

LINES = "application/x-ndjson"

PAGE = 200
END = "end"
"""The name of a stream's last event."""


class AsyncLink:
    """The way to one API, with one token."""

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        owner: str | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        place = find_place(url, token)
        headers = {"authorization": f"Bearer {place.token}"}
        if owner is not None:
            headers["korak-owner"] = owner
        self.url: str = place.url
        self._timeout = timeout
        self._retries = retries
        self._clock = Clock()
        self._client = httpx.AsyncClient(base_url=place.url, headers=headers, transport=transport, trust_env=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def post(self, path: str, body: Any = None, *, key: str | None = None, wait: float = 0.0) -> Any:
        """Any POST; `key` is its Idempotency-Key, one of its own if left out."""
        headers = {"idempotency-key": writing.read_key(key)}
        return await self.call("POST", path, body={} if body is None else body, headers=headers, wait=wait)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        wait: float = 0.0,
    ) -> Any:
        """Any request: the JSON that comes back. A body goes out as JSON; `wait` is the server's, in seconds."""
        seconds = writing.read_wait(wait)
        request = self._client.build_request(
            method,
            httpx.URL(path).copy_merge_params({**(params or {}), **({"wait": f"{seconds:g}"} if seconds else {})}),
            content=None if body is None else writing.write(body),
            headers={**(headers or {}), **({} if body is None else {"content-type": "application/json"})},
            timeout=self._timeout + seconds,
        )
        return await self._send(request)

    async def _send(self, request: httpx.Request) -> Any:
        failures = 0
        while True:
            pause = 0.0
            try:
                response = await self._client.send(request)
            except httpx.TransportError as error:
                if failures >= self._retries:
                    raise self._give_up(error) from None
            else:
                if failures >= self._retries or not problems.passes(response):
                    return problems.read(response)
                pause = problems.get_pause(response)
            failures += 1
            await rest_async(max(BACKOFF.after(failures), min(pause, BACKOFF.most)))

    async def upload(self, path: str, lines: AsyncPieces, *, key: str | None = None) -> Any:
        """A POST of lines of JSON, which may be many and come in pieces; `key` as in `post`."""
        headers = {"idempotency-key": writing.read_key(key), "content-type": LINES}
        content = await gather_async(lines)
        request = self._client.build_request("POST", path, content=content, headers=headers, timeout=LONG)
        return await self._send(request)

    async def download(self, path: str) -> AsyncIterator[bytes]:
        """The pieces of a long answer. What breaks off isn't begun again: Unreachable."""
        try:
            async with self._client.stream("GET", path, timeout=LONG) as response:
                if not response.is_success:
                    await response.aread()
                    problems.read(response)
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx.TransportError as error:
            raise self._give_up(error) from None

    async def iterate(self, path: str, limit: int | None, params: Mapping[str, Any]) -> AsyncIterator[Any]:
        """What stands on the pages of a list; `limit` at most."""
        left = limit
        while left is None or left > 0:
            asked = {**params, "limit": PAGE if left is None else min(PAGE, left)}
            page = await self.call("GET", path, params=asked)
            for item in page["items"]:
                yield item
            if page["next"] is None:
                return
            left = None if left is None else left - len(page["items"])
            params = {**params, "cursor": page["next"]}

    async def stream(self, path: str, after: int = 0) -> AsyncIterator[Sent]:
        """The events of a stream behind a number, until its end; where the connection is lost it is opened again."""
        failures = 0
        while True:
            try:
                async with self._client.stream("GET", path, params={"after": after}, timeout=QUIET) as response:
                    if not response.is_success:
                        await response.aread()
                        problems.read(response)
                    reader = Reader()
                    async for line in response.aiter_lines():
                        sent = reader.feed(line)
                        if sent is None:
                            continue
                        failures = 0
                        after = after if sent.number is None else sent.number
                        yield sent
                        if sent.name == END:
                            return
            except httpx.TransportError as error:
                if failures >= self._retries:
                    raise self._give_up(error) from None
            failures += 1
            await rest_async(BACKOFF.after(failures))

    def _give_up(self, error: Exception) -> problems.Unreachable:
        why = f"Nothing answers at {self.url} ({type(error).__name__}). Is Korak running?"
        return problems.Unreachable("unavailable", why)
