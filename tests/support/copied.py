"""Exported runs for tests: taken out as lines, brought in again, and told from one another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import httpx
import orjson

from tests.support.apis import Api

Line: TypeAlias = dict[str, Any]
Lines: TypeAlias = list[Line]


async def take_out(api: Api, ulid: str, **rest: Any) -> Lines:
    """The export of an instance."""
    response = await api.get(f"/v1/instances/{ulid}/export", **rest)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/x-ndjson"
    return [orjson.loads(line) for line in response.content.splitlines()]


async def send_in(
    api: Api, lines: Iterable[Any], *, token: str | None = None, key: str | None = None
) -> httpx.Response:
    """What comes of an import."""
    headers = {"authorization": f"Bearer {token or api.admin}", "content-type": "application/x-ndjson"}
    if key is not None:
        headers["idempotency-key"] = key
    content = b"".join(orjson.dumps(line) + b"\n" for line in lines)
    return await api.client.post("/v1/instances/import", content=content, headers=headers)


def get_head(lines: Lines) -> Line:
    """What the first line says."""
    found: Line = lines[0]["run"]
    return found


def list_rows(lines: Lines, kind: str) -> Lines:
    """The rows of one kind."""
    return [line[kind] for line in lines if kind in line]
