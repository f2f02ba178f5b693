"""Cancel, pause, resume and retry over HTTP."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from korak.commander import PATIENCE
from korak.core.facts import Delivered, Finished, Raised
from korak.model import OwnerRole
from korak.store.database import Database
from korak.store.transacting import Ask, Skipped
from tests.support.apis import ORDER, PURE, Api, chain, node
from tests.support.flows import NOW, Flows, open_flows
from tests.support.waiting import eventually

GIVEN = {"input": {"order": "o-1"}}


async def start(api: Api) -> str:
    """The path of a running order."""
    await api.publish(ORDER)
    return f"/v1/instances/{(await api.start('order', GIVEN))['id']}"


async def fail(api: Api, url: str) -> None:
    """Let the one step of the one instance fail for good."""
    [row] = await api.fetch("select id from workflow_instances")
    async with open_flows(url) as flows:
        now = api.resources.clock.now()
        step = await flows.claim(row["id"], await flows.register(now), now)
        assert step.claim_token is not None
        raised = Raised("test.no", "no", is_retryable=False)
        await flows.answer(row["id"], Finished(step.id, step.claim_token, raised), now, step=step.id)


async def test_cn_1_cancel_ends_a_run_with_its_reason(api: Api) -> None:
    one = await start(api)

    response = await api.post(f"{one}/cancel", {"reason": "changed my mind"})

    assert response.status_code == 200
    cancelled = response.json()
    assert (cancelled["status"], cancelled["closed_reason"]) == ("cancelled", "cancelled")
    assert cancelled["cancel_reason"] == "changed my mind"
    assert cancelled["nodes"] == []
    assert (await api.get(one)).json() == cancelled
    [event] = [e for e in (await api.get(f"{one}/events")).json()["items"] if e["type"] == "InstanceCancelled"]
    assert event["data"]["reason"] == "changed my mind"
    assert event["data"]["actor"]["token"] == "test"


async def test_a_pause_says_what_is_left(api: Api) -> None:
    """Of a wait, of a deadline, and nothing of either once they go on."""
    nap = node("nap", "wait", **{"for": "PT1H"})
    await api.publish(chain("naps", nap, execution_timeout="PT9H"))
    one = f"/v1/instances/{(await api.start('naps'))['id']}"
    paused = (await api.post(f"{one}/pause")).json()
    shown = (await api.get(one)).json()
    for told in (paused, shown):
        [wait] = [wait for wait in told["waiting_for"] if wait["kind"] == "timer"]
        assert wait["due_at"] is told["deadline_at"] is None
        assert 3_500 < wait["remaining_seconds"] <= 3_600
        assert 9 * 3_600 - 100 < told["deadline_remaining_seconds"] <= 9 * 3_600
    resumed = (await api.post(f"{one}/resume")).json()
    [wait] = resumed["waiting_for"]
    assert wait["remaining_seconds"] is resumed["deadline_remaining_seconds"] is None
    assert None not in (wait["due_at"], resumed["deadline_at"])


async def test_cn_8_an_ended_run_can_t_be_cancelled(api: Api) -> None:
    await api.publish(PURE)
    one = f"/v1/instances/{(await api.start('pure'))['id']}"

    for verb, code in (
        ("cancel", "instance_not_cancellable"),
        ("pause", "instance_not_pausable"),
        ("resume", "instance_not_paused"),
        ("retry", "instance_not_retryable"),
    ):
        response = await api.post(f"{one}/{verb}")
        assert (response.status_code, response.json()["code"]) == (409, code)


async def test_pause_lies_over_the_status_and_resume_takes_it_away(api: Api) -> None:
    one = await start(api)

    paused = (await api.post(f"{one}/pause")).json()
    again = await api.post(f"{one}/pause")
    resumed = (await api.post(f"{one}/resume")).json()

    assert paused["status"] == "paused"
    assert [waiting["kind"] for waiting in paused["waiting_for"]] == ["pause"]
    assert (again.status_code, again.json()["code"]) == (409, "instance_not_pausable")
    assert (resumed["status"], resumed["waiting_for"]) == ("running", [])
    assert (await api.post(f"{one}/resume")).json()["code"] == "instance_not_paused"


async def test_mr_1_retry_reopens_a_failed_run_at_its_step(api: Api, database_url: str) -> None:
    one = await start(api)
    await fail(api, database_url)
    assert (await api.get(one)).json()["status"] == "failed"

    response = await api.post(f"{one}/retry")

    assert response.status_code == 200
    retried = response.json()
    assert (retried["status"], retried["failure"], retried["ended_at"]) == ("running", None, None)
    steps = (await api.get(f"{one}/steps")).json()["items"]
    assert [(step["attempt"], step["status"]) for step in steps] == [(1, "failed"), (2, "queued")]


async def test_mr_4_what_didn_t_fail_on_a_step_is_to_be_started_again(api: Api) -> None:
    await api.publish(chain("few", node("price", "test.ok"), limits={"max_starts_per_minute": 1}))
    await api.post("/v1/definitions/few/start", {})
    refused = (await api.post("/v1/definitions/few/start", {})).json()["refused_instance"]

    response = await api.post(f"/v1/instances/{refused}/retry")

    assert (response.status_code, response.json()["code"]) == (409, "instance_not_retryable")
    assert "start it again" in response.json()["detail"]


async def test_retry_takes_no_input_yet(api: Api) -> None:
    one = await start(api)

    response = await api.post(f"{one}/retry", {"input": {}})

    assert (response.status_code, response.json()["errors"][0]["code"]) == (422, "not_available")


@pytest.mark.parametrize("body", [{"reason": ""}, {"reason": 1}, {"why": "x"}, [], "x"])
async def test_a_wrong_body_cancels_nothing(api: Api, body: Any) -> None:
    one = await start(api)

    assert (await api.post(f"{one}/cancel", body)).status_code == 422
    assert (await api.get(one)).json()["status"] == "running"


@pytest.mark.parametrize(
    ("verb", "before", "after"),
    [("cancel", "running", "cancelled"), ("pause", "running", "paused"), ("resume", "paused", "running")],
)
async def test_a_command_that_gets_no_lock_is_left_for_the_holder(
    api: Api, database_url: str, verb: str, before: str, after: str
) -> None:
    """DESIGN 4: a command that gets no lock in 100 ms leaves a row, which the next holder obeys first."""
    one = await start(api)
    if before == "paused":
        await api.post(f"{one}/pause")
    async with Database(database_url, "korak") as holder, holder.transaction() as connection:
        await connection.fetch("select id from workflow_instances for no key update")
        response = await api.post(f"{one}/{verb}", {"reason": "r"} if verb == "cancel" else {})

        assert response.status_code == 200
        assert response.json()["status"] == before
        [row] = await api.fetch("select kind, sender, payload from workflow_signals where taken_at is null")
        assert row["kind"] == verb
        assert row["sender"]["token"] == "test"

    async with open_flows(database_url) as flows:
        await eventually(lambda: come_by(flows), message="nobody gets the lock")
    ended = (await api.get(one)).json()
    assert ended["status"] == after
    assert ended["cancel_reason"] == ("r" if verb == "cancel" else None)


async def come_by(flows: Flows) -> bool:
    """Hold the one instance for a moment, with nothing to say to it; False where somebody else does."""
    [row] = await flows.fetch("select id from workflow_instances")
    [answer] = await flows.transactor.answer([Ask(row["id"], Delivered())], NOW)
    return not isinstance(answer, Skipped)


async def test_a_command_that_was_left_is_obeyed_as_soon_as_the_instance_is_let_go(api: Api, database_url: str) -> None:
    """By the API that has left it, while nobody else comes."""
    one = await start(api)
    async with Database(database_url, "korak") as holder, holder.transaction() as connection:
        await connection.fetch("select id from workflow_instances for no key update")
        assert (await api.post(f"{one}/pause")).json()["status"] == "running"

    async def is_paused() -> bool:
        return bool((await api.get(one)).json()["status"] == "paused")

    await eventually(is_paused)


LOCKED = """
select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
    and clock_timestamp() - query_start > $1
"""
"""Sessions that have waited for a lock for longer than that."""


async def test_a_retry_waits_for_the_lock_that_it_needs(api: Api, database_url: str) -> None:
    """Nothing can be left of it for the holder: it stands in line, for far longer than what leaves a row."""
    one = await start(api)
    await fail(api, database_url)
    async with Database(database_url, "korak") as holder:
        async with holder.transaction() as connection:
            await connection.fetch("select id from workflow_instances for no key update")
            retrying = asyncio.create_task(api.post(f"{one}/retry"))

            async def is_in_line() -> bool:
                [row] = await api.fetch(LOCKED, 3 * timedelta(seconds=PATIENCE))
                return bool(row["count"])

            await eventually(is_in_line, 20, message="it doesn't wait")
            assert (await api.post(f"{one}/cancel")).status_code == 409, "others aren't kept waiting by it"
        response = await retrying

    assert (response.status_code, response.json()["status"]) == (200, "running")


async def test_a_rewind_for_which_the_lock_isn_t_had_is_to_be_asked_again(api: Api, database_url: str) -> None:
    one = await start(api)
    async with Database(database_url, "korak") as holder, holder.transaction() as connection:
        await connection.fetch("select id from workflow_instances for no key update")
        response = await api.post(f"{one}/rewind", {"to": "start"})

    assert (response.status_code, response.json()["code"]) == (503, "unavailable")


@pytest.mark.parametrize("role", [OwnerRole.VIEWER, OwnerRole.STARTER, OwnerRole.AUTHOR, OwnerRole.WORKER])
async def test_only_operators_and_admins_command(api: Api, role: OwnerRole) -> None:
    one = await start(api)
    token = await api.make_token(role)

    for verb in ("cancel", "pause", "resume", "retry"):
        response = await api.post(f"{one}/{verb}", token=token)
        assert (response.status_code, response.json()["code"]) == (403, "forbidden")
        assert "operator" in response.json()["detail"]
