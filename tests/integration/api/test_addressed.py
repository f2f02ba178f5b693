"""Signals that are for one visit alone: taken by that, and refused once it waits for them no more."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, cast

import asyncpg
import pytest

from korak import chain
from korak.core.facts import Delivered
from korak.model import DeliveryKind
from korak.steps.results import Complete, Wait
from korak.steps.waits import WaitSpec
from korak.store import signals
from korak.store.signals import Sending
from tests.support.apis import Api, node
from tests.support.apis import chain as line
from tests.support.flows import open_flows
from tests.support.waiting import eventually

ROUNDS = chain("rounds").wait_for_decision("yes", "no", name="ask").repeat_until("ask", "never")
NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


async def start(api: Api, document: Any) -> tuple[str, str]:
    """A new run's address, and the visit that waits in it."""
    await api.publish(document)
    one = f"/v1/instances/{(await api.start(document['key']))['id']}"
    return one, await get_execution(api, one)


async def get_execution(api: Api, one: str) -> str:
    """The visit that waits."""
    [wait] = (await api.get(one)).json()["waiting_for"]
    return str(wait["execution"])


async def count(api: Api) -> int:
    """How many signals there are."""
    return len(await api.fetch("select id from workflow_signals"))


async def test_an_answer_is_for_the_round_that_asked(api: Api) -> None:
    one, first = await start(api, ROUNDS.document())
    [step] = [each for each in (await api.get(f"{one}/steps")).json()["items"] if each["node"] == "ask"]
    assert step["execution"] == first

    answered = await api.post(f"{one}/signal", {"name": "no", "execution": first})
    second = await get_execution(api, one)
    again = await api.post(f"{one}/signal", {"name": "yes", "execution": first})

    assert answered.json() == {"delivered": True, "buffered": False}
    assert (again.status_code, again.json()["code"]) == (409, "wait_over")
    assert second != first
    assert (await get_execution(api, one), await count(api)) == (second, 1)
    assert (await api.post(f"{one}/signal", {"name": "yes", "execution": second})).json()["delivered"]


async def test_a_repeat_hears_what_became_of_it(api: Api) -> None:
    one, first = await start(api, ROUNDS.document())
    body = {"name": "no", "execution": first, "id": "s-1"}

    told = [await api.post(f"{one}/signal", body) for _ in range(2)]

    assert [(each.status_code, each.json()["delivered"]) for each in told] == [(202, True), (202, True)]


@pytest.mark.parametrize("execution", [NOBODY, "visit", 3])
async def test_a_visit_that_is_none_gets_nothing(api: Api, execution: object) -> None:
    one, _ = await start(api, ROUNDS.document())
    refused = await api.post(f"{one}/signal", {"name": "no", "execution": execution})
    assert refused.status_code == (409 if execution == NOBODY else 422)
    assert await count(api) == 0


async def test_what_is_to_be_started_has_no_visit(api: Api) -> None:
    await api.publish(ROUNDS.document())
    refused = await api.post("/v1/instances/rounds~a/signal", {"name": "no", "execution": NOBODY, "start": {}})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/execution")


async def test_a_paused_run_keeps_it_for_its_visit(api: Api) -> None:
    one, first = await start(api, line("asks", node("ask", "wait", signal="go"), node("more", "wait", signal="go")))
    await api.post(f"{one}/pause")
    kept = await api.post(f"{one}/signal", {"name": "go", "payload": {"by": "ana"}, "execution": first})
    assert kept.json() == {"delivered": False, "buffered": True}

    await api.post(f"{one}/resume")
    [row] = await api.fetch("select id from workflow_instances")
    await api.resources.commander.answer(row["id"], Delivered())

    assert (await api.get(one)).json()["nodes"] == ["more"]
    late = await api.post(f"{one}/signal", {"name": "go", "execution": first})
    assert late.json()["code"] == "wait_over"


async def test_one_that_came_too_late_for_its_round_is_not_the_next_one_s(api: Api) -> None:
    """Two answers at once: both found the wait open and lie there, the first is taken, the second comes to nothing."""
    one, first = await start(api, ROUNDS.document())
    [row] = await api.fetch("select instance_id, id from workflow_step_runs where execution_id = $1", first)
    now = api.resources.clock.now()
    async with api.database.transaction() as connection:
        for after, (name, step) in enumerate((("no", None), ("yes", row["id"]))):
            sending = Sending(row["instance_id"], "*", DeliveryKind.SIGNAL, name, name, {}, None, step_run_id=step)
            await signals.send(connection, sending, now=now + timedelta(milliseconds=after))

    await api.resources.commander.answer(row["instance_id"], Delivered())

    second = await get_execution(api, one)
    assert second != first
    late = await api.post(f"{one}/signal", {"name": "yes", "execution": first, "id": "yes"})
    assert (late.status_code, late.json()["code"]) == (409, "wait_over")
    [kept] = await api.fetch("select taken_at, buffered_at, discarded_at from workflow_signals where source_id = 'yes'")
    assert (kept["taken_at"], kept["buffered_at"]) == (kept["discarded_at"], None)
    assert (await api.get(one)).json()["state"]["decision"]["outcome"] == "rejected"


async def test_nothing_is_told_before_it_is_known(api: Api, database_url: str) -> None:
    """Somebody else holds the run: the answer comes once that has let go, and says what became of it."""
    one, first = await start(api, ROUNDS.document())
    other = await asyncpg.connect(database_url)
    holding = other.transaction()
    await holding.start()
    await other.execute("select id from korak.workflow_instances for no key update")

    sending = asyncio.create_task(api.post(f"{one}/signal", {"name": "no", "execution": first}))
    await eventually(lambda: count(api), 10)
    assert not sending.done()
    await holding.rollback()
    await other.close()

    assert (await sending).json() == {"delivered": True, "buffered": False}


async def test_nor_before_the_step_that_it_wakes_has_taken_it(api: Api, database_url: str) -> None:
    """A step of an own type takes it in its claim: of two that come before that, one is told that it was delivered."""
    async with open_flows(database_url) as flows:
        await api.publish(line("asks", node("ask", "test.ask")))
        ulid = (await api.start("asks"))["id"]
        [row] = await api.fetch("select id from workflow_instances")
        now = api.resources.clock.now()
        engine = await flows.register(now)
        await flows.finish(await flows.claim(row["id"], engine, now), Wait(WaitSpec.signal("go")), now)
        one = f"/v1/instances/{ulid}"
        visit = await get_execution(api, one)

        before = (await flows.get_instance(row["id"]))["lock_version"]

        async def are_handed_out() -> bool:
            return bool((await flows.get_instance(row["id"]))["lock_version"] == before + 2)

        bodies: list[Any] = [
            {"name": "go", "payload": {"by": who}, "execution": visit, "id": who} for who in ("ana", "bob")
        ]
        sending = [asyncio.create_task(api.post(f"{one}/signal", body)) for body in bodies]
        await eventually(are_handed_out)
        woken = await eventually(lambda: flows.claim(row["id"], engine, now))
        await eventually(lambda: flows.finish(woken, Complete(), now))

        answers = {body["id"]: (await sent).json() for body, sent in zip(bodies, sending, strict=True)}
        assert woken.resume_signal is not None
        taken = cast("Any", woken.resume_signal["payload"])["by"]
        [other] = answers.keys() - {taken}
        assert answers[taken] == {"delivered": True, "buffered": False}
        assert answers[other].get("delivered") is not True
        late = await api.post(f"{one}/signal", {**bodies[0], "id": other})
        assert late.json()["code"] == "wait_over"


async def test_one_of_several_takes_its_own_once(api: Api) -> None:
    one, visit = await start(api, line("both", node("ask", "wait", signals=["a", "b"], mode="all")))
    first = await api.post(f"{one}/signal", {"name": "a", "execution": visit})
    twice = await api.post(f"{one}/signal", {"name": "a", "execution": visit})
    other = await api.post(f"{one}/signal", {"name": "b", "execution": visit})
    assert (first.json()["delivered"], twice.json()["code"], other.json()["delivered"]) == (True, "wait_over", True)
    assert (await api.get(one)).json()["status"] == "completed"
