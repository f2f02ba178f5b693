"""Runs under ids of the callers' own: one is open at a time, whoever starts it (T-UNQ-1 to T-UNQ-3)."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from korak.core.facts import Raised
from tests.support import eventually
from tests.support.apis import ORDER, PURE, Api, chain, node, open_api
from tests.support.flows import open_flows

START = "/v1/definitions/order/start"
GIVEN: dict[str, Any] = {"input": {"order": "o-1"}}
UNIQUE: dict[str, Any] = {**GIVEN, "id": "A-17", "on_open": "use_existing"}


async def end(api: Api, ulid: str, how: str = "cancel") -> None:
    response = await api.post(f"/v1/instances/{ulid}/{how}")
    assert response.status_code == 200, response.text


async def count_runs(api: Api) -> int:
    return len(await api.fetch("select id from workflow_instances"))


async def test_t_unq_1_2_a_unique_start_is_one_run_until_it_ends(api: Api) -> None:
    await api.publish(ORDER)

    first = await api.post(START, UNIQUE)
    again = await api.post(START, {**UNIQUE, "input": {"order": "another"}})
    await end(api, first.json()["instance"]["id"])
    after = await api.post(START, UNIQUE)

    assert (first.status_code, again.status_code, after.status_code) == (201, 200, 201)
    instance = first.json()["instance"]
    assert (instance["business_id"], instance["run"]) == ("A-17", 1)
    assert again.json() == {"instance": instance, "created": False}
    assert await api.show(after.json()["instance"]["id"]) == after.json()["instance"]
    assert (after.json()["instance"]["business_id"], after.json()["instance"]["run"]) == ("A-17", 2)
    assert after.json()["instance"]["id"] != instance["id"]
    assert await count_runs(api) == 2


@pytest.mark.parametrize("document", [ORDER, PURE], ids=["parks", "ends"])
async def test_t_unq_3_fifty_unique_starts_at_once_are_one_run(api: Api, database_url: str, document: Any) -> None:
    """On two APIs; a run that ends where it begins is one too, for whoever refuses to start an id again."""
    await api.publish({**document, "key": "order"})
    body = {**UNIQUE, "on_closed": "refuse"}
    async with open_api(database_url) as other:
        answers = await asyncio.gather(*((api, other)[number % 2].post(START, body) for number in range(50)))

    made = [answer for answer in answers if answer.status_code == 201]
    assert len(made) == 1
    ulid = made[0].json()["instance"]["id"]
    for answer in answers:
        assert answer.status_code in (200, 201, 409)
        told = answer.json()
        assert (told["params"]["instance"] if answer.status_code == 409 else told["instance"]["id"]) == ulid
    assert await count_runs(api) == 1


async def test_an_id_that_is_open_fails_a_start_and_names_the_run(api: Api) -> None:
    await api.publish(ORDER)
    first = await api.start("order", {**GIVEN, "id": "A-17"})

    refused = await api.post(START, {**GIVEN, "id": "A-17"}, headers={"idempotency-key": "k"})
    others = await asyncio.gather(
        *(api.post(START, {**GIVEN, "id": name}) for name in ("A-17", "A-18", "A-19", "A-19"))
    )

    assert (refused.status_code, refused.json()["code"]) == (409, "id_in_use")
    assert refused.json()["params"] == {"id": "A-17", "instance": first["id"]}
    assert sorted(answer.status_code for answer in others) == [201, 201, 409, 409]
    await end(api, first["id"])
    freed = await api.post(START, {**GIVEN, "id": "A-17"}, headers={"idempotency-key": "k"})
    assert freed.status_code == 201


async def test_cancel_existing_ends_the_open_run_first(api: Api) -> None:
    await api.publish(ORDER)
    first = await api.start("order", {**GIVEN, "id": "A-17"})

    second = await api.start("order", {**GIVEN, "id": "A-17", "on_open": "cancel_existing", "on_closed": "refuse"})

    before = await api.show(first["id"])
    assert (before["status"], before["cancel_reason"]) == ("cancelled", "Replaced by another start of its id.")
    assert (second["run"], second["status"]) == (2, "running")


async def test_cancel_existing_waits_for_whoever_holds_the_open_run(api: Api, database_url: str) -> None:
    """The cancel lies in front of the run; what starts, starts once that is let go of and has obeyed."""
    await api.publish(ORDER)
    first = await api.start("order", {**GIVEN, "id": "A-17"})
    async with AsyncExitStack() as stack:
        holder = await asyncpg.connect(database_url)
        stack.push_async_callback(holder.close)
        holding = holder.transaction()
        await holding.start()
        await holder.execute("select id from korak.workflow_instances where ulid = $1 for no key update", first["id"])
        starting = asyncio.create_task(api.post(START, {**GIVEN, "id": "A-17", "on_open": "cancel_existing"}))
        await eventually(lambda: api.fetch("select id from workflow_signals where kind = 'cancel'"))
        assert await count_runs(api) == 1
        await holding.rollback()
        second = await starting

    assert second.status_code == 201, second.text
    assert (await api.show(first["id"]))["status"] == "cancelled"
    assert len(await api.fetch("select id from workflow_signals where kind = 'cancel'")) == 1


async def test_starts_that_replace_one_another_all_have_their_run(api: Api, database_url: str) -> None:
    await api.publish(ORDER)
    body = {**GIVEN, "id": "A-17", "on_open": "cancel_existing"}
    async with open_api(database_url) as other:
        answers = await asyncio.gather(*((api, other)[number % 2].post(START, body) for number in range(8)))

    assert [answer.status_code for answer in answers] == [201] * 8
    assert sorted(answer.json()["instance"]["run"] for answer in answers) == list(range(1, 9))
    assert len(await api.fetch("select id from workflow_instances where ended_at is null")) == 1


@pytest.mark.parametrize(
    ("on_closed", "after_cancel", "after_end"),
    [("allow", 201, 201), ("allow_if_failed", 201, 409), ("refuse", 409, 409)],
)
async def test_on_closed_asks_how_the_newest_run_has_ended(
    api: Api, on_closed: str, after_cancel: int, after_end: int
) -> None:
    await api.publish(ORDER)
    await api.publish(PURE)
    cancelled = await api.start("order", {**GIVEN, "id": "A-17"})
    await end(api, cancelled["id"])
    completed = await api.start("pure", {"id": "A-17"})

    one = await api.post(START, {**GIVEN, "id": "A-17", "on_closed": on_closed})
    other = await api.post("/v1/definitions/pure/start", {"id": "A-17", "on_closed": on_closed})

    assert (one.status_code, other.status_code) == (after_cancel, after_end)
    if after_end == 409:
        assert other.json()["code"] == "id_used"
        assert other.json()["params"] == {"id": "A-17", "instance": completed["id"], "status": "completed"}


async def test_a_key_and_an_id_hold_together(api: Api, database_url: str) -> None:
    """A repeat of the key hears of its run, also where that was found, has ended, or the id would refuse it now."""
    await api.publish(ORDER)
    maker, finder = {"idempotency-key": "made"}, {"idempotency-key": "found"}
    async with open_api(database_url) as other:
        answers = await asyncio.gather(
            *((api, other)[number % 2].post(START, {**GIVEN, "id": "A-17"}, headers=maker) for number in range(20))
        )
    ulid = answers[0].json()["instance"]["id"]
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    found = await api.post(START, UNIQUE, headers=finder)
    await end(api, ulid)

    for headers, body in ((maker, {**GIVEN, "id": "A-17"}), (finder, UNIQUE)):
        repeated = await api.post(START, body, headers=headers)
        assert (repeated.status_code, repeated.json()["instance"]["id"]) == (200, ulid)
        assert "input_differs" not in repeated.json()
    assert found.json()["instance"]["id"] == ulid
    assert await count_runs(api) == 1


async def test_defect_14_an_id_and_a_key_belong_to_their_owner_and_definition(api: Api) -> None:
    await api.publish(ORDER)
    await api.publish({**ORDER, "key": "other"})
    body = {**GIVEN, "id": "A-17"}
    key = {"idempotency-key": "A-17"}

    answers = [
        await api.post(START, body, headers=key),
        await api.post(START, body, headers={**key, "korak-owner": "team:1"}),
        await api.post("/v1/definitions/other/start", body, headers=key),
    ]

    assert [answer.status_code for answer in answers] == [201, 201, 201]
    theirs = (await api.get("/v1/instances/order~A-17", headers={"korak-owner": "team:1"})).json()
    assert theirs["id"] == answers[1].json()["instance"]["id"]
    assert (await api.get("/v1/instances/order~A-17", headers={"korak-owner": "team:2"})).status_code == 404


async def test_a_limit_on_starts_counts_no_run_that_was_found_and_leaves_the_id_free(api: Api) -> None:
    await api.publish(chain("order", node("price", "test.ok"), limits={"max_starts_per_minute": 1}))
    body = {"id": "A-17", "on_open": "use_existing"}

    first = await api.post(START, body)
    again = [(await api.post(START, body)).status_code for _ in range(3)]
    refused = await api.post(START, {"id": "A-18"})
    await api.fetch("update flow_keys set counted_at = counted_at - 60")
    freed = await api.post(START, {"id": "A-18"})

    assert (first.status_code, again, refused.status_code) == (201, [200] * 3, 429)
    assert (freed.status_code, freed.json()["instance"]["run"]) == (201, 1)


async def test_every_route_takes_the_definition_and_the_id_of_the_newest_run(api: Api) -> None:
    await api.publish(ORDER)
    first = await api.start("order", {**GIVEN, "id": "A:17.x_y-z"})
    await end(api, first["id"])
    second = await api.start("order", {**GIVEN, "id": "A:17.x_y-z"})
    one = "/v1/instances/order~A:17.x_y-z"

    shown = (await api.get(one)).json()
    lists = [await api.get(f"{one}/{what}") for what in ("steps", "events", "waits", "failures")]
    paused = await api.post(f"{one}/pause")
    cancelled = await api.post(f"{one}/cancel", headers={"idempotency-key": "once"})
    third = await api.start("order", {**GIVEN, "id": "A:17.x_y-z"})
    repeated = await api.post(f"{one}/cancel", headers={"idempotency-key": "once"})

    assert shown["id"] == second["id"]
    assert [answer.status_code for answer in lists] == [200] * 4
    assert (paused.json()["status"], paused.json()["business_id"], paused.json()["run"]) == ("paused", "A:17.x_y-z", 2)
    # The kept answer is the first request's: a repeat of it cancels no other run.
    assert repeated.json() == cancelled.json()
    assert (await api.show(third["id"]))["status"] == "running"


@pytest.mark.parametrize("address", ["order~A-18", "other~A-17", "~A-17", "order~", "order~A-17~1"])
async def test_an_address_of_nothing_is_404(api: Api, address: str) -> None:
    await api.publish(ORDER)
    await api.start("order", {**GIVEN, "id": "A-17"})

    for response in (await api.get(f"/v1/instances/{address}"), await api.post(f"/v1/instances/{address}/cancel")):
        assert (response.status_code, response.json()["code"]) == (404, "instance_not_found")
        assert response.json()["params"] == {"key": address}


async def test_lists_are_filtered_by_id(api: Api) -> None:
    await api.publish(ORDER)
    one = await api.start("order", {**GIVEN, "id": "A-17"})
    await api.start("order", GIVEN)
    two = await api.start("order", {**GIVEN, "id": "A-18"})

    async def ids(*given: str) -> set[str]:
        return {item["id"] for item in (await api.get("/v1/instances", id=list(given))).json()["items"]}

    assert await ids("A-17") == {one["id"]}
    assert await ids("A-17", "A-18") == {one["id"], two["id"]}
    assert await ids("A-19") == set()


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"id": ""}, "/id"),
        ({"id": "a b"}, "/id"),
        ({"id": "a~b"}, "/id"),
        ({"id": "a\n"}, "/id"),
        ({"id": "a" * 192}, "/id"),
        ({"id": None}, "/id"),
        ({"id": 17}, "/id"),
        ({"id": "a", "on_open": "replace"}, "/on_open"),
        ({"id": "a", "on_closed": "never"}, "/on_closed"),
        ({"on_open": "fail"}, "/on_open"),
        ({"on_closed": "allow"}, "/on_closed"),
    ],
)
async def test_bad_ids_are_refused_with_a_pointer(api: Api, body: Any, pointer: str) -> None:
    await api.publish(ORDER)

    response = await api.post(START, {**GIVEN, **body})

    assert (response.status_code, [error["pointer"] for error in response.json()["errors"]]) == (422, [pointer])
    assert await count_runs(api) == 0


# a run that is retried


async def test_a_retry_of_a_run_whose_id_is_open_again_is_refused(api: Api, database_url: str) -> None:
    await api.publish(chain("order", node("price", "test.ok")))
    first = await api.start("order", {"id": "A-17"})
    await fail(api, database_url, first["id"])
    second = await api.start("order", {"id": "A-17", "on_closed": "allow_if_failed"})

    refused = await api.post(f"/v1/instances/{first['id']}/retry")
    unchanged = await api.show(first["id"])
    await end(api, second["id"])
    reopened = await api.post(f"/v1/instances/{first['id']}/retry")

    assert (refused.status_code, refused.json()["code"]) == (409, "id_in_use")
    assert refused.json()["params"] == {"id": "A-17", "instance": second["id"]}
    assert (unchanged["status"], unchanged["failure"]["code"]) == ("failed", "exception")
    assert (reopened.status_code, reopened.json()["status"], reopened.json()["run"]) == (200, "running", 1)
    # The open run holds the id, though it isn't the newest.
    taken = await api.post(START, {"id": "A-17"})
    assert (taken.status_code, taken.json()["params"]["instance"]) == (409, first["id"])
    used = await api.post(START, {"id": "A-17", "on_open": "use_existing"})
    assert used.json()["instance"]["id"] == first["id"]


async def test_a_retry_and_starts_in_the_same_instant_leave_one_run_open(api: Api, database_url: str) -> None:
    """The retry has reopened its run and isn't committed: the start that saw none finds it then, as do the others."""
    await api.publish(chain("order", node("price", "test.ok")))
    first = await api.start("order", {"id": "A-17"})
    await fail(api, database_url, first["id"])
    async with AsyncExitStack() as stack:
        retrier = await asyncpg.connect(database_url)
        stack.push_async_callback(retrier.close)
        retrying = retrier.transaction()
        await retrying.start()
        await retrier.execute(
            "update korak.workflow_instances set status = 'running', ended_at = null, closed_reason = null"
            " where ulid = $1",
            first["id"],
        )
        body = {"id": "A-17", "on_open": "use_existing"}
        starting = [asyncio.create_task(api.post(START, body)) for _ in range(5)]
        other = asyncio.create_task(api.post(START, {"id": "A-18"}))
        waits = "select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%workflow_instances%'"
        await eventually(lambda: api.fetch(waits))
        await retrying.commit()
        answers = await asyncio.gather(*starting)

    assert {answer.json()["instance"]["id"] for answer in answers} == {first["id"]}
    assert (await other).status_code == 201
    assert await count_runs(api) == 2


async def fail(api: Api, url: str, ulid: str) -> None:
    """Have the run's one step fail for good, as an engine would record it."""
    async with open_flows(url) as flows:
        now = api.resources.clock.now()
        step = await flows.claim(await api.get_id(ulid), await flows.register(now), now)
        await flows.finish(step, Raised("exception", is_retryable=False), now)
