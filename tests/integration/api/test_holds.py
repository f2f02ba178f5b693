"""Holds and queues over HTTP, and what an instance that is held or limited says of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from korak.clock import Clock, ManualClock
from korak.core.facts import Claimed
from korak.core.snapshot import Claimant
from korak.graphs import instants
from korak.model import OwnerRole
from korak.store import holds
from korak.store.database import Session
from tests.support.apis import Api, chain, node, open_api
from tests.support.flows import open_flows
from tests.support.holdings import claiming, make_claimant
from tests.support.waiting import eventually

UNTIL = "2100-01-01T00:00:00+00:00"
HAS_LOOKED = """
    select 1 from pg_stat_activity where datname = current_database() and application_name = 'api under test'
        and query like '%pg_locks%' and state = 'idle'"""


def limited(*flow: dict[str, Any]) -> dict[str, Any]:
    """A graph of one step of test.ok with these limits."""
    one: Any = node("a", "test.ok", value=1)
    return chain("order", one | {"flow": list(flow)} if flow else one)


async def claim(api: Api, url: str) -> list[str | None]:
    """Ask for all that is ready, as an engine that has just looked for holds; what was dropped and why."""
    async with open_flows(url) as flows:
        now = api.resources.clock.now()
        engine, known = await flows.register(now), None
        async with api.database.acquire() as connection:
            known = await holds.load(Session(connection), now)
        dropped = []
        rows = await flows.fetch(
            "select id, instance_id from workflow_step_runs where ready_at is not null order by id"
        )
        for row in rows:
            claimant = Claimant(engine, f"T{row['id']}", frozenset({"default"}), lambda key, version: True, known)
            changes = await flows.answer(row["instance_id"], Claimed(row["id"], claimant), now)
            dropped.append(changes.dropped)
        return dropped


@pytest.mark.parametrize(
    ("place", "kind", "name"),
    [
        ("definitions/order", "definition", "order"),
        ("step-types/test.ok", "step_type", "test.ok"),
        ("queues/default", "queue", "default"),
    ],
)
async def test_what_is_held_says_so_until_it_is_released(
    api: Api, database_url: str, place: str, kind: str, name: str
) -> None:
    await api.publish(limited())
    response = await api.post(f"/v1/{place}/hold", {"reason": "the ERP is down", "until": UNTIL})
    assert response.status_code == 200
    held = response.json()
    assert (held["kind"], held["name"], held["reason"]) == (kind, name, "the ERP is down")
    assert held["actor"]["token"] == "test"

    started = await api.start("order")
    assert await claim(api, database_url) == ["held"]
    [waiting] = (await api.get(f"/v1/instances/{started['id']}")).json()["waiting_for"]
    assert (waiting["kind"], waiting["node"], waiting["names"]) == ("hold", "a", [f"{kind} {name}"])
    assert waiting["due_at"].startswith("2100-01-01")
    assert waiting["reason"] == "the ERP is down"

    released = await api.post(f"/v1/{place}/release")
    assert released.status_code == 200
    assert released.json()["released_at"] is not None
    assert (await api.post(f"/v1/{place}/release")).status_code == 404


async def test_what_several_hold_is_due_once_the_last_of_them_is_over(api: Api, database_url: str) -> None:
    await api.publish(limited())
    await api.post("/v1/queues/default/hold", {"until": UNTIL, "reason": "moving"})
    await api.post("/v1/definitions/order/hold", {"reason": "wrong prices"})
    started = await api.start("order")
    assert await claim(api, database_url) == ["held"]

    [waiting] = (await api.show(started["id"]))["waiting_for"]
    assert waiting["names"] == ["definition order", "queue default"]
    assert (waiting["due_at"], waiting["reason"]) == (None, "wrong prices; moving")

    await api.post("/v1/definitions/order/hold", {"until": "2200-01-01T00:00:00Z"})
    [waiting] = (await api.show(started["id"]))["waiting_for"]
    assert waiting["due_at"].startswith("2200-01-01")

    await api.post("/v1/definitions/order/hold", {"until": "2090-01-01T00:00:00Z"})
    [waiting] = (await api.show(started["id"]))["waiting_for"]
    assert waiting["due_at"].startswith("2100-01-01")


async def test_a_queue_that_no_engine_serves_is_told(database_url: str) -> None:
    """DESIGN 2: once an engine has had the time to come, and until one does."""
    clock = ManualClock(Clock().now())
    async with open_api(database_url, clock=clock) as api, open_flows(database_url) as flows:
        one: Any = node("a", "test.ok", value=1)
        await api.publish(chain("order", one | {"queue": "gpu"}))
        ulid = (await api.start("order"))["id"]
        assert (await api.show(ulid))["waiting_for"] == []
        now = clock.advance(11)
        shown = await api.show(ulid)
        [waiting] = shown["waiting_for"]
        assert (shown["status"], waiting["kind"], waiting["node"]) == ("running", "engine", "a")
        assert waiting["names"] == ["queue gpu"]
        engine = await flows.register(now)
        assert len((await api.show(ulid))["waiting_for"]) == 1, "it serves another one"
        await flows.fetch("update engines set queues = '[\"gpu\"]' where id = $1", engine)
        assert (await api.show(ulid))["waiting_for"] == []


async def test_an_engine_is_waited_for_since_the_step_has_been_ready(database_url: str) -> None:
    clock = ManualClock(Clock().now())
    async with open_api(database_url, clock=clock) as api:
        one: Any = node("a", "test.ok", value=1)
        await api.publish(chain("order", one | {"queue": "gpu"}))
        ulid = (await api.start("order"))["id"]
        await api.post(f"/v1/instances/{ulid}/pause")
        resumed = clock.advance(3600)
        await api.post(f"/v1/instances/{ulid}/resume")
        clock.advance(11)
        [waiting] = (await api.show(ulid))["waiting_for"]
        assert waiting["kind"] == "engine"
        assert instants.parse(waiting["since"]) == resumed


async def test_what_waits_for_room_says_for_which_key(api: Api, database_url: str) -> None:
    rate = {"key": "mails", "rate": {"limit": 1, "per": "PT1H"}}
    await api.publish(limited({"key": "customer:7", "concurrency": 2}, rate))
    first, second = [await api.start("order") for _ in range(2)]
    assert await claim(api, database_url) == [None, "limit"]
    assert (await api.get(f"/v1/instances/{first['id']}")).json()["waiting_for"] == []
    [waiting] = (await api.get(f"/v1/instances/{second['id']}")).json()["waiting_for"]
    assert (waiting["kind"], waiting["names"]) == ("limit", ["mails"])
    assert waiting["due_at"] is not None


async def test_a_hold_is_answered_once_nothing_of_it_can_begin(api: Api, database_url: str) -> None:
    """A claim whose transaction has looked before the hold was put: it begins, and the answer waits for it."""
    await api.publish(limited())
    started = await api.start("order")
    async with open_flows(database_url) as flows:
        engine = await flows.register()
        instance = await flows.get("select id from workflow_instances where ulid = $1", started["id"])
        claimant = await make_claimant(flows, engine)
        async with claiming(flows, database_url, instance, claimant) as changes:
            assert changes.claimed
            holding = asyncio.create_task(api.post("/v1/definitions/order/hold"))
            await eventually(lambda: flows.get(HAS_LOOKED))
            assert await flows.get("select count(*) from holds") == 1
            assert not holding.done()
        assert (await holding).status_code == 200
        assert (await flows.get_step(instance))["status"] == "running"


async def test_a_hold_that_is_put_again_has_the_new_reason(api: Api, database_url: str) -> None:
    async with open_flows(database_url) as flows:
        await flows.register(queues=("slow",))
    await api.post("/v1/queues/slow/hold", {"reason": "one"})
    await api.post("/v1/queues/slow/hold", {"reason": "two"})
    [queue] = [queue for queue in (await api.get("/v1/queues")).json()["items"] if queue["name"] == "slow"]
    assert queue["hold"]["reason"] == "two"


async def test_queues_tell_what_stands_in_them(api: Api, database_url: str) -> None:
    await api.publish(limited())
    for _ in range(3):
        await api.start("order")
    await api.fetch(
        "update workflow_step_runs set sent_at = ready_at where id = (select min(id) from workflow_step_runs)"
    )
    async with open_flows(database_url) as flows:
        await flows.register(api.resources.clock.now(), queues=("default", "other"))
    queues = {queue["name"]: queue for queue in (await api.get("/v1/queues")).json()["items"]}
    counts = {member: queues["default"][member] for member in ("bound", "backlog", "sent", "held", "consumers")}
    assert counts == {"bound": 1000, "backlog": 2, "sent": 1, "held": 0, "consumers": 1}
    assert queues["other"]["consumers"] == 1
    assert queues["default"]["hold"] is None


async def test_an_owner_sees_and_holds_its_own(api: Api) -> None:
    await api.publish(limited())
    for owner in ("team:1", "team:2"):
        await api.start("order", headers={"korak-owner": owner})
    token = await api.make_token(OwnerRole.OPERATOR, owner="team:1")
    held = await api.post("/v1/queues/default/hold", {}, token=token)
    assert held.json()["owner"] == "team:1"
    [queue] = (await api.get("/v1/queues", token=token)).json()["items"]
    assert (queue["backlog"], queue["hold"]["owner"]) == (1, "team:1")
    other = await api.make_token(OwnerRole.OPERATOR, owner="team:2")
    [queue] = (await api.get("/v1/queues", token=other)).json()["items"]
    assert queue["hold"] is None
    assert (await api.post("/v1/queues/default/release", token=other)).status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/definitions/nothing/hold", {}, 404, "definition_not_found"),
        ("/v1/definitions/nothing/release", {}, 404, "not_found"),
        ("/v1/queues/default/hold", {"until": "2000-01-01T00:00:00Z"}, 422, "invalid_request"),
        ("/v1/queues/default/hold", {"until": "soon"}, 422, "invalid_request"),
        ("/v1/queues/default/hold", {"why": "x"}, 422, "invalid_request"),
    ],
)
async def test_what_is_wrong_has_a_code(api: Api, path: str, body: dict[str, Any], status: int, code: str) -> None:
    response = await api.post(path, body)
    assert (response.status_code, response.json()["code"]) == (status, code)


async def test_what_nobody_knows_is_not_held(api: Api, database_url: str) -> None:
    """A slip in a name would keep nothing. What an engine has announced or a version uses is known."""
    paths = ("step-types/acme.load", "queues/slow", "step-types/test.ok", "queues/erp", "queues/night")
    for path in paths:
        response = await api.post(f"/v1/{path}/hold")
        kind, name = path.split("/")
        assert (response.status_code, response.json()["code"]) == (404, "not_found"), path
        assert response.json()["detail"] == f"There is no {kind[:-1].replace('-', ' ')} {name} here."
    async with open_flows(database_url) as flows:
        await flows.register(types=("acme.load@2",), queues=("slow",))
    one: Any = node("a", "test.ok", value=1)
    await api.publish(chain("order", one | {"queue": "erp"}, queue="night"))
    for path in paths:
        assert (await api.post(f"/v1/{path}/hold")).status_code == 200, path
    assert (await api.post("/v1/step-types/end/hold")).status_code == 404
    assert (await api.post("/v1/step-types/acme.loa/hold")).status_code == 404


async def test_what_others_have_published_is_known_to_them_alone(api: Api) -> None:
    one: Any = node("a", "test.ok", value=1)
    author = await api.make_token(OwnerRole.ADMIN, owner="team:1")
    await api.publish(chain("order", one | {"queue": "erp"}), token=author)
    for owner, status in (("team:1", 200), ("team:2", 404)):
        token = await api.make_token(OwnerRole.OPERATOR, owner=owner)
        for path in ("step-types/test.ok", "queues/erp"):
            assert (await api.post(f"/v1/{path}/hold", token=token)).status_code == status, (owner, path)


async def test_a_viewer_holds_nothing(api: Api) -> None:
    token = await api.make_token(OwnerRole.VIEWER, owner="team:1")
    assert (await api.post("/v1/queues/default/hold", {}, token=token)).status_code == 403
    assert (await api.get("/v1/queues", token=token)).status_code == 403
