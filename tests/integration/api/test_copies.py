"""Export and import over HTTP, on real rows (T-X-3)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from ulid import ULID

from korak.core.facts import Claimed, Finished, Raised
from korak.core.rows import StepRun
from korak.core.snapshot import Claimant
from korak.model import JsonObject, OwnerRole
from korak.steps.contract import Complete
from tests.support.apis import Api, chain, node
from tests.support.flows import Flows, open_flows

NEVER = ("hunter2", "claim_token", "engine_id", "idempotency")


def save(name: str) -> JsonObject:
    return node(name, "test.price", order=name) | {"save": {"key": name}}


THREE = chain("three", save("a"), node("ask", "wait", signal="go"), save("b"))


def spread() -> JsonObject:
    """A step, two branches at the same time, a step."""
    branches: Any = {
        name: {"start": name, "nodes": [save(name), save(f"{name}2")], "edges": [{"from": name, "to": f"{name}2"}]}
        for name in ("x", "y")
    }
    return chain("spread", save("a"), {"id": "both", "type": "parallel", "branches": branches}, save("c"))


@pytest.fixture
async def flows(api: Api, database_url: str) -> AsyncIterator[Flows]:
    async with open_flows(database_url) as opened:
        yield opened


async def get_id(api: Api, ulid: str) -> int:
    [row] = await api.fetch("select id from workflow_instances where ulid = $1", ulid)
    found: int = row["id"]
    return found


async def claim(api: Api, flows: Flows, ulid: str) -> StepRun:
    now = api.resources.clock.now()
    return await flows.claim(await get_id(api, ulid), await flows.register(now), now)


async def work(api: Api, flows: Flows, ulid: str) -> None:
    step = await claim(api, flows, ulid)
    fact = Finished(step.id, step.claim_token or "", Complete(output={"is": step.node_id}))
    await flows.answer(step.instance_id, fact, api.resources.clock.now())


async def work_all(api: Api, flows: Flows, ulid: str) -> None:
    """All that is ready, one at a time."""
    instance_id = await get_id(api, ulid)
    ready = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null order by id limit 1"
    now = api.resources.clock.now()
    engine = await flows.register(now)
    while row := await flows.get(ready, instance_id):
        changes = await flows.answer(instance_id, claiming(row, engine), now)
        for grant in changes.claimed:
            result = Complete(output={"is": grant.step.node_id})
            await flows.answer(instance_id, Finished(grant.step.id, grant.step.claim_token or "", result), now)


def claiming(step_id: int, engine: int) -> Claimed:
    return Claimed(step_id, Claimant(engine, str(ULID()), frozenset({"default"}), lambda key, version: True))


async def export(api: Api, ulid: str) -> Any:
    response = await api.get(f"/v1/instances/{ulid}/export")
    assert response.status_code == 200, response.text
    document = response.json()
    assert not [word for word in NEVER if word in json.dumps(document["instance"]) + json.dumps(document["steps"])]
    return document


async def bring(api: Api, document: Any) -> Any:
    response = await api.post("/v1/instances/import", document)
    assert response.status_code == 201, response.text
    made = response.json()
    assert made["id"] != document["instance"]["id"]
    assert made == await api.show(made["id"])
    return made


async def list_all(api: Api, ulid: str, what: str) -> Any:
    return (await api.get(f"/v1/instances/{ulid}/{what}", limit=200)).json()["items"]


def strip(rows: Any, *names: str) -> Any:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]


async def begin(api: Api, flows: Flows) -> str:
    """An instance that waits for its signal behind its first step."""
    await api.publish(THREE)
    ulid: str = (await api.start("three"))["id"]
    await work(api, flows, ulid)
    return ulid


async def test_t_x_3_a_run_that_waits_keeps_its_status_and_history_and_goes_on(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    made = await bring(api, await export(api, ulid))

    source = await api.show(ulid)
    assert (made["status"], made["state"], made["nodes"]) == (source["status"], source["state"], source["nodes"])
    assert made["status"] == "waiting"
    assert made["labels"] == [f"imported_from:{ulid}"]
    events = await list_all(api, made["id"], "events")
    assert strip(events[:-1], "step") == strip(await list_all(api, ulid, "events"), "step")
    assert events[-1]["type"] == "InstanceImported"
    assert (events[-1]["data"]["source"], events[-1]["data"]["status"]) == (ulid, "waiting")
    assert [step["node"] for step in await list_all(api, made["id"], "steps")] == ["a", "ask"]

    await api.post(f"/v1/instances/{made['id']}/signal", {"name": "go", "payload": {"n": 1}})
    await work_all(api, flows, made["id"])
    await work_all(api, flows, made["id"])
    assert (await api.show(made["id"]))["result"] == {"a": {"is": "a"}, "b": {"is": "b"}}
    assert (await api.show(ulid))["status"] == "waiting"


async def test_what_ran_is_queued_anew_and_what_was_recorded_is_not(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    await api.post(f"/v1/instances/{ulid}/signal", {"name": "go", "payload": {"n": 1}})
    await claim(api, flows, ulid)
    made = await bring(api, await export(api, ulid))
    steps = {step["node"]: step for step in await list_all(api, made["id"], "steps")}
    assert {name: (step["status"], step["attempt"]) for name, step in steps.items()} == {
        "a": ("completed", 1),
        "ask": ("completed", 1),
        "b": ("queued", 1),
    }
    await work_all(api, flows, made["id"])
    assert (await api.show(made["id"]))["status"] == "completed"
    assert len(await list_all(api, made["id"], "steps")) == 4


@pytest.mark.parametrize("end", ["completed", "failed", "cancelled"])
async def test_what_has_ended_is_as_it_was(api: Api, flows: Flows, end: str) -> None:
    await api.publish(chain("one", save("a")))
    ulid = (await api.start("one"))["id"]
    if end == "completed":
        await work(api, flows, ulid)
    elif end == "cancelled":
        await api.post(f"/v1/instances/{ulid}/cancel", {"reason": "enough"})
    else:
        step = await claim(api, flows, ulid)
        raised = Raised("exception", "hunter", is_retryable=False, trace="a trace")
        await flows.answer(step.instance_id, Finished(step.id, step.claim_token or "", raised), flows_now(api))
    made, source = await bring(api, await export(api, ulid)), await api.show(ulid)
    same = ("status", "closed_reason", "cancel_reason", "failure", "state", "result", "input", "ended_at", "actions")
    assert {name: made[name] for name in same} == {name: source[name] for name in same}
    assert made["status"] == end
    failures = await list_all(api, made["id"], "failures")
    assert strip(failures, "step") == strip(await list_all(api, ulid, "failures"), "step")
    if end == "failed":
        assert (await api.post(f"/v1/instances/{made['id']}/retry")).status_code == 200
        await work_all(api, flows, made["id"])
        assert (await api.show(made["id"]))["status"] == "completed"


def flows_now(api: Api) -> Any:
    return api.resources.clock.now()


async def test_bodies_go_on_where_they_were(api: Api, flows: Flows) -> None:
    await api.publish(spread())
    ulid = (await api.start("spread"))["id"]
    await work(api, flows, ulid)
    ready = await flows.fetch(
        "select s.id from workflow_step_runs s join workflow_instances i on i.id = s.instance_id"
        " where i.ulid = $1 and s.node_id = 'x'",
        ulid,
    )
    now = api.resources.clock.now()
    instance_id = await get_id(api, ulid)
    changes = await flows.answer(instance_id, claiming(ready[0]["id"], await flows.register(now)), now)
    [grant] = changes.claimed
    result = Complete(output={"is": "x"})
    await flows.answer(instance_id, Finished(grant.step.id, grant.step.claim_token or "", result), now)

    made = await bring(api, await export(api, ulid))
    assert sorted(made["nodes"]) == ["both", "x2", "y"]
    await work_all(api, flows, made["id"])
    ended = await api.show(made["id"])
    assert (ended["status"], sorted(ended["state"])) == ("completed", ["a", "c", "x", "x2", "y", "y2"])
    assert len([step for step in await list_all(api, made["id"], "steps") if step["node"] == "x"]) == 1


@pytest.mark.parametrize("is_over", [False, True])
async def test_a_reducer_runs_once(api: Api, flows: Flows, *, is_over: bool) -> None:
    body: JsonObject = {"start": "x", "nodes": [node("x", "test.price", order="x")], "edges": []}
    reducer: JsonObject = {"type": "test.price", "config": {"order": "r"}}
    each = node("each", "for_each", items=[1, 2], reducer=reducer) | {"body": body, "save": {"key": "r"}}
    await api.publish(chain("reduced", each))
    ulid = (await api.start("reduced"))["id"]
    for _ in range(3 if is_over else 2):
        await work(api, flows, ulid)

    made = await bring(api, await export(api, ulid))
    await work_all(api, flows, made["id"])
    ended = await api.show(made["id"])
    assert (ended["status"], ended["state"]["r"]["is"]) == ("completed", "each_reducer")
    nodes = Counter(step["node"] for step in await list_all(api, made["id"], "steps"))
    assert nodes == {"each": 1, "x": 2, "each_reducer": 1, "done": 1}


async def test_clocks_go_on_with_what_remained(api: Api, flows: Flows) -> None:
    await api.publish(chain("naps", node("nap", "wait", **{"for": "PT3H"})))
    ulid = (await api.start("naps"))["id"]
    document = await export(api, ulid)
    document["exported_at"] = document["instance"]["created_at"]
    [wait] = document["waits"]
    made = await bring(api, document)
    [row] = await list_all(api, made["id"], "waits")
    assert row["status"] == "pending"
    assert row["due_at"] > wait["due_at"].replace("+00:00", "Z")


async def test_a_paused_run_is_paused(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    await api.post(f"/v1/instances/{ulid}/pause")
    made = await bring(api, await export(api, ulid))
    assert made["status"] == "paused"
    await api.post(f"/v1/instances/{made['id']}/resume")
    await api.post(f"/v1/instances/{made['id']}/signal", {"name": "go"})
    await work_all(api, flows, made["id"])
    assert (await api.show(made["id"]))["status"] in ("running", "completed")


async def test_an_import_may_be_rewound_and_exported_again(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    await api.post(f"/v1/instances/{ulid}/rewind", {"to": "a"})
    made = await bring(api, await export(api, ulid))
    response = await api.post(f"/v1/instances/{made['id']}/rewind", {"to": "start"})
    assert (response.status_code, response.json()["nodes"], response.json()["state"]) == (200, ["a"], {})
    again = await bring(api, await export(api, made["id"]))
    assert again["nodes"] == ["a"]


@pytest.mark.parametrize(
    ("place", "value", "pointer"),
    [
        (("format",), "korak.run/v9", "/format"),
        (("exported_at",), "yesterday", "/exported_at"),
        (("instance", "status"), "dancing", "/instance/status"),
        (("instance", "status"), "completed", "/instance/status"),
        (("instance", "state"), [], "/instance/state"),
        (("instance", "id"), 1, "/instance/id"),
        (("steps",), [], "/waits/0/step"),
        (("steps", 0, "status"), "queued", "/steps/0/finished_at"),
        (("steps", 0, "node_id"), "nothing", "/steps/0/node_id"),
        (("steps", 0, "visit"), "one", "/steps/0/visit"),
        (("steps", 0, "created_at"), "2030-01-01T00:00:00", "/steps/0/created_at"),
        (("steps", 1, "id"), None, "/steps/1/id"),
        (("steps", 1, "scope"), 3, "/steps/1/scope"),
        (("steps", 1, "status"), "completed", "/steps/1/finished_at"),
        (("waits", 0, "step"), "nobody", "/waits/0/step"),
        (("waits", 0, "kind"), "child", "/waits/0/kind"),
        (("waits", 0, "looks_back"), None, "/waits/0/looks_back"),
        (("events", 1, "seq"), 7, "/events/1/seq"),
        (("events", 1, "type"), "Nothing", "/events/1/type"),
        (("steps", 0, "outcome"), "x" * 200, ""),
        (("steps", 0, "visit"), 1 << 40, "/steps/0/visit"),
        (("steps", 0, "attempt"), -1, "/steps/0/attempt"),
        (("instance", "priority"), 9, "/instance/priority"),
    ],
)
async def test_what_is_wrong_is_told_with_its_place_and_stores_nothing(
    api: Api, flows: Flows, place: tuple[Any, ...], value: Any, pointer: str
) -> None:
    ulid = await begin(api, flows)
    document = deepcopy(await export(api, ulid))
    inner = document
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    refused = await api.post("/v1/instances/import", document)
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer, refused.text
    for table in ("workflow_instances", "workflow_waits"):
        assert len(await api.fetch(f"select 1 from {table}")) == 1
    assert len(await api.fetch("select 1 from workflow_step_runs")) == 2


async def test_a_step_waits_once_for_one_thing(api: Api, flows: Flows) -> None:
    """A wait that stood there twice would stay when the other one has come."""
    ulid = await begin(api, flows)
    document = await export(api, ulid)
    document["waits"].append(dict(document["waits"][0]))
    refused = (await api.post("/v1/instances/import", document)).json()
    assert (refused["code"], refused["errors"][0]["pointer"]) == ("invalid_export", "/waits/1")


async def test_what_the_database_refuses_is_told_without_its_words(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    document = await export(api, ulid)
    document["steps"][0]["outcome"] = "x" * 200
    refused = (await api.post("/v1/instances/import", document)).json()
    assert refused["errors"][0]["params"] == {"detail": "a text is too long"}


async def test_the_version_must_be_there_by_its_checksum(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    document = await export(api, ulid)
    await api.publish(chain("three", save("a")))
    assert (await bring(api, document))["version"] == 1
    for member in ("key", "checksum"):
        wrong = {**document, "definition": {**document["definition"], member: "0" * 64}}
        refused = await api.post("/v1/instances/import", wrong)
        assert (refused.status_code, refused.json()["code"]) == (409, "version_missing")


async def test_only_operators_take_runs_out_and_in(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    document = await export(api, ulid)
    for role in (OwnerRole.VIEWER, OwnerRole.STARTER):
        token = await api.make_token(role)
        assert (await api.get(f"/v1/instances/{ulid}/export", token=token)).status_code == 403
        assert (await api.post("/v1/instances/import", document, token=token)).status_code == 403
    other = await api.make_token(OwnerRole.OPERATOR, owner="team:2")
    assert (await api.get(f"/v1/instances/{ulid}/export", token=other)).status_code == 404
    made = (await api.post("/v1/instances/import", document, token=other)).json()
    assert made["owner"] == "team:2"


VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**12,
    1.5,
    "",
    "x",
    "2030-01-01T00:00:00Z",
    [],
    {},
    {"a": {}},
    [None],
    "\u00e9" * 300,
)


def list_places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every member of a document, however deep."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in inner:
        yield (*place, name)
        yield from list_places(member, (*place, name))


async def test_whatever_an_export_is_made_of_is_taken_or_refused_and_breaks_nothing(api: Api, flows: Flows) -> None:
    """A seed's worth of documents, each with one member replaced or left out."""
    await api.publish(spread())
    ulid = (await api.start("spread"))["id"]
    await work(api, flows, ulid)
    document = await export(api, ulid)
    random = Random(7)
    places = [place for place in list_places(document) if place[:2] != ("definition", "graph")]
    codes: Counter[int] = Counter()
    for place in random.sample(places, 150):
        damaged = deepcopy(document)
        inner = damaged
        for name in place[:-1]:
            inner = inner[name]
        if random.random() < 0.3:
            del inner[place[-1]]
        else:
            inner[place[-1]] = random.choice(VALUES)
        response = await api.post("/v1/instances/import", damaged)
        codes[response.status_code] += 1
        assert response.status_code in (201, 409, 422), (place, inner, response.text)
        if response.status_code == 201:
            shown = await api.get(f"/v1/instances/{response.json()['id']}/events")
            assert shown.status_code == 200, (place, inner)
    assert codes[201]
    assert codes[422]
