"""A run that is carried to another database: it stands there as it stood, and goes on as it would have (T-X-3)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from korak.clock import ManualClock
from korak.core.facts import Claimed, Finished, Raised
from korak.core.rows import StepRun
from korak.model import JsonObject, OwnerRole
from korak.steps.contract import Complete
from korak.store import chunks
from tests.support.apis import Api, chain, node, open_api
from tests.support.clones import Clones
from tests.support.copied import Lines, get_head, list_rows, send_in, take_out
from tests.support.flows import Flows, make_claimant, open_flows

ATTEMPT = ("node_id", "visit", "attempt", "role", "call")
REFUSED = Raised("test.refused", "no", is_retryable=False)


@dataclass
class Place:
    """A database with its API, and hands that work in it."""

    api: Api
    flows: Flows
    clock: ManualClock

    async def claim(self, ulid: str) -> StepRun | None:
        """The first ready step that runs after its claim; what is decided at its claim is worked off."""
        instance_id = await self.api.get_id(ulid)
        ready = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null order by id limit 1"
        engine = await self.flows.register(self.clock.now())
        while row := await self.flows.get(ready, instance_id):
            changes = await self.flows.answer(instance_id, Claimed(row, make_claimant(engine)), self.clock.now())
            if changes.claimed:
                return changes.claimed[0].step
        return None

    async def work(self, ulid: str, result: Complete | Raised | None = None) -> bool:
        """Let one step come to its end; whether there was one."""
        step = await self.claim(ulid)
        if step is None:
            return False
        token = step.claim_token or ""
        fact = Finished(step.id, token, result or Complete(output={"is": step.node_id}))
        await self.flows.answer(step.instance_id, fact, self.clock.now(), step=step.id)
        return True

    async def work_all(self, ulid: str) -> Any:
        """The instance when nothing is left to do now."""
        while await self.work(ulid):
            pass
        return await self.api.show(ulid)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def here(database_url: str, clock: ManualClock) -> AsyncIterator[Place]:
    async with open_api(database_url, clock=clock) as api, open_flows(database_url) as flows:
        yield Place(api, flows, clock)


@pytest.fixture
async def there(clones: Clones, clock: ManualClock) -> AsyncIterator[Place]:
    with clones.lend() as url:
        async with open_api(url, clock=clock) as api, open_flows(url) as flows:
            yield Place(api, flows, clock)


async def begin(here: Place, there: Place, document: JsonObject, body: Any = None) -> str:
    """The id of a run whose version is in both places."""
    await here.api.publish(document)
    await there.api.publish(document)
    started: str = (await here.api.start(str(document["key"]), body))["id"]
    return started


async def move(here: Place, there: Place, ulid: str) -> Lines:
    """Carry a run over. It keeps its id, and its export is what it was but for what ran and the line that tells."""
    lines = await take_out(here.api, ulid)
    response = await send_in(there.api, lines)
    assert response.status_code == 201, response.text
    assert response.json()["id"] == ulid
    again = await take_out(there.api, ulid)
    [*told, last] = list_rows(again, "event")
    assert (last["type"], last["data"]["source"]) == ("InstanceImported", ulid)
    assert len(told) == len(list_rows(lines, "event"))
    again.remove({"event": last})
    assert settle(again) == settle(lines)
    return lines


def settle(lines: Lines) -> Lines:
    """An export without what an import may change: what ran is queued, and looks at what lies there for it."""
    settled = deepcopy(lines)[:-1]
    head = get_head(settled)
    del head["instance"]["status"], head["definition"]["number"]
    for step in list_rows(settled, "step"):
        del step["probe"]
        step["status"] = "queued" if step["status"] == "running" else step["status"]
    return settled


def each(count: int, **config: Any) -> JsonObject:
    body: JsonObject = {
        "start": "x",
        "nodes": [node("x", "test.price", order="x") | {"save": {"key": "x"}}, node("y", "test.price", order="y")],
        "edges": [{"from": "x", "to": "y"}],
    }
    return node("each", "for_each", items=list(range(count)), **config) | {"body": body, "save": {"key": "r"}}


async def test_in_the_middle_of_a_for_each(here: Place, there: Place) -> None:
    ulid = await begin(here, there, chain("each", each(120, concurrency=3)))
    for _ in range(8):
        await here.work(ulid)
    await here.claim(ulid)
    lines = await move(here, there, ulid)
    assert {row["status"] for row in list_rows(lines, "scope")} == {"completed", "running", "pending"}
    for place in (here, there):
        running = await place.api.fetch("select * from workflow_step_runs where status = 'running'")
        for row in running:
            fact = Finished(row["id"], row["claim_token"], Complete(output={"is": row["node_id"]}))
            await place.flows.answer(row["instance_id"], fact, place.clock.now(), step=row["id"])
    first, second = await here.work_all(ulid), await there.work_all(ulid)
    assert first["status"] == second["status"] == "completed"
    assert first["result"] == second["result"]
    assert len(list_rows(await take_out(there.api, ulid), "step")) == len(
        list_rows(await take_out(here.api, ulid), "step")
    )


async def test_bodies_that_wait_to_be_started_once_more(here: Place, there: Place) -> None:
    ulid = await begin(here, there, chain("again", each(60, concurrency=2, mode="quorum", quorum=55)))
    while (await here.api.show(ulid))["status"] != "failed":
        step = await here.claim(ulid)
        assert step is not None
        result = REFUSED if step.node_id == "y" else Complete(output={"is": "x"})
        await here.flows.finish(step, result, here.clock.now())
    await move(here, there, ulid)
    await there.api.post(f"/v1/instances/{ulid}/retry")
    assert (await there.work_all(ulid))["status"] == "completed"
    await here.api.post(f"/v1/instances/{ulid}/retry")
    await here.claim(ulid)
    lines = await take_out(here.api, ulid)
    assert [row for row in list_rows(lines, "scope") if row["halted"] and row["status"] == "pending"]
    await here.api.post(f"/v1/instances/{ulid}/pause")


async def test_halted_bodies_travel(here: Place, there: Place) -> None:
    ulid = await begin(here, there, chain("halted", each(6, concurrency=1, mode="quorum", quorum=5)))
    while (await here.api.show(ulid))["status"] != "failed":
        step = await here.claim(ulid)
        assert step is not None
        result = REFUSED if step.node_id == "y" else Complete(output={"is": "x"})
        await here.flows.finish(step, result, here.clock.now())
    await here.api.post(f"/v1/instances/{ulid}/retry")
    await here.claim(ulid)
    lines = await move(here, there, ulid)
    assert [row for row in list_rows(lines, "scope") if row["halted"] and row["status"] == "pending"]
    ended = await there.work_all(ulid)
    assert ended["status"] == "completed"
    steps = list_rows(await take_out(there.api, ulid), "step")
    done = [step["scope"] for step in steps if step["node_id"] == "x" and step["status"] == "completed"]
    assert (len(done), len(set(done))) == (5, 5)


@pytest.mark.parametrize("is_paused", [False, True])
async def test_in_a_wait_with_a_timer(here: Place, there: Place, *, is_paused: bool) -> None:
    ulid = await begin(here, there, chain("naps", node("nap", "wait", **{"for": "PT3H"})))
    here.clock.advance(timedelta(hours=1))
    if is_paused:
        await here.api.post(f"/v1/instances/{ulid}/pause")
    await move(here, there, ulid)
    [wait] = (await there.api.get(f"/v1/instances/{ulid}/waits")).json()["items"]
    assert (wait["status"], (await there.api.show(ulid))["status"]) == (
        ("suspended", "paused") if is_paused else ("pending", "waiting")
    )
    if is_paused:
        there.clock.advance(timedelta(days=1))
        await there.api.post(f"/v1/instances/{ulid}/resume")
    [row] = await there.api.fetch("select due_at from workflow_waits")
    assert row["due_at"] - there.clock.now() == timedelta(hours=2)


async def test_a_timer_has_the_time_that_remained(here: Place, there: Place) -> None:
    ulid = await begin(here, there, chain("naps", node("nap", "wait", **{"for": "PT3H"}), execution_timeout="PT9H"))
    lines = await take_out(here.api, ulid)
    there.clock.advance(timedelta(hours=5))
    assert (await send_in(there.api, lines)).status_code == 201
    [row] = await there.api.fetch("select w.due_at, i.deadline_at from workflow_waits w, workflow_instances i")
    assert row["due_at"] - there.clock.now() == timedelta(hours=3)
    assert row["deadline_at"] - there.clock.now() == timedelta(hours=9)


UNDO: JsonObject = {"type": "test.ok", "config": {"value": {"ref": "state"}}}
UNDONE = tuple(node(name, "test.ok") | {"compensate": UNDO, "save": {"key": name}} for name in ("a", "b", "c"))


async def test_what_is_kept_to_undo_it_travels_and_a_cancel_there_undoes_it(here: Place, there: Place) -> None:
    ulid = await begin(here, there, chain("undone", *UNDONE, on_cancel=UNDO))
    await here.work(ulid)
    await here.work(ulid)
    lines = await move(here, there, ulid)
    assert [row["status"] for row in list_rows(lines, "compensation")] == ["kept", "kept"]
    cancelled = await there.api.post(f"/v1/instances/{ulid}/cancel")
    assert cancelled.json()["compensation"]["pending"] == 2
    ended = await there.work_all(ulid)
    assert ended["compensation"] == {"kept": 0, "pending": 0, "completed": 2, "failed": 0}
    hooks = [step for step in list_rows(await take_out(there.api, ulid), "step") if step["role"] != "step"]
    assert [(hook["role"], hook["node_id"]) for hook in hooks] == [
        ("compensate", "b"),
        ("compensate", "a"),
        ("on_cancel", "$on_cancel"),
    ]
    assert hooks[0]["input"] == {"value": {"a": {"is": "a"}, "b": {"is": "b"}}}


@pytest.mark.parametrize("is_begun", [False, True])
async def test_a_failed_run_goes_on_to_undo_what_it_owes(here: Place, there: Place, *, is_begun: bool) -> None:
    ulid = await begin(here, there, chain("undone", *UNDONE, compensate_on_failure=True))
    await here.work(ulid)
    await here.work(ulid)
    await here.work(ulid, REFUSED)
    if is_begun:
        await here.claim(ulid)
    lines = await move(here, there, ulid)
    assert [row["status"] for row in list_rows(lines, "compensation")] == ["kept", "undoing"]
    ended = await there.work_all(ulid)
    assert (ended["status"], ended["compensation"]["completed"]) == ("failed", 2)


async def test_signals_that_nobody_has_taken_travel(here: Place, there: Place) -> None:
    document = chain("asks", node("a", "test.price", order="a"), node("ask", "wait", signal="go"))
    ulid = await begin(here, there, document)
    sent = await here.api.post(f"/v1/instances/{ulid}/signal", {"name": "go", "payload": {"n": 1}, "id": "s1"})
    assert sent.json()["buffered"]
    lines = await move(here, there, ulid)
    [signal] = list_rows(lines, "signal")
    assert (signal["source_id"], signal["taken_at"]) == ("s1", None)
    again = await there.api.post(f"/v1/instances/{ulid}/signal", {"name": "go", "payload": {"n": 2}, "id": "s1"})
    assert again.status_code == 202
    assert (await there.work_all(ulid))["status"] == "completed"
    [step] = [row for row in list_rows(await take_out(there.api, ulid), "step") if row["node_id"] == "ask"]
    assert step["output"]["payload"] == {"n": 1}


async def test_chunks_and_artifacts_travel(here: Place, there: Place) -> None:
    ulid = await begin(here, there, chain("leaves", node("a", "test.price", order="a")))
    step = await here.claim(ulid)
    assert step is not None
    for index, text in enumerate(["one ", "two"]):
        assert await chunks.append(
            here.flows.database, step.id, step.claim_token or "", (index, text), here.clock.now()
        )
    for key, content in (("text", "hello"), ("json", {"a": [1, None]})):
        assert (await here.api.send("PUT", f"/v1/instances/{ulid}/artifacts/{key}", {"content": content})).is_success
    await move(here, there, ulid)
    for what in ("chunks", "artifacts"):
        parts = [(await place.api.get(f"/v1/instances/{ulid}/{what}")).json()["items"] for place in (here, there)]
        assert len(parts[0]) == 2
        assert parts[0] == parts[1]
    assert (await there.api.get(f"/v1/instances/{ulid}/artifacts/json")).json()["content"] == {"a": [1, None]}
    assert (await there.work_all(ulid))["status"] == "completed"


async def test_its_keys_are_the_same_there(here: Place, there: Place) -> None:
    """What a step did that wasn't recorded is known by its key where it did it."""
    ulid = await begin(here, there, chain("keys", node("a", "test.price", order="a")))
    first = await here.claim(ulid)
    await move(here, there, ulid)
    second = await there.claim(ulid)
    assert first is not None
    assert second is not None
    assert (first.idempotency_key, first.execution_id) == (second.idempotency_key, second.execution_id)


async def test_the_id_of_its_caller_goes_with_it_or_is_refused(here: Place, there: Place) -> None:
    document = chain("mine", node("ask", "wait", signal="go"))
    ulid = await begin(here, there, document, {"id": "order-7"})
    lines = await move(here, there, ulid)
    assert (await there.api.get("/v1/instances/mine~order-7")).json()["id"] == ulid
    copy = await send_in(here.api, lines)
    assert (copy.status_code, copy.json()["business_id"]) == (201, None)
    other = (await here.api.start("mine", {"id": "order-8"}))["id"]
    await there.api.start("mine", {"id": "order-8"})
    refused = await send_in(there.api, await take_out(here.api, other))
    assert (refused.status_code, refused.json()["code"]) == (409, "id_taken")
    assert len(await there.api.fetch("select 1 from workflow_instances")) == 2


async def test_a_run_below_another_hangs_there_once_both_are_there(here: Place, there: Place) -> None:
    await here.api.publish(chain("child", node("a", "test.price", order="a")))
    await there.api.publish(chain("child", node("a", "test.price", order="a")))
    ulid = await begin(here, there, chain("parent", node("a", "test.price", order="a")))
    child = (await here.api.start("child"))["id"]
    below = "update workflow_instances set parent_instance_id = $1, root_instance_id = $1, depth = 1 where ulid = $2"
    await here.api.fetch(below, await here.api.get_id(ulid), child)
    await refuse(here, ulid, "runs that it has started are still open")
    await here.work_all(child)
    await move(here, there, ulid)
    await move(here, there, child)
    shown = await there.api.show(child)
    assert (shown["parent"], shown["root"], shown["depth"]) == (ulid, ulid, 1)
    assert [each["id"] for each in (await there.api.get("/v1/instances", parent=ulid)).json()["items"]] == [child]


async def refuse(here: Place, ulid: str, why: str) -> None:
    refused = await here.api.get(f"/v1/instances/{ulid}/export")
    assert (refused.status_code, refused.json()["code"]) == (409, "instance_not_portable"), refused.text[:500]
    assert refused.json()["params"] == {"why": why}


async def test_what_cannot_be_written_down_is_refused_with_its_reason(here: Place) -> None:
    await here.api.publish(chain("keys", node("a", "test.price", order="a")))
    ulid = (await here.api.start("keys"))["id"]
    instance_id = await here.api.get_id(ulid)
    step = await here.claim(ulid)
    assert step is not None
    columns = "(wait_id, place, instance_id, step_run_id, awaited_id, is_needed, created_at)"
    await here.api.fetch(
        f"insert into workflow_dependencies {columns} values (1, 0, 7, 7, $1, true, now())", instance_id
    )
    await refuse(here, ulid, "another run waits for it")
    await here.api.fetch("delete from workflow_dependencies")
    await here.flows.finish(step, Complete(), here.clock.now())
    assert (await here.work_all(ulid))["status"] == "completed"
    assert (await here.api.get(f"/v1/instances/{ulid}/export")).status_code == 200


async def test_a_document_bids_no_other_run_anything(here: Place, there: Place) -> None:
    """Whatever it says of runs that it doesn't hold, nothing is sent to them."""
    ulid = await begin(here, there, chain("keys", node("a", "test.price", order="a")))
    await here.work(ulid, REFUSED)
    token = await here.api.make_token(OwnerRole.OPERATOR, owner="team:2")
    other = (await here.api.start("keys", token=await here.api.make_token(OwnerRole.ADMIN, owner="team:2")))["id"]
    lines = await take_out(here.api, other, token=token)
    [step] = list_rows(lines, "step")
    step["resume_signal"] = {"kind": "child", "name": ulid, "payload": {}, "outcome": None, "wait": None, "at": None}
    refused = await send_in(here.api, lines, token=token)
    assert refused.json()["errors"][0]["pointer"] == "/1/step/resume_signal"
    step["resume_signal"] = None
    cancel: JsonObject = {"kind": "cancel", "source_id": "x", "created_at": step["created_at"]}
    cancel |= dict.fromkeys(("step", "wait", "name", "payload", "buffered_at", "taken_at", "discarded_at"))
    cancel["sender"] = {"instance": ulid, "asks": True}
    get_head(lines)["instance"]["depth"] = 1
    forged = [*lines[:2], {"signal": cancel}, *lines[2:-1], {"end": {"lines": len(lines) - 1}}]
    made = (await send_in(here.api, forged, token=token)).json()
    assert made["owner"] == "team:2", made
    await here.flows.obey(await here.api.get_id(made["id"]), here.clock.now())
    assert (await here.api.show(made["id"], token=token))["status"] == "cancelled"
    sent = await here.api.fetch("select 1 from workflow_signals where instance_id = $1", await here.api.get_id(ulid))
    assert sent == []


async def begin_effect(place: Place, step: StepRun, name: str) -> Any:
    """What `once(name)` finds as it begins."""
    given = step.id, step.claim_token, get_effect(step, name), place.clock.now()
    return await place.flows.get("select effect_begin($1, $2, $3, $4)", *given)


def get_effect(step: StepRun, name: str) -> str:
    return hashlib.sha256(f"effect\x1f{step.idempotency_key}\x1f{name}".encode()).hexdigest()


async def test_what_was_done_once_is_not_done_again_there(here: Place, there: Place) -> None:
    document = chain("once", node("a", "test.price", order="a"), node("ask", "wait", signal="go"))
    ulid = await begin(here, there, document)
    step = await here.claim(ulid)
    assert step is not None
    for name in ("charged", "told", "begun"):
        assert await begin_effect(here, step, name) is None
    ended = "update workflow_idempotency_keys set is_done = true, result = $2 where key = $1"
    for name, result in (("charged", {"id": 7}), ("told", None)):
        await here.flows.fetch(ended, get_effect(step, name), result)
    lines = await move(here, there, ulid)
    assert len(list_rows(lines, "effect")) == 2
    again = await there.claim(ulid)
    assert again is not None
    assert await begin_effect(there, again, "charged") == {"result": {"id": 7}}
    assert await begin_effect(there, again, "told") == {"result": None}
    assert await begin_effect(there, again, "begun") is None


async def test_nobody_says_what_another_run_has_done_once(here: Place, there: Place) -> None:
    ulid = await begin(here, there, chain("once", node("a", "test.price", order="a")))
    step = await here.claim(ulid)
    assert step is not None
    lines = await take_out(here.api, ulid)
    forged = {"digest": get_effect(step, "charged"), "result": "forged", "created_at": here.clock.now().isoformat()}
    token = await here.api.make_token(OwnerRole.OPERATOR, owner="team:2")
    made = await send_in(here.api, [*lines[:-1], {"effect": forged}, {"end": {"lines": len(lines) - 1}}], token=token)
    assert made.status_code == 201, made.text
    assert await begin_effect(here, step, "charged") is None


def mix() -> JsonObject:
    """Bodies that ask, work and are undone, side by side and one in another."""
    undone = node("undone", "test.ok", value={"ref": "item"}) | {"compensate": UNDO, "save": {"key": "undone"}}
    ask = node("ask", "wait", signals=["go"], mode="any", timeout="PT5M")
    body: JsonObject = {
        "start": "undone",
        "nodes": [undone, ask, node("after", "test.price", order="after")],
        "edges": [
            {"from": "undone", "to": "ask"},
            {"from": "ask", "to": "after"},
            {"from": "ask", "outcome": "timed_out", "to": "after"},
        ],
    }
    inner = node("inner", "for_each", items=[1, 2, 3], concurrency=2, mode="quorum", quorum=2) | {"body": body}
    one: JsonObject = {"start": "inner", "nodes": [inner], "edges": []}
    two: JsonObject = {
        "start": "b",
        "nodes": [node("b", "test.price", order="b") | {"save": {"key": "b"}}],
        "edges": [],
    }
    both: JsonObject = {"id": "both", "type": "parallel", "branches": {"one": one, "two": two}, "config": {}}
    first = node("first", "test.ok", value=1) | {"compensate": UNDO, "retry": {"max_attempts": 2, "backoff": [60]}}
    return chain("mix", first, both, on_cancel=UNDO, execution_timeout="P1D")


async def disturb(place: Place, ulid: str, random: Random) -> None:
    """Something happens to a run."""
    path = f"/v1/instances/{ulid}"
    match random.choice(
        ["work", "work", "work", "work", "fail", "break", "signal", "pause", "resume", "retry", "cancel"]
    ):
        case "fail":
            await place.work(ulid, Raised("test.flaky", "not yet"))
        case "break":
            await place.work(ulid, REFUSED)
        case "signal":
            await place.api.post(f"{path}/signal", {"name": "go", "payload": {"n": random.randrange(9)}})
        case "cancel" if random.random() < 0.7:
            await place.work(ulid)
        case "pause" | "resume" | "retry" | "cancel" as verb:
            await place.api.post(f"{path}/{verb}")
        case _:
            await place.work(ulid)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", range(6))
async def test_whatever_a_run_has_been_through_it_stands_there_as_it_stood(
    here: Place, there: Place, seed: int
) -> None:
    random = Random(seed)
    document = mix()
    await begin(here, there, document)
    for _ in range(3):
        ulid = (await here.api.start("mix"))["id"]
        for _ in range(random.randrange(1, 30)):
            await disturb(here, ulid, random)
        if random.random() < 0.5:
            await here.claim(ulid)
        await move(here, there, ulid)
        lines = await take_out(there.api, ulid)
        copy = await send_in(there.api, lines)
        assert copy.status_code == 201, copy.text
        again = await take_out(there.api, copy.json()["id"])
        assert unname(again) == unname(lines)
        for one in (ulid, copy.json()["id"]):
            await finish(there, one)


def unname(lines: Lines) -> list[str]:
    """An export of a copy and that of the run itself, without the ids in which they differ."""
    settled = settle(lines)
    head = get_head(settled)["instance"]
    head["labels"] = [label for label in head["labels"] if not label.startswith("imported_from:")]
    head["business_id"] = None
    steps = sorted(list_rows(settled, "step"), key=lambda step: [str(step[name]) for name in ATTEMPT])
    others = [
        line for line in settled if "step" not in line and line.get("event", {}).get("type") != "InstanceImported"
    ]
    told = json.dumps([steps, others], sort_keys=True)
    for step in steps:
        for name in ("id", "execution"):
            told = told.replace(step[name], ":".join(str(step[part]) for part in ATTEMPT))
    return told.replace(head["id"], "id").split("}")


async def finish(place: Place, ulid: str) -> None:
    """Let a run come to its end by all that it may take, and clean up behind itself."""
    due = "update workflow_step_runs set ready_at = $1 where instance_id = $2 and parked_for is null"
    due += " and status = 'queued' and ready_at is null"
    for _ in range(60):
        shown = await place.work_all(ulid)
        if shown["status"] == "paused":
            await place.api.post(f"/v1/instances/{ulid}/resume")
        elif shown["status"] == "failed" and shown["actions"]["retry"] is True:
            await place.api.post(f"/v1/instances/{ulid}/retry")
        elif shown["status"] in ("running", "waiting"):
            await place.api.post(f"/v1/instances/{ulid}/signal", {"name": "go"})
        elif not (shown["compensation"] or {}).get("pending"):
            return
        await place.flows.fetch(due, place.clock.now(), await place.api.get_id(ulid))
    raise AssertionError(shown)


async def test_a_document_that_is_too_large_is_refused_on_both_ways(database_url: str) -> None:
    async with open_api(database_url) as api:
        await api.publish(chain("keys", node("a", "test.price", order="a")))
        ulid = (await api.start("keys"))["id"]
        lines = await take_out(api, ulid)
    async with open_api(database_url, KORAK_API__MAX_COPY="500") as api:
        large = await api.get(f"/v1/instances/{ulid}/export")
        assert (large.status_code, large.json()["code"]) == (409, "export_too_large")
        assert large.json()["params"] == {"limit": 500}
        refused = await send_in(api, lines)
        assert (refused.status_code, refused.json()["code"]) == (413, "body_too_large")
        assert api.resources.spools.count == 0
        head = await api.send("HEAD", f"/v1/instances/{ulid}/export")
        assert head.status_code == 409


async def test_few_at_a_time(here: Place) -> None:
    await here.api.publish(chain("keys", node("a", "test.price", order="a")))
    ulid = (await here.api.start("keys"))["id"]
    path = f"/v1/instances/{ulid}/export"
    assert (await here.api.send("HEAD", path)).status_code == 200
    spools = [here.api.resources.spools.open() for _ in range(8)]
    busy = await here.api.get(path)
    assert (busy.status_code, busy.json()["code"]) == (503, "too_many_copies")
    for spool in spools:
        spool.close()
    assert (await here.api.get(path)).status_code == 200
    assert here.api.resources.spools.count == 0


async def test_another_owners_rows_are_out_of_reach(here: Place, there: Place) -> None:
    """A document may name what it wants: what it makes is its owner's, and hangs below nothing of another's."""
    document = chain("keys", node("a", "test.price", order="a"))
    ulid = await begin(here, there, document)
    await move(here, there, ulid)
    lines = await take_out(here.api, ulid)
    get_head(lines)["instance"]["parent"] = (await there.api.start("keys"))["id"]
    token = await there.api.make_token(OwnerRole.OPERATOR, owner="team:2")
    made = (await send_in(there.api, lines, token=token)).json()
    assert (made["owner"], made["parent"]) == ("team:2", None)
    assert made["id"] != ulid
    assert {row["owner_scope"] for row in await there.api.fetch("select owner_scope from workflow_step_runs")} == {
        "*",
        "team:2",
    }
