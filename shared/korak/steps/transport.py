"""Connections to checked addresses only: the address that was checked is the one connected to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

import httpx

from korak.steps.guard import Guard

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Answers a host name and a port with addresses."""

PORTS = {"http": 80, "https": 443}


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of `host`, as the system resolves it."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedTransport(httpx.AsyncBaseTransport):
    """Resolves a name once, has every address checked, and connects to those: a second answer can't lead elsewhere.

    TLS still speaks to the name, and the certificate must be its. Connections aren't kept, so that none is used for
    another name at the same address.
    """

    def __init__(self, guard: Guard, inner: httpx.AsyncBaseTransport, resolve: Resolve = resolve) -> None:
        self._guard = guard
        self._inner = inner
        self._resolve = resolve

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request to the first address that takes a connection. Raises `address_refused`."""
        host, port = _read_target(request.url)
        addresses = await self._look_up(host, port)
        self._guard.check(host, addresses, port)
        for address in addresses[:-1]:
            try:
                return await self._inner.handle_async_request(_pin(request, host, address))
            except httpx.ConnectError:
                continue
        return await self._inner.handle_async_request(_pin(request, host, addresses[-1]))

    async def aclose(self) -> None:
        """Close what is underneath."""
        await self._inner.aclose()

    async def _look_up(self, host: str, port: int) -> Sequence[str]:
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpx.ConnectError("the name can't be resolved") from error
        if not addresses:
            raise httpx.ConnectError("the name has no address")
        return addresses


def _read_target(url: httpx.URL) -> tuple[str, int]:
    host = url.raw_host.decode("ascii").strip("[]")
    port = PORTS.get(url.scheme) if url.port is None else url.port
    if not host or port is None or not 0 < port < 65536:
        raise httpx.InvalidURL("a URL has a host, and a port that can be")
    return host, port


def _pin(request: httpx.Request, host: str, address: str) -> httpx.Request:
    return httpx.Request(
        request.method,
        request.url.copy_with(host=address),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )
