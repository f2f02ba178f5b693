"""Signals that start what they are for: one run, and the signal is in it."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from korak.model import OwnerRole
from tests.support import eventually
from tests.support.apis import PURE, Api, chain, node, open_api

INPUTS: Any = {"order": {"type": "string", "required": True}}
ASKS = chain("asks", node("ask", "wait", signal="go"), node("work", "test.ok"), inputs=INPUTS)
LATER = chain("later", node("work", "test.ok"), node("ask", "wait", signal="go"))
SIGNAL = "/v1/instances/asks~A-17/signal"
BODY: dict[str, Any] = {"name": "go", "start": {"input": {"order": "o-1"}}}


async def list_signals(api: Api) -> list[Any]:
    return await api.fetch(
        "select i.ulid, s.source_id, s.taken_at, s.buffered_at from workflow_signals s"
        " join workflow_instances i on i.id = s.instance_id order by s.id"
    )


async def test_a_signal_starts_the_run_that_it_is_for(api: Api) -> None:
    await api.publish(ASKS)

    first = await api.post(SIGNAL, {**BODY, "payload": {"by": "ana"}})
    again = await api.post(SIGNAL, BODY)

    told = first.json()
    instance = await api.show(told["instance"])
    assert first.status_code == 202
    assert told == {"delivered": True, "buffered": False, "instance": instance["id"], "created": True}
    assert (instance["business_id"], instance["input"], instance["nodes"]) == ("A-17", {"order": "o-1"}, ["work"])
    assert again.json() == {"delivered": False, "buffered": True, "instance": instance["id"], "created": False}


async def test_a_signal_that_nobody_waits_for_yet_is_kept_in_the_new_run(api: Api) -> None:
    await api.publish(LATER)

    response = await api.post("/v1/instances/later~A-17/signal", {"name": "go", "start": {}})

    told = response.json()
    assert (told["delivered"], told["buffered"], told["created"]) == (False, True, True)


async def test_after_its_end_a_signal_starts_another_and_a_repeat_of_the_old_one_does_not(api: Api) -> None:
    await api.publish(ASKS)
    first = await api.post(SIGNAL, {**BODY, "id": "s-1"})
    ulid = first.json()["instance"]
    await api.post(f"/v1/instances/{ulid}/cancel")

    repeated = await api.post(SIGNAL, {**BODY, "id": "s-1"})
    refused = await api.post(SIGNAL, {**BODY, "id": "s-2", "start": {**BODY["start"], "on_closed": "refuse"}})
    another = await api.post(SIGNAL, {**BODY, "id": "s-2"})

    assert repeated.json() == {"delivered": True, "buffered": False, "instance": ulid, "created": False}
    assert (refused.status_code, refused.json()["code"]) == (409, "id_used")
    assert another.json()["created"] is True
    assert another.json()["instance"] != ulid


async def test_an_idempotency_key_answers_a_repeat(api: Api) -> None:
    await api.publish(ASKS)
    key = {"idempotency-key": "once"}

    first = await api.post(SIGNAL, BODY, headers=key)
    await api.post("/v1/instances/asks~A-17/cancel")
    again = await api.post(SIGNAL, BODY, headers=key)

    assert again.json() == first.json()
    assert len(await list_signals(api)) == 1


async def test_signals_at_once_start_one_run_and_none_is_lost(api: Api, database_url: str) -> None:
    await api.publish(ASKS)
    async with open_api(database_url) as other:
        answers = await asyncio.gather(
            *((api, other)[number % 2].post(SIGNAL, {**BODY, "id": f"s-{number}"}) for number in range(30))
        )

    assert [answer.json().get("code", "") for answer in answers] == [""] * 30
    assert {answer.status_code for answer in answers} == {202}
    assert sum(answer.json()["created"] for answer in answers) == 1
    [ulid] = {answer.json()["instance"] for answer in answers}
    rows = await list_signals(api)
    assert {row["source_id"] for row in rows} == {f"s-{number}" for number in range(30)}
    assert {row["ulid"] for row in rows} == {ulid}
    assert all(row["taken_at"] or row["buffered_at"] for row in rows)


async def test_a_run_that_ends_meanwhile_is_not_the_signal_s(api: Api, database_url: str) -> None:
    """Somebody holds the open run, and ends it: the signal is for the next one, and lies in front of no ended run."""
    await api.publish(ASKS)
    first = await api.start("asks", {"id": "A-17", "input": {"order": "o-0"}})
    async with AsyncExitStack() as stack:
        holder = await asyncpg.connect(database_url)
        stack.push_async_callback(holder.close)
        ending = holder.transaction()
        await ending.start()
        await holder.execute(
            "update korak.workflow_instances set status = 'cancelled', ended_at = updated_at,"
            " closed_reason = 'cancelled' where ulid = $1",
            first["id"],
        )
        sending = asyncio.create_task(api.post(SIGNAL, {**BODY, "id": "s-1"}))
        asked = "select 1 from pg_stat_activity where application_name = 'api under test' and query like '%key update%'"
        await eventually(lambda: api.fetch(asked))
        assert await list_signals(api) == []
        await ending.commit()
        response = await sending

    told = response.json()
    assert told["created"] is True
    assert [(row["ulid"], row["source_id"]) for row in await list_signals(api)] == [(told["instance"], "s-1")]


async def test_what_ends_at_once_has_had_its_signal(api: Api) -> None:
    await api.publish({**PURE, "key": "asks"})

    answers = [(await api.post(SIGNAL, {"name": "go", "start": {}})) for _ in range(2)]

    assert {answer.json()["code"] for answer in answers} == {"unknown_signal"}
    assert await api.fetch("select id from workflow_instances") == []


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "pointers"),
    [
        (SIGNAL, {"name": "go", "start": {"input": {}}}, 422, "invalid_request", ["/start/input/order"]),
        (SIGNAL, {"name": "go", "start": {"id": "x"}}, 422, "invalid_request", ["/start/id"]),
        (SIGNAL, {**BODY, "name": "stop"}, 422, "unknown_signal", ["/name"]),
        ("/v1/instances/nothing~A-17/signal", BODY, 404, "definition_not_found", []),
        ("/v1/instances/asks~A%2017/signal", BODY, 422, "invalid_parameter", ["/id"]),
        ("/v1/instances/01J0000000000000000000000A/signal", BODY, 422, "invalid_request", ["/start"]),
    ],
)
async def test_what_is_wrong_starts_nothing_and_sends_nothing(
    api: Api, path: str, body: Any, status: int, code: str, pointers: list[str]
) -> None:
    await api.publish(ASKS)

    response = await api.post(path, body)

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert [error["pointer"] for error in response.json()["errors"]] == pointers
    assert await api.fetch("select id from workflow_instances") == []
    assert await list_signals(api) == []


async def test_who_may_not_start_may_not_start_by_a_signal(api: Api) -> None:
    await api.publish(ASKS)
    token = await api.make_token(OwnerRole.PARTICIPANT)

    assert (await api.post(SIGNAL, BODY, token=token)).status_code == 403


async def test_without_start_a_signal_to_nobody_is_404(api: Api) -> None:
    await api.publish(ASKS)

    assert (await api.post(SIGNAL, {"name": "go"})).status_code == 404
