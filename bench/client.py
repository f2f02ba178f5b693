"""The smallest HTTP client that keeps its connections: what the load costs is to be the service's, not the client's."""

from __future__ import annotations

import asyncio
import json
from typing import Any


class Client:
    """One connection. `post` raises SystemExit with the answer where it isn't a success."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token

    async def connect(self) -> None:
        """Connect; raises OSError where nobody listens."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def post(self, path: str, body: object) -> Any:
        """Send JSON and give back the JSON of the answer."""
        content = json.dumps(body).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {self._token}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        self._writer.write(head.encode() + content)
        status = int((await self._reader.readline()).split()[1])
        length = 0
        while line := (await self._reader.readline()).strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        answer = await self._reader.readexactly(length)
        if status >= 300:
            raise SystemExit(f"{path}: {answer.decode()}")
        return json.loads(answer)

    def close(self) -> None:
        """Let the connection go."""
        self._writer.close()
