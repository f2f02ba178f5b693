"""An engine is killed while a run is undone: what was undone stays so, the rest is done by another (T-COMP-7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from korak.model import Json, JsonObject
from tests.support.graphs import chain, node
from tests.support.stage import Stage, staged
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)

SECONDS: JsonObject = {"seconds": {"ref": "input.seconds"}}
FAST: JsonObject = {"type": "e2e.effect", "config": {"seconds": 0}}
SLOW: JsonObject = {"type": "e2e.slow", "config": SECONDS}


def booked(name: str, undo: Json) -> JsonObject:
    """A step with an effect, and what undoes it."""
    return node(name, "e2e.effect", compensate=undo)


async def list_hooks(stage: Stage, instance: str) -> list[Any]:
    """Role, node, attempt and status of an instance's hooks, in their order."""
    steps: Any = await stage.calls.get(instance, "steps")
    return [(step["role"], step["node"], step["attempt"], step["status"]) for step in steps if step["role"] != "step"]


async def test_t_comp_7_what_is_left_is_undone_by_another_engine(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """SIGKILL between two undos, in the middle of the second; T-COMP-1 for the order."""
    async with staged(tmp_path, database_url, broker_url) as stage:
        wait = node("wait", "wait", {"signal": "go"})
        document = chain("trip", booked("hotel", SLOW), booked("flight", FAST), wait)
        document["settings"] = {"on_cancel": FAST}
        await stage.calls.publish(document)
        instance = (await stage.calls.start("trip", {"seconds": 3600}))["id"]

        async def is_waiting() -> bool:
            shown: Any = await stage.calls.get(instance)
            return bool(shown["status"] == "waiting")

        async def is_undoing() -> bool:
            return ("compensate", "hotel", 1, "running") in await list_hooks(stage, instance)

        async def is_cleaned_up() -> bool:
            return ("on_cancel", "$on_cancel", 1, "completed") in await list_hooks(stage, instance)

        await eventually(is_waiting, 30, message="it doesn't get to its wait")
        await stage.calls.send("POST", f"/v1/instances/{instance}/cancel", {})
        await eventually(is_undoing, 30, message="nothing is undone")
        stage.engine.kill()
        await stage.fleet.start_ready("engine")
        await eventually(is_cleaned_up, 60, message="it isn't undone")

        assert await list_hooks(stage, instance) == [
            ("compensate", "flight", 1, "completed"),
            ("compensate", "hotel", 1, "failed"),
            ("compensate", "hotel", 2, "completed"),
            ("on_cancel", "$on_cancel", 1, "completed"),
        ]
        ended: Any = await stage.calls.get(instance)
        assert (ended["status"], ended["compensation"]["completed"]) == ("cancelled", 2)
        await stage.assert_rules()
