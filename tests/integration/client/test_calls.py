"""Each call of the client, against the API itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from korak import chain
from korak.client import AsyncKorak, Korak, Unreachable
from korak.client.operations import HoldKind
from korak.errors import Conflict, Invalid, NotFound, Unauthenticated
from korak.model import OwnerRole
from tests.support.apis import ORDER, PURE, URL, Api, node
from tests.support.apis import chain as line

ASK = chain("ask").wait_for_decision("yes", "no").wait_for_input("numbers")


class Lossy(httpx.AsyncBaseTransport):
    """Loses the first answers that come back, after the request has been answered."""

    def __init__(self, door: httpx.AsyncBaseTransport, losses: int) -> None:
        self.door = door
        self.losses = losses

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self.door.handle_async_request(request)
        await response.aread()
        if self.losses:
            self.losses -= 1
            raise httpx.ReadError("the connection is gone", request=request)
        return response


async def test_a_run_from_its_start_to_its_end(korak: AsyncKorak) -> None:
    await korak.publish(ASK)
    started = await korak.start("ask", {"a": 1}, labels=["x"], priority="high")
    run = started["instance"]["id"]
    assert started["created"]
    assert (await korak.get(run))["labels"] == ["x"]
    with pytest.raises(TimeoutError):
        await korak.wait(run, timeout=0.0)
    with pytest.raises(Conflict) as raised:
        await korak.submit_input(run, {"b": 2})
    assert raised.value.code == "not_awaited"
    waiting = asyncio.create_task(korak.wait(run, timeout=20))
    assert (await korak.reject(run, {"reason": "too dear"}))["delivered"]
    assert (await korak.submit_input(run, {"b": 2}))["delivered"]
    ended = await waiting
    assert ended["status"] == "completed"
    assert ended["result"] == {
        "a": 1,
        "decision": {"outcome": "rejected", "signal": "no", "data": {"reason": "too dear"}},
        "input": {"b": 2},
    }
    steps = [step["node"] async for step in korak.steps(run)]
    assert steps == ["begin", "wait_for_decision", "wait_for_input", "end"]
    events = [event async for event in korak.events(run)]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert [event async for event in korak.events(run, after=len(events) - 1)] == events[-1:]


async def test_commands(korak: AsyncKorak) -> None:
    await korak.publish(ORDER)
    run = (await korak.start("order", {"order": "A"}))["instance"]["id"]
    assert (await korak.pause(run))["status"] == "paused"
    assert (await korak.resume(run))["status"] == "running"
    cancelled = await korak.cancel(run, "not wanted")
    assert (cancelled["status"], cancelled["cancel_reason"]) == ("cancelled", "not wanted")
    with pytest.raises(Conflict) as raised:
        await korak.retry(run)
    assert raised.value.code == "instance_not_retryable"


async def test_signals_and_events(korak: AsyncKorak) -> None:
    await korak.publish(line("both", node("a", "wait", signal="go"), node("b", "wait", event="paid")))
    run = (await korak.start("both"))["instance"]["id"]
    assert (await korak.emit("paid", {"sum": 3}, id="e-1"))["matched"] == 0
    assert await korak.signal(run, "go", {"x": 1}, id="s-1") == {"delivered": True, "buffered": False}
    assert (await korak.emit("paid", {"sum": 3}, id="e-2"))["matched"] == 1
    assert (await korak.wait(run, timeout=10))["status"] == "completed"


async def test_lists_go_over_all_pages(api: Api, korak: AsyncKorak) -> None:
    await korak.publish(PURE)
    made = [(await korak.start("pure"))["instance"]["id"] for _ in range(5)]
    found = [each["id"] async for each in korak.list(status="completed", definition=["pure", "other"])]
    assert found == made[::-1]
    assert [each["id"] async for each in korak.list(limit=2)] == made[:2:-1]
    assert [each async for each in korak.list(status="failed")] == []


async def test_an_instance_is_followed_to_its_end(korak: AsyncKorak) -> None:
    await korak.publish(PURE)
    run = (await korak.start("pure"))["instance"]["id"]
    told = [(name, data) async for name, data in korak.follow(run)]
    assert [data["seq"] for name, data in told if name == "history"] == [
        event["seq"] async for event in korak.events(run)
    ]
    assert told[-1][0] == "end"
    rest = [data["seq"] async for name, data in korak.follow(run, after=2) if name == "history"]
    assert rest[0] == 3
    with pytest.raises(NotFound):
        [each async for each in korak.follow("01J00000000000000000000000")]


async def test_what_is_refused_is_raised_as_what_it_is(api: Api, korak: AsyncKorak, door: Any) -> None:
    await korak.publish(ORDER)
    with pytest.raises(NotFound) as missing:
        await korak.start("nothing")
    assert missing.value.code == "definition_not_found"
    with pytest.raises(Invalid) as wrong:
        await korak.start("order", {"order": 3, "count": "x"})
    assert {issue.pointer for issue in wrong.value.issues} == {"/input/order", "/input/count"}
    assert wrong.value.body is not None
    async with AsyncKorak(URL, "nobody's", transport=door) as stranger:
        with pytest.raises(Unauthenticated):
            await stranger.get("01J00000000000000000000000")
    with pytest.raises(Invalid, match=r"^The graph is wrong\. Errors: \d+\. /[\w/]+: \w") as refused:
        await korak.publish({**PURE, "edges": []})
    assert str(refused.value).endswith(refused.value.issues[0].message)


async def test_an_answer_that_was_lost_is_asked_for_again(api: Api, door: httpx.AsyncBaseTransport) -> None:
    """DESIGN 8: the same Idempotency-Key goes out with every repeat"""
    async with AsyncKorak(URL, api.admin, transport=Lossy(door, 2)) as korak:
        version = await korak.publish(PURE)
    assert version["number"] == 1
    async with AsyncKorak(URL, api.admin, transport=Lossy(door, 2)) as korak:
        started = await korak.start("pure")
    assert started["created"]
    assert [each["id"] for each in (await api.get("/v1/instances")).json()["items"]] == [started["instance"]["id"]]
    async with AsyncKorak(URL, api.admin, transport=Lossy(door, 2), retries=1) as korak:
        with pytest.raises(Unreachable):
            await korak.get(started["instance"]["id"])


async def test_nobody_answers() -> None:
    async with AsyncKorak("http://127.0.0.1:9", "token", retries=1) as korak:
        with pytest.raises(Unreachable, match="Nothing answers at http"):
            await korak.get("01J00000000000000000000000")


async def test_a_token_of_the_application_acts_for_an_owner(api: Api, door: Any) -> None:
    async with AsyncKorak(URL, api.admin, transport=door, owner="team:42") as korak:
        await korak.publish(PURE)
        run = (await korak.start("pure"))["instance"]
    assert run["owner"] == "team:42"
    viewer = await api.make_token(OwnerRole.VIEWER, owner="team:43")
    async with AsyncKorak(URL, viewer, transport=door) as other:
        with pytest.raises(NotFound):
            await other.get(run["id"])


async def test_a_key_starts_once(korak: AsyncKorak) -> None:
    await korak.publish(PURE)
    first = await korak.start("pure", {"a": 1}, idempotency_key="K")
    again = await korak.start("pure", {"a": 2}, idempotency_key="K")
    assert (again["created"], again["instance"]["id"]) == (False, first["instance"]["id"])
    assert again["input_differs"]


async def test_an_id_of_one_s_own_finds_the_run_that_is_open(korak: AsyncKorak) -> None:
    await korak.publish(line("both", node("a", "wait", signal="go")))
    first = await korak.start("both", id="order-1", on_open="use_existing")
    again = await korak.start("both", id="order-1", on_open="use_existing")
    assert (first["created"], again["created"]) == (True, False)
    assert (await korak.get("both~order-1"))["id"] == first["instance"]["id"]
    with pytest.raises(Conflict):
        await korak.start("both", id="order-1")
    sent = await korak.signal("both~order-2", "go", start={})
    assert sent["created"]
    assert (await korak.wait("both~order-2", timeout=10))["status"] == "completed"


async def test_two_answers_at_once_are_for_one_question(korak: AsyncKorak) -> None:
    """The second was read from the first round: the next round doesn't get it"""
    await korak.publish(chain("rounds").wait_for_decision("yes", "no", name="ask").repeat_until("ask", "never"))
    run = (await korak.start("rounds"))["instance"]["id"]
    [asked] = (await korak.get(run))["waiting_for"]
    told = await asyncio.gather(korak.reject(run), korak.approve(run), return_exceptions=True)
    assert [each["delivered"] for each in told if not isinstance(each, BaseException)] == [True]
    assert [each.code for each in told if isinstance(each, Conflict)] == ["wait_over"]
    [again] = (await korak.get(run))["waiting_for"]
    assert again["execution"] != asked["execution"]
    with pytest.raises(Conflict, match="gone on"):
        await korak.signal(run, "yes", execution=asked["execution"])


async def test_a_run_goes_back_is_forked_and_travels(korak: AsyncKorak) -> None:
    await korak.publish(line("way", node("a", "wait", signal="go"), node("b", "wait", signal="on")))
    run = (await korak.start("way", {"x": 1}))["instance"]["id"]
    await korak.signal(run, "go")
    fork = await korak.fork(run)
    assert (fork["nodes"], fork["labels"], fork["input"]) == (["b"], [f"forked_from:{run}"], {"x": 1})
    assert (await korak.fork(run, "start"))["nodes"] == ["a"]
    assert (await korak.rewind(run, "start"))["nodes"] == ["a"]
    assert [wait["name"] async for wait in korak.waits(run)] == ["go", "on", "go"]
    lines = b"".join([piece async for piece in korak.export(run)])
    twin = await korak.import_(lines)
    assert (await korak.import_(lines))["id"] == twin["id"]
    with pytest.raises(Invalid):
        await korak.import_(lines[: len(lines) // 2])
    assert (twin["nodes"], twin["labels"]) == (["a"], [f"imported_from:{run}"])
    with pytest.raises(Conflict) as raised:
        await korak.rewind(run, "nowhere")
    assert raised.value.code == "step_not_completed"
    with pytest.raises(NotFound):
        [piece async for piece in korak.export("01J00000000000000000000000")]


async def test_a_run_is_brought_in_whole_or_in_pieces(korak: AsyncKorak, blocking: Korak) -> None:
    await korak.publish(line("way", node("a", "wait", signal="go")))
    run = (await korak.start("way"))["instance"]["id"]
    lines = [piece async for piece in korak.export(run)]
    whole = b"".join(lines)
    halves = [whole[:99], whole[99:]]

    async def send() -> AsyncIterator[bytes]:
        for half in halves:
            yield half

    made = {(await korak.import_(given))["id"] for given in (whole, lines, iter(halves), send())}
    assert len(made) == 1
    made |= {(await asyncio.to_thread(blocking.import_, given))["id"] for given in (whole, lines, iter(halves))}
    assert len(made) == 1


async def test_what_is_exported_goes_straight_in_again(korak: AsyncKorak, blocking: Korak) -> None:
    await korak.publish(line("way", node("a", "wait", signal="go")))
    run = (await korak.start("way"))["instance"]["id"]
    made = [await korak.import_(korak.export(run))]
    made += [await asyncio.to_thread(lambda: blocking.import_(blocking.export(run)))]
    assert [(each["nodes"], each["labels"]) for each in made] == [(["a"], [f"imported_from:{run}"])] * 2


async def test_pieces_that_come_once_are_whole_in_every_repeat(api: Api, door: httpx.ASGITransport) -> None:
    """The first answer is lost after the run was made; the repeat has all of the lines again and finds it."""
    lossy = Lossy(door, 0)
    async with AsyncKorak(URL, api.admin, transport=lossy) as korak:
        await korak.publish(line("way", node("a", "wait", signal="go")))
        run = (await korak.start("way"))["instance"]["id"]
        lines = [piece async for piece in korak.export(run)]
        lossy.losses = 1
        assert (await korak.import_(iter(lines)))["nodes"] == ["a"]
        found = [each["labels"] async for each in korak.list(definition="way")]
        assert found == [[f"imported_from:{run}"], []]


async def test_what_a_run_leaves(api: Api, korak: AsyncKorak) -> None:
    await korak.publish(line("leaves", node("a", "wait", signal="go")))
    run = (await korak.start("leaves"))["instance"]["id"]
    made = await korak.put_artifact(run, "raw", b"\x00\xff", metadata={"from": "me"})
    await korak.put_artifact(run, "rows", [1, 2])
    await korak.put_artifact(run, "rows", "text", kind="text")
    assert (made["kind"], made["size"], made["metadata"], made["content"]) == ("bytes", 2, {"from": "me"}, "AP8=")
    assert [(each["key"], each["content"]) async for each in korak.artifacts(run)] == [("raw", None), ("rows", None)]
    assert [each["content"] async for each in korak.artifacts(run, content=True)] == ["AP8=", "text"]
    assert (await korak.artifact(run, "rows"))["kind"] == "text"
    await korak.drop_artifact(run, "rows")
    with pytest.raises(NotFound):
        await korak.artifact(run, "rows")
    [step] = await api.fetch("select instance_id, execution_id from workflow_step_runs where node_id = 'a'")
    made_up = "select $1, $2, index, 'a', 1, 1, 'c' || index, now() from generate_series(0, 2) index"
    await api.fetch(f"insert into workflow_chunks {made_up}", *step.values())
    assert [each["content"] async for each in korak.chunks(run, step="a", after=0)] == ["c1", "c2"]
    assert [each async for each in korak.chunks(run, step="other")] == []
    assert [each async for each in korak.failures(run)] == []


async def test_what_is_held_is_released(korak: AsyncKorak) -> None:
    await korak.publish(ORDER)
    things: list[tuple[HoldKind, str]] = [("definition", "order"), ("step_type", "test.price"), ("queue", "default")]
    for kind, name in things:
        held = await korak.hold(kind, name, reason="the ERP is down", until="2100-01-01T00:00:00Z")
        assert (held["kind"], held["name"], held["reason"], held["released_at"]) == (
            kind,
            name,
            "the ERP is down",
            None,
        )
    assert {each["name"]: each["hold"] is not None async for each in korak.queues()} == {"default": True}
    for kind, name in things:
        assert (await korak.release(kind, name))["released_at"] is not None
    with pytest.raises(NotFound):
        await korak.release("queue", "default")


async def test_definitions_and_their_versions(korak: AsyncKorak) -> None:
    first = await korak.publish(PURE)
    second = await korak.publish({**PURE, "settings": {"priority": "high"}}, current=False)
    assert [each["number"] async for each in korak.versions("pure")] == [2, 1]
    assert (await korak.version("pure", 2))["graph"]["settings"] == {"priority": "high"}
    assert (await korak.definition("pure"))["version"] == first["number"]
    assert (await korak.activate("pure", second["number"]))["version"] == second["number"]
    with pytest.raises(Conflict) as older:
        await korak.activate("pure", first["number"], only_newer=True)
    assert older.value.code == "version_older"
    assert (await korak.archive("pure"))["status"] == "archived"
    assert [each["key"] async for each in korak.definitions(status="archived")] == ["pure"]
    assert [each async for each in korak.definitions(status=["draft", "active"])] == []
    with pytest.raises(Conflict):
        await korak.start("pure")
    assert (await korak.restore("pure"))["status"] == "active"
    assert (await korak.validate(ASK))["valid"]
    with pytest.raises(Invalid) as wrong:
        await korak.validate({**PURE, "edges": []})
    assert wrong.value.issues


async def test_a_query_in_the_path_of_a_call_is_sent(korak: AsyncKorak) -> None:
    """A filter that got lost would list everything; what is given besides goes on top."""
    await korak.publish(ASK)
    run = (await korak.start("ask", labels=["x"]))["instance"]["id"]
    await korak.start("ask")
    for found in (
        await korak.call("GET", "/v1/instances?label=x"),
        await korak.call("GET", "/v1/instances?label=x&status=failed", params={"status": "waiting"}),
    ):
        assert [each["id"] for each in found["items"]] == [run]


async def test_a_hold_of_something_else_is_refused(korak: AsyncKorak) -> None:
    other: Any = "worker"
    for refused in (korak.hold(other, "x"), korak.release(other, "x")):
        with pytest.raises(Invalid, match="it is one of definition, step_type, queue") as raised:
            await refused
        assert raised.value.code == "invalid_parameter"
