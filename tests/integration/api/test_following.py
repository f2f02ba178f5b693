"""Following an instance live over a real socket: history and chunks as they come, resumed, shared, and let go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import orjson
import pytest

from korak.core.facts import Raised
from korak.model import JsonObject
from korak.serving import listen, serve
from korak_api.app import make_app
from korak_api.feeds import Feed, Place
from tests.support import eventually
from tests.support.apis import ORDER, PURE, Api, chain, save
from tests.support.children import Families

EXECUTION = "01J0000000000000000000000A"
OTHER = "01J0000000000000000000000B"


@asynccontextmanager
async def serving(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    """The API under test on a port, as the service serves it, and a client."""
    listener = listen("127.0.0.1", 0, setting="-")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    task = asyncio.create_task(serve(api.resources.waiter.stop, make_app(api.resources), listener))
    headers = {"authorization": f"Bearer {api.admin}"}
    try:
        async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=20) as client:
            yield client
    finally:
        api.resources.waiter.stop.set()
        await task


async def follow(
    client: httpx.AsyncClient, ulid: str, **headers: str
) -> AsyncGenerator[tuple[str, str | None, Any], None]:
    """Name, id and data of each event, until the stream ends."""
    async with client.stream("GET", f"/v1/instances/{ulid}/stream", headers=headers) as response:
        assert (response.status_code, response.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        read: dict[str, str] = {}
        async for line in response.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                read[name] = value
            elif "data" in read:
                yield read["event"], read.get("id"), orjson.loads(read["data"])
                read = {}


async def append(api: Api, ulid: str, text: str, execution: str = EXECUTION) -> None:
    """One more chunk of a visit."""
    await api.fetch(
        "insert into workflow_chunks (instance_id, execution_id, index, node_id, visit, attempt, content, created_at)"
        " select i.id, $2::varchar, (select count(*) from workflow_chunks where execution_id = $2::varchar),"
        " 'write', 1, 1, $3, i.created_at from workflow_instances i where i.ulid = $1",
        ulid,
        execution,
        text,
    )


async def start(api: Api) -> str:
    """An open instance."""
    await api.publish(ORDER)
    ulid: str = (await api.start("order", {"input": {"order": "a"}}))["id"]
    return ulid


async def test_the_whole_history_comes_numbered_and_then_the_end(api: Api) -> None:
    await api.publish(PURE)
    ulid = (await api.start("pure"))["id"]
    events = (await api.get(f"/v1/instances/{ulid}/events")).json()["items"]
    async with serving(api) as client:
        told = [each async for each in follow(client, ulid)]
        later = [each async for each in follow(client, ulid, **{"last-event-id": "2"})]
    assert told == [("history", str(event["seq"]), event) for event in events] + [
        ("end", None, {"status": "completed"})
    ]
    assert later == told[2:]


async def test_t_str_3_what_streams_is_read_while_it_comes_and_grows(api: Api) -> None:
    ulid = await start(api)
    await append(api, ulid, "once ")
    seen: list[tuple[int, str]] = []
    async with serving(api) as client:
        async for name, number, data in follow(client, ulid):
            if name == "chunk":
                assert number is None
                seen.append((data["index"], data["content"]))
                if len(seen) < 3:
                    await append(api, ulid, f"more {len(seen)}")
                elif len(seen) == 3:
                    await append(api, ulid, "elsewhere", OTHER)
                else:
                    await api.post(f"/v1/instances/{ulid}/cancel")
            last = name, data
    assert seen == [(0, "once "), (1, "more 1"), (2, "more 2"), (0, "elsewhere")]
    assert last == ("end", {"status": "cancelled"})


async def test_history_comes_as_it_happens_and_who_returns_goes_on_behind_it(api: Api) -> None:
    ulid = await start(api)
    async with serving(api) as client:
        first = follow(client, ulid)
        begun = await anext(first)
        await first.aclose()
        await api.post(f"/v1/instances/{ulid}/pause")
        again = follow(client, ulid, **{"last-event-id": begun[1] or ""})
        paused = await anext(again)
        await api.post(f"/v1/instances/{ulid}/cancel")
        rest = [(name, data.get("type")) async for name, _, data in again]
    assert (begun[2]["seq"], paused[2]["type"]) == (1, "InstancePaused")
    assert rest == [("history", "StepCancelled"), ("history", "InstanceCancelled"), ("end", None)]


@pytest.mark.parametrize("fails", [False, True])
async def test_what_is_undone_and_cleaned_up_is_told_before_the_end(
    api: Api, families: Families, *, fails: bool
) -> None:
    """Each hook is made as the one before it has ended: in between nothing lives, and yet it isn't over."""
    undo: JsonObject = {"type": "test.ok", "config": {}}
    booked = [save(name) | {"compensate": undo} for name in ("a", "b")]
    await api.publish(chain("booked", *booked, save("c"), compensate_on_failure=True, on_cancel=undo))
    ulid = (await api.start("booked"))["id"]
    instance_id = await api.get_id(ulid)
    for _ in range(2):
        await families.work(instance_id)
    told: list[str] = []
    async with serving(api) as client:
        stream = follow(client, ulid)
        if fails:
            [grant] = (await families.claim(instance_id)).claimed
            await families.finish(grant, Raised("no_way", is_retryable=False))
        else:
            assert (await api.post(f"/v1/instances/{ulid}/cancel")).status_code == 200
        async for name, _, data in stream:
            told.append(data.get("type", name))
            if told[-1] in ("InstanceCancelled", "InstanceFailed", "HookCompleted"):
                assert await families.work(instance_id) is (told.count("HookCompleted") < (2 if fails else 3))
    hooks = ["HookStarted", "HookCompleted"] * (2 if fails else 3)
    assert told[-len(hooks) - 2 :] == ["InstanceFailed" if fails else "InstanceCancelled", *hooks, "end"]


async def test_who_goes_away_leaves_nothing_behind(api: Api) -> None:
    ulid = await start(api)
    async with serving(api) as client:
        one, two = follow(client, ulid), follow(client, ulid)
        await anext(one)
        await anext(two)
        assert api.resources.feeds.followers == 2
        await one.aclose()
        await eventually(lambda: api.resources.feeds.followers == 1)
        await two.aclose()
        await eventually(lambda: api.resources.feeds.followers == 0)
    tasks = [task for task in asyncio.all_tasks() if "Feed.run" in repr(task)]
    assert tasks == []


async def test_the_service_stops_though_somebody_follows(api: Api) -> None:
    ulid = await start(api)
    async with serving(api) as client:
        following = follow(client, ulid)
        await anext(following)
        api.resources.waiter.stop.set()
        async with asyncio.timeout(4):
            assert [name async for name, *_ in following] == []


async def test_whoever_is_at_the_same_place_shares_a_look(api: Api) -> None:
    ulid = await start(api)
    feed = Feed(await api.get_id(ulid), api.database)
    pages = await asyncio.gather(*(feed.look(Place(0)) for _ in range(50)), feed.look(Place(1)))
    assert len({id(page) for page in pages}) == 2
    assert pages[0].place.seq > 0
    assert (pages[0].is_whole, pages[0].end) == (True, None)


async def test_an_instance_that_is_gone_ends_the_stream(api: Api) -> None:
    page = await Feed(10**9, api.database).look(Place(0))
    assert (page.frames, page.end) == (b"", b'event: end\ndata: {"status":"gone"}\n\n')


@pytest.mark.parametrize("given", ["x", "-1", "1" * 19])
async def test_a_last_event_that_is_no_number_is_refused(api: Api, given: str) -> None:
    ulid = await start(api)
    response = await api.get(f"/v1/instances/{ulid}/stream", headers={"last-event-id": given})
    assert (response.status_code, response.json()["code"]) == (422, "invalid_parameter")


async def test_a_head_request_is_answered_at_once(api: Api) -> None:
    ulid = await start(api)
    response = await api.send("HEAD", f"/v1/instances/{ulid}/stream")
    assert (response.status_code, response.content) == (200, b"")
