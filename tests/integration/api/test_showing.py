"""What `korak show` reads of an instance: as much as it draws, however much there is."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from korak.commands.arranging import MOST, SAMPLE
from korak.commands.gathering import list_children, list_steps
from korak.core.facts import Claimed, Finished, Raised
from korak.model import JsonObject
from korak.steps.contract import Complete
from tests.support.apis import Api
from tests.support.bodies import body, for_each, node
from tests.support.children import CHILD, Families, graph, many
from tests.support.flows import Flows, chain, make_claimant

REFUSED = Raised("test.refused", "no", is_retryable=False)
BODY = body(node("x", "test.work", item={"ref": "item"}))


class Reader:
    """The API as a command calls it, from a thread of its own; it counts what it answers."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.loop = asyncio.get_running_loop()
        self.items: list[int] = []

    def get(self, path: str, **params: Any) -> Any:
        asked = {name: value for name, value in params.items() if value is not None}
        response = asyncio.run_coroutine_threadsafe(self.api.get(path, **asked), self.loop).result(30)
        assert response.status_code == 200, response.text
        self.items.append(len(response.json()["items"]))
        return response.json()


async def run_items(api: Api, flows: Flows, node: JsonObject, *, fails: set[int], most: int = 1 << 20) -> str:
    """A run of one container; the items that fail do so, and `most` of all are worked on."""
    [instance_id] = await flows.start(await flows.publish(chain(node)))
    now = api.resources.clock.now()
    engine, done = await flows.register(now), 0
    query = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null order by id"
    while done < most and (ready := await flows.fetch(query, instance_id)):
        for row in ready[: most - done]:
            changes = await flows.answer(instance_id, Claimed(row["id"], make_claimant(engine)), now)
            for grant in changes.claimed:
                done += 1
                item = grant.input.get("item") if isinstance(grant.input, dict) else None
                result: Any = REFUSED if item in fails else Complete(output={"n": item})
                fact = Finished(grant.step.id, grant.step.claim_token or "", result)
                await flows.answer(instance_id, fact, now, step=grant.step.id)
    return str(await flows.get("select ulid from workflow_instances where id = $1", instance_id))


async def read_steps(api: Api, ulid: str) -> tuple[list[Any], Reader]:
    reader: Any = Reader(api)
    return await asyncio.to_thread(list_steps, reader, ulid, MOST), reader


async def test_of_many_items_the_first_and_the_failed_are_read_and_all_are_counted(api: Api, flows: Flows) -> None:
    ulid = await run_items(api, flows, for_each(list(range(60)), BODY, mode="quorum", quorum=58), fails={40, 50})
    steps, reader = await read_steps(api, ulid)
    inside = [step for step in steps if step["branch"] is not None]
    assert [int(step["branch"]) for step in inside] == [*range(SAMPLE), 40, 50]
    [each] = [step for step in steps if step["node"] == "each"]
    assert each["bodies"] == {"completed": 58, "failed": 2}
    assert sum(reader.items) == len(steps) < 15
    whole: Any = Reader(api)
    everything = await asyncio.to_thread(list_steps, whole, ulid)
    assert len(everything) == len(steps) - len(inside) + 60


async def test_what_is_yet_to_begin_is_counted(api: Api, flows: Flows) -> None:
    ulid = await run_items(api, flows, for_each(list(range(40)), BODY, concurrency=3), fails=set(), most=4)
    steps, _ = await read_steps(api, ulid)
    [each] = [step for step in steps if step["node"] == "each"]
    assert sum(each["bodies"].values()) == 40
    assert each["bodies"]["running"] == 3
    assert each["bodies"]["pending"] > 30
    assert all(step["bodies"] is None for step in steps if step is not each)


async def test_few_bodies_are_all_read(api: Api, flows: Flows) -> None:
    inner = body(for_each([1, 2], BODY, "inner"))
    ulid = await run_items(api, flows, for_each([[1], [2], [3]], inner), fails=set())
    steps, _ = await read_steps(api, ulid)
    assert Counter(step["node"] for step in steps)["x"] == 6


async def test_of_many_children_the_odd_ones_are_read_and_all_are_counted(api: Api, flows: Flows) -> None:
    families = await Families.make(flows)
    families.now = api.resources.clock.now()
    found = await families.publish(graph("parent", many(list(range(60)))), CHILD)
    parent, ulid = await families.start(found["parent"])
    for _ in range(10):
        if len(await families.list_children(parent)) == 60:
            break
        await families.work(parent)
    ulids = [child["ulid"] for child in await families.list_children(parent)]
    assert (await api.post(f"/v1/instances/{ulids[55]}/pause")).status_code == 200
    failing = await flows.get("select id from workflow_instances where ulid = $1", ulids[57])
    [grant] = (await families.claim(failing)).claimed
    await families.finish(grant, REFUSED)
    assert (await api.post(f"/v1/instances/{ulids[2]}/cancel")).status_code == 200
    reader: Any = Reader(api)
    steps = await asyncio.to_thread(list_steps, reader, ulid, MOST)
    told = await asyncio.to_thread(list_children, reader, ulid, steps)
    assert [child["id"] for child in told["children"]] == [*ulids[:SAMPLE], ulids[55], ulids[57]]
    assert (told["has_more_children"], told["more_children"]) == (True, {"running": 53})
