"""Starting instances over HTTP: answers, keys, limits, waits."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.apis import ORDER, PURE, Api, chain, node, open_api


async def test_a_start_answers_the_instance_that_it_made(api: Api) -> None:
    await api.publish(ORDER)

    response = await api.post("/v1/definitions/order/start", {"input": {"order": "o-1"}, "labels": ["vip"]})

    assert response.status_code == 201
    body = response.json()
    assert body["created"] is True
    assert "input_differs" not in body
    instance = body["instance"]
    assert instance["definition"] == "order"
    assert instance["version"] == 1
    assert instance["status"] == "running"
    assert instance["nodes"] == ["price"]
    assert instance["input"] == {"order": "o-1", "count": 1}
    assert instance["labels"] == ["vip"]
    assert await api.show(instance["id"]) == instance


async def test_what_is_decided_at_once_has_ended_in_the_answer(api: Api) -> None:
    await api.publish(PURE)

    instance = await api.start("pure")

    assert instance["status"] == "completed"
    assert instance["result"] == {"note": "seen"}
    assert await api.show(instance["id"]) == instance
