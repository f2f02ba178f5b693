"""A wire between a client and a server that a test can cut, and mend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit, urlunsplit


class Proxy:
    """Passes bytes on to a server; `cut` resets every connection, and refuses new ones until `mend`."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._is_cut = False
        self._is_frozen = asyncio.Event()
        self.port = 0
        self.accepted = 0

    async def start(self) -> None:
        """Listens on a port of its own."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Ends everything."""
        self.cut()
        if self._server is not None:
            self._server.close()
        if self._pumps:
            await asyncio.wait(self._pumps)

    def cut(self, *, refuse: bool = True) -> None:
        """Resets every connection; with `refuse` new ones too."""
        self._is_cut = refuse
        for writer in list(self._writers):
            writer.transport.abort()

    def mend(self) -> None:
        """Lets connections through again, and bytes."""
        self._is_cut = False
        self._is_frozen.clear()

    def freeze(self) -> None:
        """Passes nothing on, and closes nothing: a peer that is gone without a word."""
        self._is_frozen.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._is_cut:
            writer.transport.abort()
            return
        self.accepted += 1
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(*self._address)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, upstream_writer}
        for source, sink in ((reader, upstream_writer), (upstream_reader, writer)):
            pump = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if not self._is_frozen.is_set():
                    sink.write(data)
                    await sink.drain()
        sink.close()
        self._writers.discard(sink)


@asynccontextmanager
async def proxied(url: str) -> AsyncIterator[tuple[Proxy, str]]:
    """A proxy before the server of `url`, and the URL that leads through it."""
    parts = urlsplit(url)
    default = {"amqp": 5672}.get(parts.scheme, 5432)
    proxy = Proxy(parts.hostname or "127.0.0.1", parts.port or default)
    await proxy.start()
    credentials, at, _ = parts.netloc.rpartition("@")
    try:
        yield proxy, urlunsplit(parts._replace(netloc=f"{credentials}{at}127.0.0.1:{proxy.port}"))
    finally:
        await proxy.close()
