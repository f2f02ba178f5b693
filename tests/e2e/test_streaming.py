"""Streaming with real processes: chunks outlive the engine that stored them, and nobody adds to them too late."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.graphs import chain, node
from tests.support.stage import Stage, staged
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


async def list_texts(stage: Stage, instance: str) -> list[str]:
    """What the instance's steps have stored."""
    return [each["content"] for each in await stage.calls.get(instance, "chunks")]


async def wait_for_chunks(stage: Stage, instance: str, count: int) -> None:
    async def look() -> bool:
        return len(await list_texts(stage, instance)) >= count

    await eventually(look, 30, message="no chunks come")


async def has_gone_on(stage: Stage, instance: str) -> bool:
    """Whether the second attempt has stored something."""
    return any(text.strip().endswith("@2") for text in await list_texts(stage, instance))


async def count_rows(stage: Stage) -> int:
    counted: int = await stage.connection.fetchval("select count(*) from workflow_chunks")
    return counted


@pytest.mark.parametrize("kind", ["e2e.stream", "e2e.stream_thread"])
async def test_t_str_2_a_killed_engines_chunks_are_there_for_the_next_attempt(
    kind: str, tmp_path: Path, database_url: str
) -> None:
    """T-STR-1, T-HB-1: SIGKILL behind three chunks; attempt 2 has them, adds two, and all are in the output."""
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(chain("stream", node("write", kind, {"count": 5, "stop_at": 3})))
        instance = (await stage.calls.start("stream", {}))["id"]
        await wait_for_chunks(stage, instance, 3)

        async def read_progress() -> Any:
            [step] = await stage.calls.get(instance, "steps")
            return step["progress"]

        await eventually(read_progress, 10, message="no heartbeat is shown")
        assert await read_progress() == {"done": 3}
        stage.engine.kill()
        await stage.fleet.start_ready("engine")

        assert (await stage.calls.wait_for_end(instance))["status"] == "completed"
        lost, done = [step for step in await stage.calls.get(instance, "steps") if step["node"] == "write"]
        assert lost["execution"] == done["execution"]
        assert done["output"] == {"text": "0@1 1@1 2@1 3@2 4@2 "}
        assert await count_rows(stage) == 0
        await stage.assert_rules()


async def test_t_hb_4_a_frozen_engine_that_comes_back_adds_nothing(tmp_path: Path, database_url: str) -> None:
    """T-STR-1: SIGSTOP in mid-stream; another engine goes on; the first one is thawed while that still streams."""
    async with staged(tmp_path, database_url, None) as stage:
        await stage.calls.publish(chain("slowly", node("write", "e2e.stream_slowly", {"count": 40, "pause": 0.1})))
        instance = (await stage.calls.start("slowly", {}))["id"]
        await wait_for_chunks(stage, instance, 5)
        stage.engine.freeze()
        before = len(await list_texts(stage, instance))
        await stage.fleet.start_ready("engine")
        await eventually(partial(has_gone_on, stage, instance), 60, message="nobody takes over")
        stage.engine.thaw()

        assert (await stage.calls.wait_for_end(instance))["status"] == "completed"
        [done] = [step for step in await stage.calls.get(instance, "steps") if step["status"] == "completed"][:1]
        written = done["output"]["text"].split()
        assert [int(each.split("@")[0]) for each in written] == list(range(40))
        attempts = [each.split("@")[1] for each in written]
        assert attempts == sorted(attempts)
        assert before <= attempts.count("1") <= before + 1, "one more may have been on its way as it froze"
        assert await count_rows(stage) == 0
        await stage.assert_rules()


async def test_t_str_4_a_retry_by_hand_after_the_last_attempt_goes_on_where_it_stood(
    tmp_path: Path, database_url: str
) -> None:
    """T-STR-3: they are there to be read as long as the run has failed; and artifacts of failed attempts are not."""
    async with staged(tmp_path, database_url, None) as stage:
        writing = node("write", "e2e.stream", {"count": 3, "fails": 2})
        await stage.calls.publish(chain("stream", node("keep", "e2e.keep", {"text": "all good"}), writing))
        instance = (await stage.calls.start("stream", {}))["id"]
        failed = await stage.calls.wait_for_end(instance)
        assert (failed["status"], failed["failure"]["code"]) == ("failed", "busy")
        assert await list_texts(stage, instance) == ["0@1 ", "1@1 ", "2@1 "]

        await stage.calls.send("POST", f"/v1/instances/{instance}/retry", {})
        ended = await stage.calls.wait_for_end(instance)
        assert (ended["status"], ended["result"]) == ("completed", {})
        assert ended["artifacts"] == {"count": 2, "keys": ["attempt-2", "report"]}
        write = [step for step in await stage.calls.get(instance, "steps") if step["node"] == "write"]
        assert [step["attempt"] for step in write] == [1, 2, 3]
        assert write[-1]["output"] == {"text": "0@1 1@1 2@1 "}
        assert await count_rows(stage) == 0
        report = await stage.calls.send("GET", f"/v1/instances/{instance}/artifacts/report")
        assert (report["content"], report["node"], report["visit"]) == ("all good", "keep", 1)
