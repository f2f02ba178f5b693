"""The inbox: debounced starts (T-DEB-1, T-DEB-2), and starts and emits that users write in their own transactions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import asyncpg
import pytest

from korak.clock import ManualClock
from korak.metrics import Metrics
from korak.model import OwnerRole
from korak_waker.report import Report
from tests.support.apis import ORDER, PURE, Api, chain, node, open_api
from tests.support.flows import NOW, Flows
from tests.support.wakers import Wakers, at

START = "/v1/definitions/order/start"
WINDOW: dict[str, Any] = {"key": "K", "wait": 3, "max_wait": 10}
INBOX = "select id, name, error, opened_at, due_at, latest_at from workflow_inbox order by id"
GOOD = '{"input": {"order": "o-1"}}'


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW)


@pytest.fixture
async def api(database_url: str, clock: ManualClock) -> AsyncIterator[Api]:
    """The API at the time of the test's clock."""
    async with open_api(database_url, clock=clock) as api:
        yield api


async def call(api: Api, order: str, body: Any = None, **rest: Any) -> str:
    """One debounced start; when it is due, in seconds after NOW."""
    response = await api.post(START, {"input": {"order": order}, "debounce": WINDOW, **(body or {})}, **rest)
    assert response.status_code == 202, response.text
    assert response.json().keys() == {"due_at"}
    return str((NOW.fromisoformat(response.json()["due_at"]) - NOW).total_seconds())


async def list_orders(api: Api) -> list[str]:
    rows = await api.fetch("select input ->> 'order' as given from workflow_instances order by id")
    return [row["given"] for row in rows]


async def write(url: str, *rows: str) -> None:
    """Rows as a user writes them, in one transaction of his own."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction():
            for row in rows:
                await connection.execute(row)
    finally:
        await connection.close()


# debounce


async def test_t_deb_1_calls_within_the_wait_are_one_run_with_the_last_body(
    api: Api, clock: ManualClock, wakers: Wakers
) -> None:
    await api.publish(ORDER)
    due = []
    for second in range(5):
        due.append(await call(api, f"o-{second}"))
        assert await wakers.run(second) == Report()
        clock.advance(1)

    assert await wakers.run(6.999) == Report()
    assert await list_orders(api) == []
    assert await wakers.run(7) == Report(inbox=1)
    assert await wakers.run(20) == Report()

    assert due == ["3.0", "4.0", "5.0", "6.0", "7.0"]
    assert await list_orders(api) == ["o-4"]
    assert await api.fetch(INBOX) == []


async def test_t_deb_2_calls_that_never_stop_start_at_the_longest_wait(
    api: Api, clock: ManualClock, wakers: Wakers
) -> None:
    await api.publish(ORDER)
    for second in range(12):
        await call(api, f"o-{second}")
        report = await wakers.run(second)
        assert report == (Report(inbox=1) if second == 10 else Report())
        clock.advance(1)

    # The call at 10 s found the window open, the one after its start has opened another.
    assert await list_orders(api) == ["o-10"]
    [row] = await api.fetch(INBOX)
    assert (row["opened_at"], row["due_at"], row["latest_at"]) == (at(11), at(14), at(21))


async def test_a_pass_knows_when_a_window_is_due(api: Api, wakers: Wakers) -> None:
    await api.publish(ORDER)
    await call(api, "o-1")
    waker = await wakers.make()

    assert await waker.get_next_due(NOW) == at(3)


async def test_a_window_belongs_to_its_owner_definition_and_key(api: Api, clock: ManualClock, wakers: Wakers) -> None:
    await api.publish(ORDER)
    await api.publish({**ORDER, "key": "other"})
    for debounce in (WINDOW, {**WINDOW, "key": "L"}):
        await call(api, "o-1", {"debounce": debounce})
    await call(api, "o-2", headers={"korak-owner": "team:1"})
    body = {"input": {"order": "o-3"}, "debounce": WINDOW}
    assert (await api.post("/v1/definitions/other/start", body)).status_code == 202

    assert await wakers.run(3) == Report(inbox=4)


async def test_a_shorter_longest_wait_of_a_later_call_holds(api: Api, clock: ManualClock) -> None:
    await api.publish(ORDER)
    await call(api, "o-1", {"debounce": {"key": "K", "wait": 60}})
    clock.advance(5)
    bounded = await call(api, "o-2", {"debounce": {"key": "K", "wait": 30, "max_wait": "PT31S"}})
    clock.advance(5)
    unbounded = await call(api, "o-3", {"debounce": {"key": "K", "wait": 60}})

    assert (bounded, unbounded) == ("31.0", "31.0")


async def test_a_debounced_start_keeps_who_asked_and_how(api: Api, wakers: Wakers) -> None:
    await api.publish(chain("order", node("price", "test.ok"), actor="on_behalf_of"))
    token = await api.make_token(OwnerRole.STARTER, user="ana")
    body = {"id": "A-17", "labels": ["vip"], "priority": "high", "debounce": WINDOW}
    assert (await api.post(START, body, token=token)).status_code == 202

    await wakers.run(3)

    instance = await api.show("order~A-17")
    assert instance["actor"] == {"mode": "on_behalf_of", "user": "ana"}
    assert (instance["labels"], instance["priority"]) == (["vip"], "high")


async def test_the_key_of_the_last_call_is_its_start_s(api: Api, clock: ManualClock, wakers: Wakers) -> None:
    await api.publish(ORDER)
    key = {"idempotency-key": "k"}
    await call(api, "o-1", headers=key)
    await call(api, "o-1", headers=key)
    await wakers.run(3)

    body = {"input": {"order": "o-1"}, "debounce": WINDOW}
    repeated = await api.post(START, body, headers=key)
    differs = await api.post(START, {**body, "input": {"order": "o-2"}}, headers=key)

    assert (repeated.status_code, repeated.json()["created"]) == (200, False)
    assert "input_differs" not in repeated.json()
    assert differs.json()["input_differs"] is True
    assert await list_orders(api) == ["o-1"]


@pytest.mark.parametrize(
    ("debounce", "pointer"),
    [
        ({}, "/debounce/key"),
        (None, "/debounce"),
        ({"key": "K"}, "/debounce/wait"),
        ({"wait": 1}, "/debounce/key"),
        ({"key": None, "wait": 1}, "/debounce/key"),
        ({"key": "", "wait": 1}, "/debounce/key"),
        ({"key": " ", "wait": 1}, "/debounce/key"),
        ({"key": "k" * 192, "wait": 1}, "/debounce/key"),
        ({"key": "K", "wait": -1}, "/debounce/wait"),
        ({"key": "K", "wait": "-PT1S"}, "/debounce/wait"),
        ({"key": "K", "wait": "soon"}, "/debounce/wait"),
        ({"key": "K", "wait": "P9999Y"}, "/debounce/wait"),
        ({"key": "K", "wait": 10, "max_wait": 9}, "/debounce/max_wait"),
        ({"key": "K", "wait": 0, "max_wait": -1}, "/debounce/max_wait"),
        ({"key": "K", "wait": 0, "most": 1}, "/debounce/most"),
    ],
)
async def test_bad_windows_are_refused_with_a_pointer(api: Api, debounce: Any, pointer: str) -> None:
    await api.publish(ORDER)

    response = await api.post(START, {"input": {"order": "o-1"}, "debounce": debounce})

    assert response.status_code == 422
    assert pointer in {error["pointer"] for error in response.json()["errors"]}
    assert await api.fetch(INBOX) == []


async def test_what_can_t_be_started_is_refused_at_the_call(api: Api) -> None:
    await api.publish(ORDER)

    unknown = await api.post("/v1/definitions/nothing/start", {"debounce": WINDOW})
    wrong = await api.post(START, {"input": {}, "debounce": WINDOW})
    waiting = await api.post(START, {"input": {"order": "o-1"}, "debounce": WINDOW}, wait=1)

    assert [answer.status_code for answer in (unknown, wrong, waiting)] == [404, 422, 422]
    assert await api.fetch(INBOX) == []


async def test_several_wakers_start_a_window_once(api: Api, wakers: Wakers) -> None:
    await api.publish(ORDER)
    for number in range(20):
        await call(api, f"o-{number}", {"debounce": {**WINDOW, "key": f"K-{number}"}})
    made = [await wakers.make() for _ in range(3)]

    reports = await asyncio.gather(*(waker.run_once(at(3)) for waker in made))

    assert sum(report.inbox for report in reports) == 20
    assert len(await list_orders(api)) == 20


async def test_a_call_while_its_window_starts_opens_the_next(api: Api, database_url: str, wakers: Wakers) -> None:
    """The call waits for the row that a waker holds: it is in that start's window or in the next, never lost."""
    await api.publish(ORDER)
    await call(api, "o-1")
    async with AsyncExitStack() as stack:
        holder = await asyncpg.connect(database_url)
        stack.push_async_callback(holder.close)
        holding = holder.transaction()
        await holding.start()
        await holder.execute("select id from korak.workflow_inbox for update")
        assert await wakers.run(3) == Report()
        calling = asyncio.create_task(call(api, "o-2"))
        await holder.execute("delete from korak.workflow_inbox")
        await holding.commit()
        await calling

    [row] = await api.fetch("select body from workflow_inbox")
    assert row["body"] == {"input": {"order": "o-2"}}


# rows that users write


async def test_starts_and_emits_of_a_user_s_transaction_are_made(api: Api, database_url: str, wakers: Wakers) -> None:
    await api.publish(ORDER)
    await api.publish(chain("pays", node("paid", "wait", event="paid", match={"order": "o-1"})))
    waiting = await api.start("pays", headers={"korak-owner": "team:1"})
    await write(
        database_url,
        "insert into korak.workflow_inbox (kind, owner_scope, name, body) values"
        """ ('start', 'team:1', 'order', '{"input": {"order": "o-1"}, "id": "A-1"}')""",
        "insert into korak.workflow_inbox (kind, owner_scope, name, body) values"
        """ ('emit', 'team:1', 'paid', '{"payload": {"order": "o-1"}}')""",
    )

    report = await wakers.run()

    assert (report.inbox, report.errors) == (2, 0)
    started = await api.show("order~A-1", headers={"korak-owner": "team:1"})
    assert started["input"] == {"order": "o-1", "count": 1}
    assert (
        len(
            await api.fetch(
                "select 1 from workflow_signals s join workflow_instances i on i.id = s.instance_id"
                " where i.ulid = $1 and s.kind = 'event'",
                waiting["id"],
            )
        )
        == 1
    )
    assert await api.fetch(INBOX) == []


async def test_rows_that_are_wrong_are_kept_with_their_error_and_stop_no_other(
    api: Api, database_url: str, wakers: Wakers
) -> None:
    await api.publish(ORDER)
    await api.start("order", {"input": {"order": "o-0"}, "id": "open"})
    bad = {
        ("start", "*", "nothing", GOOD): ("definition_not_found", "/name"),
        ("start", "", "order", GOOD): ("invalid_owner", "/owner_scope"),
        ("start", "*", "order", '{"input": {}}'): ("invalid_request", "/body/input/order"),
        ("start", "*", "order", '{"input": {"order": "a"}, "id": "a b"}'): ("invalid_request", "/body/id"),
        ("start", "*", "order", '{"input": {"order": "a"}, "id": "open"}'): ("id_in_use", "/body"),
        ("start", "*", "order", '{"input": {"order": "a"}, "more": 1}'): ("invalid_request", "/body/more"),
        ("start", "*", "order", f'{{"input": {{"count": {1 << 70}}}}}'): ("invalid_json", "/body/input/count"),
        ("start", "*", "order", '{"input": {"order": "a", "count": 1e400}}'): ("invalid_json", "/body"),
        ("start", "*", "order", "[]"): ("invalid_request", "/body"),
        ("emit", "*", "", "{}"): ("invalid_parameter", "/name"),
        ("emit", "*", "paid", '{"payload": 1}'): ("invalid_request", "/body/payload"),
        ("emit", "*", "paid", '{"ttl": "P1Y"}'): ("invalid_request", "/body/ttl"),
    }
    rows = [
        f"insert into korak.workflow_inbox (kind, owner_scope, name, body) values ('{kind}', '{owner}', '{name}',"
        f" '{body}')"
        for kind, owner, name, body in (*bad, ("start", "*", "order", GOOD))
    ]
    await write(database_url, *rows)

    report = await wakers.run()

    kept = await api.fetch(INBOX)
    assert [(row["error"]["code"], row["error"]["pointer"]) for row in kept] == list(bad.values())
    assert (report.inbox, report.errors) == (len(bad) + 1, 0)
    assert await list_orders(api) == ["o-0", "o-1"]
    assert await wakers.run(1) == Report()


async def test_a_row_that_can_t_be_written_stands_alone(api: Api, database_url: str, wakers: Wakers) -> None:
    """What only the database finds wrong about one row is kept with that row."""
    await api.publish(ORDER)
    await write(
        database_url,
        "alter table korak.workflow_emits add constraint no_such check (name <> 'bad')",
        "insert into korak.workflow_inbox (kind, name) values ('emit', 'good')",
        "insert into korak.workflow_inbox (kind, name) values ('emit', 'bad')",
        f"insert into korak.workflow_inbox (kind, name, body) values ('start', 'order', '{GOOD}')",
    )

    assert (await wakers.run()).inbox == 3

    [row] = await api.fetch(INBOX)
    assert (row["name"], row["error"]["code"]) == ("bad", "internal")
    assert [row["name"] for row in await api.fetch("select name from workflow_emits")] == ["good"]
    assert await list_orders(api) == ["o-1"]


async def test_a_start_that_replaces_the_open_run_waits_in_the_inbox_for_its_end(
    api: Api, database_url: str, wakers: Wakers
) -> None:
    await api.publish(ORDER)
    first = await api.start("order", {"input": {"order": "o-1"}, "id": "A-17"})
    body = '{"input": {"order": "o-2"}, "id": "A-17", "on_open": "cancel_existing", "on_closed": "refuse"}'
    await write(
        database_url, f"insert into korak.workflow_inbox (kind, name, body) values ('start', 'order', '{body}')"
    )

    for seconds in (0, 1, 2, 3):
        await wakers.run(seconds)

    second = await api.show("order~A-17")
    assert (await api.show(first["id"]))["status"] == "cancelled"
    assert (second["run"], second["input"]["order"]) == (2, "o-2")
    assert await api.fetch(INBOX) == []


async def test_a_limit_on_starts_puts_a_row_off_and_leaves_nothing_behind(
    api: Api, database_url: str, wakers: Wakers
) -> None:
    await api.publish(chain("order", node("price", "test.ok"), limits={"max_starts_per_minute": 1}))
    await write(database_url, *["insert into korak.workflow_inbox (kind, name) values ('start', 'order')"] * 2)

    await wakers.run()
    assert len(await api.fetch("select id from workflow_instances")) == 1
    await wakers.run(1)
    assert len(await api.fetch(INBOX)) == 1
    await wakers.run(61)

    assert len(await api.fetch("select id from workflow_instances where closed_reason is null")) == 2
    assert len(await api.fetch("select id from workflow_instances")) == 2


async def test_what_ends_at_once_is_started_from_the_inbox_too(
    api: Api, database_url: str, wakers: Wakers, metrics: Metrics, flows: Flows
) -> None:
    await api.publish(PURE)
    await write(database_url, *["insert into korak.workflow_inbox (kind, name) values ('start', 'pure')"] * 3)
    waker = await wakers.make(batch=2)

    assert (await waker.run_once(NOW)).inbox == 3
    assert {row["status"] for row in await api.fetch("select status from workflow_instances")} == {"completed"}
