"""Export and import over HTTP, on real rows (T-X-3)."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from random import Random
from typing import Any

import pytest

from korak.core.facts import Claimed, Finished, Raised
from korak.core.rows import StepRun
from korak.model import JsonObject, OwnerRole
from korak.steps.contract import Complete
from tests.support.apis import Api, chain, node, save
from tests.support.copied import Lines, get_head, list_rows, send_in, take_out
from tests.support.flows import Flows, make_claimant

NEVER = ("hunter2", "claim_token", "engine_id", "idempotency")


THREE = chain("three", save("a"), node("ask", "wait", signal="go"), save("b"))


def spread() -> JsonObject:
    """A step, two branches at the same time, a step."""
    branches: Any = {
        name: {"start": name, "nodes": [save(name), save(f"{name}2")], "edges": [{"from": name, "to": f"{name}2"}]}
        for name in ("x", "y")
    }
    return chain("spread", save("a"), {"id": "both", "type": "parallel", "branches": branches}, save("c"))


async def claim(api: Api, flows: Flows, ulid: str) -> StepRun:
    now = api.resources.clock.now()
    return await flows.claim(await api.get_id(ulid), await flows.register(now), now)


async def work(api: Api, flows: Flows, ulid: str) -> None:
    step = await claim(api, flows, ulid)
    fact = Finished(step.id, step.claim_token or "", Complete(output={"is": step.node_id}))
    await flows.answer(step.instance_id, fact, api.resources.clock.now())


async def work_all(api: Api, flows: Flows, ulid: str) -> None:
    """All that is ready, one at a time."""
    instance_id = await api.get_id(ulid)
    ready = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null order by id limit 1"
    now = api.resources.clock.now()
    engine = await flows.register(now)
    while row := await flows.get(ready, instance_id):
        changes = await flows.answer(instance_id, claiming(row, engine), now)
        for grant in changes.claimed:
            result = Complete(output={"is": grant.step.node_id})
            await flows.answer(instance_id, Finished(grant.step.id, grant.step.claim_token or "", result), now)


def claiming(step_id: int, engine: int) -> Claimed:
    return Claimed(step_id, make_claimant(engine))


async def export(api: Api, ulid: str) -> Lines:
    lines = await take_out(api, ulid)
    assert not [word for word in NEVER if word in json.dumps(lines)]
    return lines


async def bring(api: Api, lines: Lines) -> Any:
    """The instance that was made of it, beside the one that it was: it gets another id."""
    response = await send_in(api, lines)
    assert response.status_code == 201, response.text
    made = response.json()
    assert made["id"] != get_head(lines)["instance"]["id"]
    assert made == await api.show(made["id"])
    return made


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
    events = await api.list_all(made["id"], "events")
    assert strip(events[:-1], "step") == strip(await api.list_all(ulid, "events"), "step")
    assert events[-1]["type"] == "InstanceImported"
    assert (events[-1]["data"]["source"], events[-1]["data"]["status"]) == (ulid, "waiting")
    assert [step["node"] for step in await api.list_all(made["id"], "steps")] == ["a", "ask"]

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
    steps = {step["node"]: step for step in await api.list_all(made["id"], "steps")}
    assert {name: (step["status"], step["attempt"]) for name, step in steps.items()} == {
        "a": ("completed", 1),
        "ask": ("completed", 1),
        "b": ("queued", 1),
    }
    await work_all(api, flows, made["id"])
    assert (await api.show(made["id"]))["status"] == "completed"
    assert len(await api.list_all(made["id"], "steps")) == 4


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
    failures = await api.list_all(made["id"], "failures")
    assert strip(failures, "step") == strip(await api.list_all(ulid, "failures"), "step")
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
    instance_id = await api.get_id(ulid)
    changes = await flows.answer(instance_id, claiming(ready[0]["id"], await flows.register(now)), now)
    [grant] = changes.claimed
    result = Complete(output={"is": "x"})
    await flows.answer(instance_id, Finished(grant.step.id, grant.step.claim_token or "", result), now)

    made = await bring(api, await export(api, ulid))
    assert sorted(made["nodes"]) == ["both", "x2", "y"]
    await work_all(api, flows, made["id"])
    ended = await api.show(made["id"])
    assert (ended["status"], sorted(ended["state"])) == ("completed", ["a", "c", "x", "x2", "y", "y2"])
    assert len([step for step in await api.list_all(made["id"], "steps") if step["node"] == "x"]) == 1


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
    nodes = Counter(step["node"] for step in await api.list_all(made["id"], "steps"))
    assert nodes == {"each": 1, "x": 2, "each_reducer": 1, "done": 1}


async def test_clocks_go_on_with_what_remained(api: Api, flows: Flows) -> None:
    await api.publish(chain("naps", node("nap", "wait", **{"for": "PT3H"})))
    ulid = (await api.start("naps"))["id"]
    lines = await export(api, ulid)
    get_head(lines)["exported_at"] = get_head(lines)["instance"]["created_at"]
    [wait] = list_rows(lines, "wait")
    made = await bring(api, lines)
    [row] = await api.list_all(made["id"], "waits")
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


RUN, WAIT, STEP, EVENT = "run", "wait", "step", "event"


@pytest.mark.parametrize(
    ("place", "value", "pointer"),
    [
        ((RUN, 0, "format"), "korak.run/v9", "/0/run/format"),
        ((RUN, 0, "exported_at"), "yesterday", "/0/run/exported_at"),
        ((RUN, 0, "instance", "status"), "dancing", "/0/run/instance/status"),
        ((RUN, 0, "instance", "status"), "completed", "/0/run/instance/status"),
        ((RUN, 0, "instance", "state"), [], "/0/run/instance/state"),
        ((RUN, 0, "instance", "id"), 1, "/0/run/instance/id"),
        ((RUN, 0, "instance", "priority"), 9, "/0/run/instance/priority"),
        ((RUN, 0, "instance", "actor_mode"), "on_behalf_of", "/0/run/instance/actor_mode"),
        ((RUN, 0, "instance", "starter_type"), "user", "/0/run/instance/starter_type"),
        ((RUN, 0, "definition", "key"), 1, "/0/run/definition/key"),
        ((STEP, 0, "status"), "queued", "/2/step/finished_at"),
        ((STEP, 0, "node_id"), "nothing", "/2/step/node_id"),
        ((STEP, 0, "visit"), "one", "/2/step/visit"),
        ((STEP, 0, "created_at"), "2030-01-01T00:00:00", "/2/step/created_at"),
        ((STEP, 1, "id"), None, "/3/step/id"),
        ((STEP, 1, "id"), "01JAAAAAAAAAAAAAAAAAAAAAAA", "/1/wait/step"),
        ((STEP, 1, "scope"), 3, "/3/step/scope"),
        ((STEP, 1, "status"), "completed", "/3/step/finished_at"),
        ((STEP, 0, "visit"), 1 << 40, "/2/step/visit"),
        ((STEP, 0, "attempt"), -1, "/2/step/attempt"),
        ((STEP, 0, "attempt"), 40_000, "/2/step/attempt"),
        ((STEP, 0, "call"), 40_000, "/2/step/call"),
        ((STEP, 0, "created_at"), "0001-01-01T00:00:00+14:00", "/2/step/created_at"),
        ((WAIT, 0, "due_at"), "9999-12-31T23:59:59-14:00", "/1/wait/due_at"),
        ((RUN, 0, "instance", "deadline_at"), "9999-12-31T23:59:59.999999Z", "/0/run/instance/deadline_at"),
        ((RUN, 0, "instance", "depth"), 40_000, "/0/run/instance/depth"),
        ((STEP, 0, "outcome"), "x" * 200, ""),
        ((WAIT, 0, "step"), "nobody", "/1/wait/step"),
        ((WAIT, 0, "kind"), "child", "/1/wait/kind"),
        ((WAIT, 0, "looks_back"), None, "/1/wait/looks_back"),
        ((EVENT, 1, "seq"), 7, "/5/event/seq"),
        ((EVENT, 1, "type"), "Nothing", "/5/event/type"),
        ((EVENT, 1, "type"), "InstanceRewound", "/5/event/data/seq"),
        (("end", 0, "lines"), 7000, None),
    ],
)
async def test_what_is_wrong_is_told_with_its_place_and_stores_nothing(
    api: Api, flows: Flows, place: tuple[Any, ...], value: Any, pointer: str | None
) -> None:
    ulid = await begin(api, flows)
    lines = await export(api, ulid)
    inner = list_rows(lines, place[0])[place[1]]
    for name in place[2:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    await refuse(api, lines, f"/{len(lines) - 1}/end/lines" if pointer is None else pointer)


async def refuse(api: Api, lines: list[Any], pointer: str) -> None:
    refused = await send_in(api, lines)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_export"), refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer, refused.text
    for table in ("workflow_instances", "workflow_waits"):
        assert len(await api.fetch(f"select 1 from {table}")) == 1
    assert len(await api.fetch("select 1 from workflow_step_runs")) == 2


async def test_a_run_isn_t_its_own_parent(api: Api, flows: Flows) -> None:
    lines = await export(api, await begin(api, flows))
    get_head(lines)["instance"]["parent"] = get_head(lines)["instance"]["id"]
    response = await send_in(api, lines)
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/0/run/instance/parent"


async def test_what_an_attempt_runs_and_where_is_what_the_version_says(api: Api, flows: Flows) -> None:
    """A hold of a type or a queue goes by that."""
    await api.publish(chain("one", save("a")))
    lines = await export(api, (await api.start("one"))["id"])
    [step] = [row for row in list_rows(lines, "step") if row["node_id"] == "a"]
    step["node_type"], step["type_version"], step["queue"] = "test.other", 7, "elsewhere"
    get_head(lines)["instance"]["queue"] = "elsewhere"
    made = await bring(api, lines)
    query = "select node_type, type_version, queue from workflow_step_runs where instance_id = $1 and node_id = 'a'"
    [row] = await api.fetch(query, await api.get_id(made["id"]))
    assert tuple(row) == ("test.price", 1, "default")


@pytest.mark.parametrize("name", ["next_index", "order", "quorum"])
async def test_the_numbers_of_a_container_are_ones_that_a_database_holds(api: Api, flows: Flows, name: str) -> None:
    """One that is too large would fail every load of the run, and those that are loaded beside it."""
    await api.publish(spread())
    ulid = (await api.start("spread"))["id"]
    await work(api, flows, ulid)
    lines = await export(api, ulid)
    place, [container] = next(
        (number, [row]) for number, line in enumerate(lines) if (row := line.get("step")) and row["counters"]
    )
    container["counters"][name] = 1 << 40
    response = await send_in(api, lines)
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == f"/{place}/step/counters"


async def test_a_key_of_a_limit_is_kept_short(api: Api, flows: Flows) -> None:
    """No index holds one as long as an author may make it."""
    key = "".join(Random(3).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=20_000))
    limited = save("a") | {"flow": [{"key": {"ref": "input.customer"}, "concurrency": 1}]}
    await api.publish(chain("limited", limited))
    started = await api.start("limited", {"input": {"customer": key}})
    lines = await export(api, started["id"])
    [step] = [row for row in list_rows(lines, "step") if row["node_id"] == "a"]
    digest = hashlib.sha256(key.encode()).hexdigest()
    assert step["flow"] == [digest]
    step["flow"] = [key]
    made = await bring(api, lines)
    rows = await api.fetch("select flow from workflow_step_runs where flow is not null")
    assert [row["flow"] for row in rows] == [[digest], [digest]]
    await work(api, flows, made["id"])
    assert (await api.show(made["id"]))["status"] == "completed"


async def test_a_document_is_whole_and_in_order(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    lines = await export(api, ulid)
    head, wait, *rest = lines
    await refuse(api, [], "/0")
    await refuse(api, lines[1:], "/0")
    await refuse(api, lines[:-1], f"/{len(lines) - 1}")
    await refuse(api, [*lines, wait], f"/{len(lines)}")
    await refuse(api, [head, *rest[:-1], wait, rest[-1]], f"/{len(lines) - 2}")
    await refuse(api, [head, {"nothing": {}}, *rest], "/1")
    await refuse(api, [head, wait, wait, *rest], "/2/wait")
    await refuse(api, [head, ["wait"], *rest], "/1")
    await refuse(api, [head, {}, *rest], "/1")


async def test_what_is_no_json_is_told_with_its_line(api: Api, flows: Flows) -> None:
    headers = {"authorization": f"Bearer {api.admin}"}
    head = json.dumps((await export(api, await begin(api, flows)))[0]).encode()
    for content in (head + b"\n{", head + b'\n{"wait": NaN}\n', head + b"\n\xff\n"):
        refused = await api.client.post("/v1/instances/import", content=content, headers=headers)
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/1"), refused.text


async def test_what_the_database_refuses_is_told_without_its_words(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    lines = await export(api, ulid)
    list_rows(lines, STEP)[0]["outcome"] = "x" * 200
    refused = (await send_in(api, lines)).json()
    assert refused["errors"][0]["params"] == {"detail": "a text is too long"}


async def test_the_version_must_be_there_by_its_checksum(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    lines = await export(api, ulid)
    await api.publish(chain("three", save("a")))
    assert (await bring(api, lines))["version"] == 1
    for member in ("key", "checksum"):
        wrong = deepcopy(lines)
        get_head(wrong)["definition"][member] = "0" * 64
        refused = await send_in(api, wrong)
        assert (refused.status_code, refused.json()["code"]) == (409, "version_missing")


async def test_the_same_document_again_is_the_instance_that_it_has_made(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    lines = await export(api, ulid)
    made = await bring(api, lines)
    again = await send_in(api, lines)
    assert (again.status_code, again.json()["id"]) == (200, made["id"])
    other = await api.make_token(OwnerRole.OPERATOR, owner="team:2")
    assert (await send_in(api, lines, token=other)).json()["id"] != made["id"]
    assert (await bring(api, await export(api, ulid)))["id"] != made["id"]


async def test_two_imports_of_a_document_at_once_make_one_instance(api: Api, flows: Flows) -> None:
    lines = await export(api, await begin(api, flows))
    answers = await asyncio.gather(*(send_in(api, lines) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 201]
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert len(await api.fetch("select 1 from workflow_instances")) == 2


async def test_a_key_gives_the_first_answer_again_and_refuses_another_document(api: Api, flows: Flows) -> None:
    lines = await export(api, await begin(api, flows))
    first = await send_in(api, lines, key="k")
    again = await send_in(api, lines, key="k")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"]
    assert (await send_in(api, lines[:-1], key="k")).json()["code"] == "idempotency_key_reused"


async def test_only_operators_take_runs_out_and_in(api: Api, flows: Flows) -> None:
    ulid = await begin(api, flows)
    lines = await export(api, ulid)
    for role in (OwnerRole.VIEWER, OwnerRole.STARTER):
        token = await api.make_token(role)
        assert (await api.get(f"/v1/instances/{ulid}/export", token=token)).status_code == 403
        assert (await send_in(api, lines, token=token)).status_code == 403
    other = await api.make_token(OwnerRole.OPERATOR, owner="team:2")
    assert (await api.get(f"/v1/instances/{ulid}/export", token=other)).status_code == 404
    made = (await send_in(api, lines, token=other)).json()
    assert made["owner"] == "team:2"


async def test_au_1_a_run_acts_for_nobody_for_whom_its_bringer_may_not(api: Api, flows: Flows) -> None:
    await api.publish(chain("mine", save("a"), actor="on_behalf_of"))
    ana = await api.make_token(OwnerRole.STARTER, OwnerRole.OPERATOR, user="ana")
    ulid = (await api.start("mine", token=ana))["id"]
    lines = await export(api, ulid)
    assert get_head(lines)["instance"]["starter_id"] == "ana"

    for user in ("bob", None):
        operator = await api.make_token(OwnerRole.OPERATOR, user=user)
        refused = await send_in(api, lines, token=operator)
        assert (refused.status_code, refused.json()["code"]) == (403, "starter_not_allowed")
    for token in (ana, api.admin):
        response = await send_in(api, lines, token=token)
        assert response.status_code in (200, 201)
        assert response.json()["actor"] == {"mode": "on_behalf_of", "user": "ana"}

    get_head(lines)["instance"] |= {"starter_id": None, "starter_type": None}
    response = await send_in(api, lines)
    assert response.json()["errors"][0]["pointer"] == "/0/run/instance/starter_id"


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
    lines = await export(api, ulid)
    random = Random(7)
    places = [place for place in list_places(lines) if place[:4] != (0, "run", "definition", "graph")]
    codes: Counter[int] = Counter()
    for place in random.sample(places, 150):
        damaged = deepcopy(lines)
        inner: Any = damaged
        for name in place[:-1]:
            inner = inner[name]
        if random.random() < 0.3:
            del inner[place[-1]]
        else:
            inner[place[-1]] = random.choice(VALUES)
        response = await send_in(api, damaged)
        codes[response.status_code] += 1
        assert response.status_code in (200, 201, 409, 422), (place, inner, response.text)
        if response.status_code == 201:
            shown = await api.get(f"/v1/instances/{response.json()['id']}/events")
            assert shown.status_code == 200, (place, inner)
    assert codes[201]
    assert codes[422]
    assert api.resources.spools.count == 0
