"""Signals to one instance and events to whoever waits for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from korak.model import JsonObject, OwnerRole
from korak.store.database import Database, Session
from korak.store.emits import Emit, keep, list_open
from tests.support.apis import PURE, Api, chain, node, open_api
from tests.support.flows import open_flows

ASKS = chain("asks", node("ask", "wait", signal="go", timeout="PT1H"), node("work", "test.ok"))
LATER = chain("later", node("work", "test.ok"), node("ask", "wait", signal="go"))
PAYS = chain(
    "pays",
    node("paid", "wait", event="paid", match={"order": {"ref": "input.order"}}),
    node("work", "test.ok"),
)
ANY = chain("any", node("paid", "wait", event="paid"), node("work", "test.ok"))


async def start(api: Api, document: Any, **body: Any) -> str:
    """The path of a new instance of the document."""
    await api.publish(document)
    return f"/v1/instances/{(await api.start(document['key'], {'input': body}))['id']}"


async def wake(api: Api, url: str) -> None:
    """Claim what is ready, as an engine does that was nudged."""
    rows = await api.fetch(
        "select instance_id from workflow_step_runs where ready_at is not null and status = 'waiting'"
    )
    async with open_flows(url) as flows:
        now = api.resources.clock.now()
        engine = await flows.register(now)
        for row in rows:
            await flows.claim_any(row["instance_id"], engine, now)


# signals


async def test_wt_2_a_signal_fires_the_wait_of_its_name(api: Api) -> None:
    one = await start(api, ASKS)

    response = await api.post(f"{one}/signal", {"name": "go", "payload": {"by": "ana"}})

    assert (response.status_code, response.json()) == (202, {"delivered": True, "buffered": False})
    assert (await api.get(one)).json()["nodes"] == ["work"]


EVENT = {"specversion": "1.0", "type": "paid", "source": "/shop", "id": "7", "data": {"order": "a"}}


async def test_a_cloud_event_is_an_emit(api: Api) -> None:
    """Structured or binary; source and id together make it one event, however it comes."""
    await start(api, PAYS, order="a")

    structured = await api.post("/v1/emit", EVENT, headers={"content-type": "application/cloudevents+json"})
    attributes = {f"ce-{name}": EVENT[name] for name in ("specversion", "type", "source", "id")}
    binary = await api.post("/v1/emit", EVENT["data"], headers=attributes)

    assert structured.json() == binary.json() == {"matched": 1, "started": [], "kept": True}
    [kept] = await api.fetch("select name, source_id, payload from workflow_emits")
    assert tuple(kept) == ("paid", "/shop#7", {"order": "a"})


@pytest.mark.parametrize(
    ("changed", "pointer"),
    [({"source": None}, "/source"), ({"specversion": "0.3"}, "/specversion"), ({"data": [1]}, "/data")],
)
async def test_a_wrong_cloud_event_is_refused(shared_api: Api, changed: JsonObject, pointer: str) -> None:
    response = await shared_api.post(
        "/v1/emit", EVENT | changed, headers={"content-type": "application/cloudevents+json"}
    )

    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]


async def test_wt_2_a_signal_fires_an_event_wait_of_its_name_too(api: Api) -> None:
    one = await start(api, PAYS, order="a")

    unfit = await api.post(f"{one}/signal", {"name": "paid", "payload": {"order": "b"}})
    fit = await api.post(f"{one}/signal", {"name": "paid", "payload": {"order": "a"}})

    assert unfit.json() == {"delivered": False, "buffered": True}
    assert fit.json() == {"delivered": True, "buffered": False}
    assert (await api.get(one)).json()["nodes"] == ["work"]


async def test_a_signal_for_nobody_yet_is_kept(api: Api) -> None:
    one = await start(api, LATER)

    response = await api.post(f"{one}/signal", {"name": "go"})

    assert (response.status_code, response.json()) == (202, {"delivered": False, "buffered": True})


async def test_the_same_signal_twice_is_one_delivery(api: Api) -> None:
    one = await start(api, ASKS)

    answers = [await api.post(f"{one}/signal", {"name": "go", "id": "s-1"}) for _ in range(2)]

    assert [answer.json() for answer in answers] == [{"delivered": True, "buffered": False}] * 2
    assert len(await api.fetch("select id from workflow_signals")) == 1
    # Without an id of its own each signal is another.
    for _ in range(2):
        await api.post(f"{one}/signal", {"name": "go"})
    assert len(await api.fetch("select id from workflow_signals")) == 3


async def test_a_repeated_request_under_a_key_is_one_signal(api: Api) -> None:
    one = await start(api, LATER)

    answers = [await api.post(f"{one}/signal", {"name": "go"}, headers={"idempotency-key": "k"}) for _ in range(2)]

    assert answers[0].json() == answers[1].json()
    assert len(await api.fetch("select id from workflow_signals")) == 1


async def test_a_signal_to_an_ended_instance_is_refused(api: Api) -> None:
    one = await start(api, PURE)

    response = await api.post(f"{one}/signal", {"name": "go"})

    assert (response.status_code, response.json()["code"]) == (409, "instance_ended")
    assert await api.fetch("select id from workflow_signals") == []


async def test_a_repeat_of_the_signal_that_ended_the_instance_hears_what_became_of_it(api: Api) -> None:
    one = await start(api, chain("last", node("ask", "wait", signal="go")))

    answers = [await api.post(f"{one}/signal", {"name": "go", "id": "s-1"}) for _ in range(2)]

    assert (await api.get(one)).json()["status"] == "completed"
    assert [(answer.status_code, answer.json()) for answer in answers] == [
        (202, {"delivered": True, "buffered": False})
    ] * 2


async def test_a_signal_that_the_graph_can_t_take_is_refused(api: Api) -> None:
    one = await start(api, ASKS)

    response = await api.post(f"{one}/signal", {"name": "stop"})

    assert (response.status_code, response.json()["code"]) == (422, "unknown_signal")
    assert [error["pointer"] for error in response.json()["errors"]] == ["/name"]
    assert await api.fetch("select id from workflow_signals") == []


async def test_a_signal_that_gets_no_lock_is_kept_for_its_holder(api: Api, database_url: str) -> None:
    one = await start(api, ASKS)
    async with Database(database_url, "korak") as holder, holder.transaction() as connection:
        await connection.fetch("select id from workflow_instances for no key update")
        response = await api.post(f"{one}/signal", {"name": "go"})

    assert (response.status_code, response.json()) == (202, {"delivered": False, "buffered": True})
    assert len(await api.fetch("select id from workflow_signals where taken_at is null")) == 1


async def test_a_signal_is_kept_while_the_run_is_paused(api: Api) -> None:
    one = await start(api, ASKS)
    await api.post(f"{one}/pause")

    response = await api.post(f"{one}/signal", {"name": "go"})

    assert response.json() == {"delivered": False, "buffered": True}
    assert (await api.get(one)).json()["status"] == "paused"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": 1},
        {"name": "go", "payload": []},
        {"name": "go", "id": "x" * 192},
        {"name": "n" * 192},
    ],
)
async def test_a_wrong_signal_is_told(api: Api, body: Any) -> None:
    one = await start(api, ASKS)

    assert (await api.post(f"{one}/signal", body)).status_code == 422


# events


async def test_an_event_reaches_every_wait_that_it_fits(api: Api, database_url: str) -> None:
    fitting = [await start(api, PAYS, order="a") for _ in range(2)]
    other = await start(api, PAYS, order="b")
    open_ = await start(api, ANY)

    response = await api.post("/v1/emit", {"name": "paid", "payload": {"order": "a", "amount": 3}})

    assert (response.status_code, response.json()) == (202, {"matched": 3, "started": [], "kept": True})
    await wake(api, database_url)
    for one in (*fitting, open_):
        assert (await api.get(one)).json()["nodes"] == ["work"]
    assert (await api.get(other)).json()["nodes"] == ["paid"]


@pytest.mark.parametrize("is_early", [False, True])
async def test_events_of_two_names_may_have_one_id(api: Api, database_url: str, is_early: bool) -> None:
    """As where the id is that of a payment, and each thing that happens to it is an event."""
    mine = {"payment": 7}
    first, second = ("authorized", "settled")
    both = chain("both", *(node(name, "wait", event=name, match=mine) for name in (first, second)))
    one = None if is_early else await start(api, both)
    for name in (first, second):
        await api.post("/v1/emit", {"name": name, "id": "pay-7", "payload": mine})
    one = one or await start(api, both)
    for _ in range(2):
        await wake(api, database_url)

    assert (await api.get(one)).json()["status"] == "completed"


async def test_numbers_match_by_value(api: Api) -> None:
    await start(api, PAYS, order=1)

    assert (await api.post("/v1/emit", {"name": "paid", "payload": {"order": 1.0}})).json()["matched"] == 1
    assert (await api.post("/v1/emit", {"name": "paid", "payload": {"order": "1"}})).json()["matched"] == 0
    assert (await api.post("/v1/emit", {"name": "paid", "payload": {"order": True}})).json()["matched"] == 0


@pytest.mark.parametrize("payload", [{}, {"order": None}, {"orders": "a"}, {"order": {"order": "a"}}])
async def test_what_lacks_the_value_fits_nothing(api: Api, payload: Any) -> None:
    await start(api, PAYS, order="a")

    assert (await api.post("/v1/emit", {"name": "paid", "payload": payload})).json()["matched"] == 0
    assert (await api.post("/v1/emit", {"name": "unpaid", "payload": {"order": "a"}})).json()["matched"] == 0


async def test_ow_5_events_never_cross_owners(api: Api) -> None:
    await api.publish(ANY)
    for owner in ("team:1", "team:2"):
        await api.start("any", headers={"korak-owner": owner})
    team = await api.make_token(OwnerRole.STARTER, owner="team:1")

    assert (await api.post("/v1/emit", {"name": "paid"}, token=team)).json()["matched"] == 1
    assert (await api.post("/v1/emit", {"name": "paid"})).json()["matched"] == 0


async def test_the_same_event_twice_is_one(api: Api) -> None:
    await start(api, ANY)
    body = {"name": "paid", "id": "e-1", "ttl": 0}

    answers = [(await api.post("/v1/emit", body)).json() for _ in range(2)]
    await start(api, ANY)
    late = (await api.post("/v1/emit", body)).json()

    assert answers == [{"matched": 1, "started": [], "kept": False}] * 2
    assert late == answers[0]
    assert len(await api.fetch("select id from workflow_signals")) == 1
    assert len(await api.fetch("select id from workflow_emits")) == 1


async def test_many_of_one_event_at_once_deliver_once(api: Api, database_url: str) -> None:
    for _ in range(5):
        await start(api, ANY)
    async with open_api(database_url) as other:
        answers = await asyncio.gather(
            *((api, other)[number % 2].post("/v1/emit", {"name": "paid", "id": "e-1"}) for number in range(10))
        )

    assert {answer.status_code for answer in answers} == {202}
    assert len(await api.fetch("select id from workflow_signals")) == 5
    [emit] = await api.fetch("select matched, matched_at from workflow_emits")
    assert emit["matched"] == 5
    assert emit["matched_at"] is not None


async def test_a_kept_event_is_taken_by_a_wait_that_comes_later(api: Api, database_url: str) -> None:
    """DESIGN 10: a wait that parks takes the oldest kept event that fits its match and wasn't consumed."""
    kept = await api.post("/v1/emit", {"name": "paid", "payload": {"order": "a"}})
    gone = await api.post("/v1/emit", {"name": "paid", "payload": {"order": "b"}, "ttl": 0})
    assert (kept.json()["kept"], gone.json()["kept"]) == (True, False)

    looking, missing = await start(api, PAYS, order="a"), await start(api, PAYS, order="b")
    await wake(api, database_url)

    assert (await api.get(looking)).json()["nodes"] == ["work"]
    assert (await api.get(missing)).json()["nodes"] == ["paid"]


async def test_a_paused_instance_has_its_event_for_when_it_goes_on(api: Api, database_url: str) -> None:
    one = await start(api, ANY)
    await api.post(f"{one}/pause")

    assert (await api.post("/v1/emit", {"name": "paid", "ttl": 0})).json()["matched"] == 1
    assert (await api.get(one)).json()["status"] == "paused"
    await api.post(f"{one}/resume")
    await wake(api, database_url)

    assert (await api.get(one)).json()["nodes"] == ["work"]


async def test_an_event_whose_matching_was_cut_off_is_matched_by_the_next_who_looks(api: Api) -> None:
    """A process that dies between the two transactions of an emit leaves a row that tells."""
    for _ in range(5):
        await start(api, ANY)
    now = api.resources.clock.now()
    async with api.database.transaction() as connection:
        kept = await keep(Session(connection), Emit("*", "paid", {}, "e-1", now, now))
    async with api.database.acquire() as connection:
        assert await list_open(Session(connection), now, 10) == [kept.id]

    first = await api.resources.matcher.match(kept.id, now, size=2)
    again = await api.resources.matcher.match(kept.id, now, size=2)

    assert (first.matched, again.matched) == (5, 0)
    assert len(await api.fetch("select id from workflow_signals")) == 5
    async with api.database.acquire() as connection:
        assert await list_open(Session(connection), now, 10) == []


async def test_a_step_that_somebody_holds_gets_its_event_all_the_same(api: Api, database_url: str) -> None:
    one = await start(api, ANY)
    async with Database(database_url, "korak") as holder, holder.transaction() as connection:
        await connection.fetch("select id from workflow_step_runs for no key update")
        emitting = asyncio.create_task(api.post("/v1/emit", {"name": "paid"}))
        response = await emitting
    assert response.json()["matched"] == 1
    assert len(await api.fetch("select id from workflow_signals")) == 1
    assert (await api.get(one)).status_code == 200


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "paid", "subject": {"type": "order", "id": "1"}}, "/subject"),
        ({"name": "paid", "ttl": "soon"}, "/ttl"),
        ({"name": "paid", "ttl": -1}, "/ttl"),
        ({"name": "paid", "ttl": "P31D"}, "/ttl"),
        ({"name": "paid", "ttl": "P999999999D"}, "/ttl"),
        ({"name": "paid", "payload": "x"}, "/payload"),
        ({"name": ["paid"]}, "/name"),
    ],
)
async def test_a_wrong_event_is_told_and_not_kept(shared_api: Api, body: Any, pointer: str) -> None:
    response = await shared_api.post("/v1/emit", body)

    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [pointer]
    assert await shared_api.fetch("select id from workflow_emits") == []
