"""A small HTTP receiver on a local port that answers what a test tells it, byte by byte if need be."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

Answer = Callable[["Received"], bytes]

CERTIFICATE = Path(__file__).parent / "certificates" / "pay.pem"
"""A certificate of pay.example with its key, its own authority."""


@dataclass(frozen=True)
class Received:
    """One request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Where it listens, what came, and whether it hangs after what it has answered."""

    port: int = 0
    requests: list[Received] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


def answer(status: int = 200, body: bytes = b"", **headers: str) -> bytes:
    """A whole response."""
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@asynccontextmanager
async def receiving(
    respond: Answer, *, hangs: bool = False, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Receiver]:
    """Listen, and answer each request with what `respond` gives; with `hangs` the connection then stays open."""
    receiver = Receiver()
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        receiver.connections += 1
        try:
            request = await _read(reader)
            receiver.requests.append(request)
            writer.write(respond(request))
            await writer.drain()
            if hangs:
                await ended.wait()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        ended.set()
        server.close()


async def _read(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Received(method, target, headers, body)
