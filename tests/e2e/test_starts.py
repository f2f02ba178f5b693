"""Starts over real processes: two APIs at once, and a waker that is killed while it empties the inbox."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import ledger
from tests.support.calls import Calls
from tests.support.graphs import chain, node
from tests.support.servers import free_port
from tests.support.stage import Stage, admit, staged
from tests.support.waiting import eventually

WAITS = chain("unique", node("hold", "wait", {"signal": "go"}))
ENDS = chain("ends", node("note", "set_field", {"field": "state.note", "value": "seen"}))
START = "/v1/definitions/unique/start"
ROWS = 2_000

pytestmark = pytest.mark.timeout(120)


async def start_api(stage: Stage) -> str:
    """The address of a second API."""
    stage.fleet.api_port = free_port()
    return (await stage.fleet.start_ready("api")).url


async def test_t_unq_3_fifty_unique_starts_on_two_apis_are_one_run(tmp_path: Path, database_url: str) -> None:
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(WAITS)
        body: dict[str, Any] = {"id": "A-17", "on_open": "use_existing"}
        async with Calls(await start_api(stage), await admit(database_url)) as other:
            apis = (stage.calls, other)
            answers = await asyncio.gather(*(apis[number % 2].send("POST", START, body) for number in range(50)))

            [run] = {answer["instance"]["id"] for answer in answers}
            assert sum(answer["created"] for answer in answers) == 1
            signal = {"name": "go", "start": {}}
            path = "/v1/instances/unique~A-17/signal"
            told = await asyncio.gather(*(apis[number % 2].send("POST", path, signal) for number in range(20)))
            assert run in {each["instance"] for each in told}

        # Whoever found the run ended has started another: each run but the last has ended, and none was empty.
        found = await stage.connection.fetch(
            "select run_number, ended_at is null as is_open from korak.workflow_instances order by run_number"
        )
        assert [row["run_number"] for row in found] == list(range(1, len(found) + 1))
        assert sum(row["is_open"] for row in found) <= 1
        empty = (
            "select 1 from korak.workflow_instances i where not exists"
            " (select 1 from korak.workflow_signals s where s.instance_id = i.id)"
        )
        assert await stage.connection.fetch(empty) == []
        sent = await stage.connection.fetchval("select count(*) from korak.workflow_signals where kind = 'signal'")
        assert sent == 20
        if found[-1]["is_open"]:
            await stage.calls.send("POST", "/v1/instances/unique~A-17/cancel")

        # What a run didn't wait for stays with it, kept.
        left = "select count(*) from korak.workflow_signals where taken_at is null and buffered_at is null"
        await eventually(lambda: is_zero(stage, left), 30, message="a signal was neither taken nor kept")
        breaches = await ledger.list_breaches(stage.connection)
        assert breaches.keys() <= {"every delivery was taken (12.4)"}


async def is_zero(stage: Stage, query: str) -> bool:
    """Whether that count is 0."""
    return not await stage.connection.fetchval(query)


async def test_a_killed_waker_starts_nothing_twice_and_loses_nothing(tmp_path: Path, database_url: str) -> None:
    """Rows of a user's transaction, in batches of ten; each is one run, or still there for the next waker."""
    async with staged(tmp_path, database_url, None, {"KORAK_WAKE__BATCH": "10"}) as stage:
        await stage.calls.publish(ENDS)
        count = "select count(*) from korak.workflow_instances"
        await stage.connection.execute(
            "insert into korak.workflow_inbox (kind, name, body)"
            """ select 'start', 'ends', jsonb_build_object('labels', jsonb_build_array('row-' || n))"""
            f" from generate_series(1, {ROWS}) n"
        )
        await eventually(lambda: stage.connection.fetchval(count))
        stage.waker.kill()
        left = await stage.connection.fetchval("select count(*) from korak.workflow_inbox")
        assert left > 0
        assert await stage.connection.fetchval(count) + left == ROWS
        await stage.fleet.start_ready("waker")
        left_over = "select count(*) from korak.workflow_inbox"
        await eventually(lambda: is_zero(stage, left_over), 30, message="the inbox isn't emptied")
        rows = await stage.connection.fetch("select labels from korak.workflow_instances")
        labels = Counter(str(row["labels"]) for row in rows)
        assert (len(labels), set(labels.values())) == (ROWS, {1})
        await stage.assert_rules()
