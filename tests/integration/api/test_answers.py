"""Idempotency-Key: one effect, and its answer for every repeat."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.support.apis import ORDER, Api, chain, node, open_api

PAUSE = {"idempotency-key": "k-1"}


async def start(api: Api) -> str:
    """The path of a running order."""
    await api.publish(ORDER)
    return f"/v1/instances/{(await api.start('order', {'input': {'order': 'a'}}))['id']}"


async def test_a_repeat_gets_the_first_answer(api: Api) -> None:
    one = await start(api)

    first = await api.post(f"{one}/cancel", {"reason": "a"}, headers=PAUSE)
    again = await api.post(f"{one}/cancel", {"reason": "a"}, headers=PAUSE)
    without = await api.post(f"{one}/cancel", {"reason": "a"})

    assert (first.status_code, again.status_code, without.status_code) == (200, 200, 409)
    assert again.json() == first.json()
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers


async def test_another_body_under_the_key_is_refused(api: Api) -> None:
    one = await start(api)
    await api.post(f"{one}/cancel", {"reason": "a"}, headers=PAUSE)

    response = await api.post(f"{one}/cancel", {"reason": "b"}, headers=PAUSE)

    assert (response.status_code, response.json()["code"]) == (422, "idempotency_key_reused")


async def test_a_key_belongs_to_its_call_and_its_owner(api: Api) -> None:
    one = await start(api)
    await api.post(f"{one}/pause", headers=PAUSE)

    assert (await api.post(f"{one}/resume", headers=PAUSE)).json()["status"] == "running"
    body = {"name": "paid"}
    first = await api.post("/v1/emit", body, headers=PAUSE)
    theirs = await api.post("/v1/emit", {"name": "other"}, headers={**PAUSE, "korak-owner": "team:1"})
    assert (first.status_code, theirs.status_code) == (202, 202)


async def test_parallel_requests_under_one_key_have_one_effect(api: Api, database_url: str) -> None:
    one = await start(api)
    async with open_api(database_url) as other:
        answers = await asyncio.gather(
            *((api, other)[number % 2].post(f"{one}/cancel", headers=PAUSE) for number in range(10))
        )

    assert {answer.status_code for answer in answers} == {200}
    assert all(answer.json() == answers[0].json() for answer in answers)
    events = (await api.get(f"{one}/events")).json()["items"]
    assert len([event for event in events if event["type"] == "InstanceCancelled"]) == 1


async def test_what_was_refused_is_tried_again(api: Api) -> None:
    one = await start(api)

    refused = await api.post(f"{one}/resume", headers=PAUSE)
    await api.post(f"{one}/pause")
    done = await api.post(f"{one}/resume", headers=PAUSE)

    assert (refused.status_code, done.status_code) == (409, 200)


async def test_an_answer_is_known_for_its_time(api: Api) -> None:
    body = {"name": "paid"}
    await api.post("/v1/emit", body, headers=PAUSE)
    await api.fetch("update http_answers set expires_at = created_at")

    await api.post("/v1/emit", {"name": "other"}, headers=PAUSE)

    assert len(await api.fetch("select id from workflow_emits")) == 2


async def test_a_request_that_died_may_be_repeated(api: Api) -> None:
    """The process went between the effect and its answer: the repeat makes the same event, which is one."""
    body = {"name": "paid"}
    first = await api.post("/v1/emit", body, headers=PAUSE)
    await api.fetch(
        "update http_answers set status = null, body = null, created_at = created_at - interval '2 minutes'"
    )

    again = await api.post("/v1/emit", body, headers=PAUSE)

    assert again.json() == first.json()
    assert len(await api.fetch("select id from workflow_emits")) == 1


async def test_definitions_are_made_once_under_a_key(api: Api) -> None:
    answers = [await api.post("/v1/definitions", {"graph": ORDER}, headers=PAUSE) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].json() == answers[1].json()
    assert answers[0].headers["etag"] == answers[1].headers["etag"]


@pytest.mark.parametrize("key", ["k" * 192, "\x7f"])
async def test_a_wrong_key_is_told(shared_api: Api, key: str) -> None:
    response: Any = await shared_api.post("/v1/emit", {"name": "a"}, headers={"idempotency-key": key})

    assert (response.status_code, response.json()["code"]) == (422, "invalid_parameter")
    assert response.json()["errors"][0]["pointer"] == f"/{response.json()['params']['name']}"


async def test_every_call_that_changes_something_takes_a_key(shared_api: Api) -> None:
    described = (await shared_api.client.get("/openapi.json")).json()
    for path, methods in described["paths"].items():
        if "post" in methods and path != "/v1/definitions/validate":
            names = {parameter["name"] for parameter in methods["post"]["parameters"]}
            assert "Idempotency-Key" in names, path
    assert chain("x", node("a", "test.ok"))
