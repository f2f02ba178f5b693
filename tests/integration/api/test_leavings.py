"""Artifacts and chunks over HTTP: put, listed, read, taken away, each by who may, and wrong input with its pointer."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from korak.model import OwnerRole
from korak.store import chunks
from tests.support.apis import ORDER, PURE, Api, open_api

EXECUTION = "01J0000000000000000000000A"


async def start(api: Api) -> tuple[str, str]:
    """An open instance, and its address."""
    await api.publish(ORDER)
    ulid = (await api.start("order", {"input": {"order": "a"}}))["id"]
    return ulid, f"/v1/instances/{ulid}"


async def put(api: Api, one: str, key: str, **body: Any) -> Any:
    response = await api.send("PUT", f"{one}/artifacts/{key}", body)
    assert response.status_code in (200, 201), response.text
    return response.json()


async def test_an_artifact_from_outside_is_kept_replaced_and_taken_away(api: Api) -> None:
    ulid, one = await start(api)
    made = await put(api, one, "report.v1", content={"a": [1]}, metadata={"by": "me"})
    assert {name: made[name] for name in ("key", "kind", "size", "metadata", "node", "content")} == {
        "key": "report.v1",
        "kind": "json",
        "size": 9,
        "metadata": {"by": "me"},
        "node": None,
        "content": {"a": [1]},
    }
    again = await put(api, one, "report.v1", content="now a text")
    assert (again["kind"], again["metadata"], again["created_at"]) == ("text", None, made["created_at"])
    raw = base64.b64encode(b"\0\1").decode()
    await put(api, one, "raw", content=raw, kind="bytes")
    assert (await api.get(f"{one}/artifacts/raw")).json()["content"] == raw
    listed = (await api.get(f"{one}/artifacts")).json()["items"]
    assert [(each["key"], each["content"]) for each in listed] == [("raw", None), ("report.v1", None)]
    whole = (await api.get(f"{one}/artifacts", content="true")).json()["items"]
    assert [each["content"] for each in whole] == [raw, "now a text"]
    assert (await api.show(ulid))["artifacts"] == {"count": 2, "keys": ["raw", "report.v1"]}
    assert (await api.post(f"{one}/pause")).json()["artifacts"]["count"] == 2
    assert (await api.send("DELETE", f"{one}/artifacts/raw")).status_code == 204
    assert (await api.send("DELETE", f"{one}/artifacts/raw")).status_code == 404
    assert (await api.get(f"{one}/artifacts/raw")).json()["code"] == "not_found"


async def test_artifacts_come_in_pages(api: Api) -> None:
    _, one = await start(api)
    for key in "abc":
        await put(api, one, key, content=key)
    first = (await api.get(f"{one}/artifacts", limit=2)).json()
    second = (await api.get(f"{one}/artifacts", limit=2, cursor=first["next"])).json()
    assert [[each["key"] for each in page["items"]] for page in (first, second)] == [["a", "b"], ["c"]]
    assert second["next"] is None


@pytest.mark.parametrize(
    ("key", "body", "status", "pointer"),
    [
        ("a", {}, 422, "/content"),
        ("a", {"content": 1, "kind": "picture"}, 422, "/kind"),
        ("a", {"content": "***", "kind": "bytes"}, 422, "/content"),
        ("a", {"content": {"b": 1}, "kind": "text"}, 422, "/content"),
        ("a", {"content": "x" * 70_000}, 422, "/content"),
        ("a", {"content": 1, "metadata": {"x": "y" * 20_000}}, 422, "/metadata"),
        ("a b", {"content": 1}, 422, ""),
    ],
)
async def test_what_can_not_be_an_artifact_is_refused_with_its_place(
    database_url: str, key: str, body: Any, status: int, pointer: str
) -> None:
    async with open_api(database_url, KORAK_LIMITS__MAX_ARTIFACT_BYTES="65536") as api:
        _, one = await start(api)
        response = await api.send("PUT", f"{one}/artifacts/{key}", body)
        assert response.status_code == status
        assert [each["pointer"] for each in response.json()["errors"]] == [pointer]
        assert await api.fetch("select 1 from workflow_artifacts") == []


async def test_who_may_and_whose_it_is(api: Api) -> None:
    _, one = await start(api)
    await put(api, one, "a", content=1)
    viewer, starter = await api.make_token(OwnerRole.VIEWER), await api.make_token(OwnerRole.STARTER)
    other = await api.make_token(OwnerRole.ADMIN, owner="team:7")
    address = f"{one}/artifacts/a"
    assert (await api.get(address, token=viewer)).status_code == 200
    assert (await api.send("PUT", address, {"content": 2}, token=viewer)).status_code == 403
    assert (await api.send("PUT", address, {"content": 2}, token=starter)).status_code == 200
    assert (await api.send("DELETE", address, token=starter)).status_code == 403
    for path in (address, f"{one}/artifacts", f"{one}/chunks", f"{one}/stream"):
        assert (await api.get(path, token=other)).status_code == 404
    assert (await api.send("PUT", address, {"content": 2}, token=other)).status_code == 404
    assert (await api.send("DELETE", address, token=other)).status_code == 404


async def append(api: Api, ulid: str, index: int, text: str) -> None:
    await api.fetch(
        "insert into workflow_chunks (instance_id, execution_id, index, node_id, visit, attempt, content, created_at)"
        " select id, $2, $3, 'write', 1, 1, $4, created_at from workflow_instances where ulid = $1",
        ulid,
        EXECUTION,
        index,
        text,
    )


async def test_chunks_are_listed_by_step_and_behind_an_index(api: Api) -> None:
    ulid, one = await start(api)
    for index, text in enumerate("abcd"):
        await append(api, ulid, index, text)
    first = (await api.get(f"{one}/chunks", limit=3)).json()
    assert [(each["node"], each["index"], each["content"]) for each in first["items"]] == [
        ("write", 0, "a"),
        ("write", 1, "b"),
        ("write", 2, "c"),
    ]
    second = (await api.get(f"{one}/chunks", limit=3, cursor=first["next"])).json()
    assert [each["content"] for each in second["items"]] == ["d"]
    for step in ("write", EXECUTION):
        behind = (await api.get(f"{one}/chunks", step=step, after=1)).json()
        assert [each["content"] for each in behind["items"]] == ["c", "d"]
    assert (await api.get(f"{one}/chunks", step="other")).json()["items"] == []
    assert await chunks.load(api.database, 0, EXECUTION) == []


async def test_a_step_shows_how_far_it_is(api: Api) -> None:
    """T-HB-1: progress and time."""
    _, one = await start(api)
    await api.fetch(
        "update workflow_step_runs set heartbeat = $1", {"at": "2030-01-01T00:00:00+00:00", "progress": {"done": 3}}
    )
    [step] = (await api.get(f"{one}/steps")).json()["items"]
    assert (step["progress"], step["heartbeat_at"]) == ({"done": 3}, "2030-01-01T00:00:00Z")


async def test_an_instance_has_no_artifacts_at_first(api: Api) -> None:
    await api.publish(PURE)
    assert (await api.start("pure"))["artifacts"] == {"count": 0, "keys": []}
