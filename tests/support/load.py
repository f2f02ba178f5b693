"""Work for an end-to-end test: instances that take effects, fail, pause and wait, and what they wait for."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

from korak.model import JsonObject
from tests.support import ledger
from tests.support.calls import Refused
from tests.support.graphs import document, edge, node
from tests.support.stage import Stage
from tests.support.waiting import eventually

STARTERS = 8
KINDS = ("signal", "event", "none")
EFFECTS = 3
"""Of each instance."""

GRAPH: JsonObject = document(
    "chaos",
    [
        node("one", "e2e.effect"),
        node("even", "condition", {"if": {"cel": "input.n % 2 == 0"}}),
        node("flaky", "e2e.flaky", save={"key": "two"}),
        node("blocking", "e2e.blocking_effect", save={"key": "two"}),
        node("pause", "delay", {"for": 0.5}),
        node(
            "kind",
            "branch",
            {"cases": [{"key": kind, "if": {"ref": "input.kind", "op": "eq", "value": kind}} for kind in KINDS[:2]]},
        ),
        node("signalled", "wait", {"signal": "go"}),
        node("told", "wait", {"event": "paid", "match": {"n": {"ref": "input.n"}}}),
        node("three", "e2e.effect"),
        node("done", "end", {"result": {"ref": "state.two.attempt"}}),
    ],
    [
        edge("start", "one"),
        edge("one", "even"),
        edge("even", "flaky", "true"),
        edge("even", "blocking", "false"),
        edge("flaky", "pause"),
        edge("blocking", "pause"),
        edge("pause", "kind"),
        edge("kind", "signalled", "signal"),
        edge("kind", "told", "event"),
        edge("kind", "three", "default"),
        edge("signalled", "three"),
        edge("told", "three"),
        edge("three", "done"),
    ],
)
# Violence may take several attempts of one visit.
GRAPH |= {"settings": {"retry": {"max_attempts": 10, "backoff": [0.2]}}}

FAULTS = {"busy", "lease_expired", "unavailable"}
"""Why an attempt may have failed: as it should, with its engine, or for want of the database."""


async def run(stage: Stage, count: int) -> None:
    """Start so many instances, and tell each what it waits for."""
    numbers = iter(range(count))
    await asyncio.gather(*(_drive(stage, numbers, random.Random(place)) for place in range(STARTERS)))


async def wait_for_steps(stage: Stage, count: int) -> int:
    """How many attempts have ended, once that is so many."""

    async def look() -> int:
        ended = await ledger.count_ended(stage.connection)
        return ended if ended >= count else 0

    return await eventually(look, 60, message=f"{count} attempts don't end")


async def assert_done(stage: Stage, count: int, patience: float = 60) -> None:
    """All of them end as they should, each effect was taken once, and every rule of the ledger holds."""
    await stage.end_all(patience)
    assert await ledger.count_by_status(stage.connection) == {"completed": count}
    assert await stage.connection.fetchval("select count(*) from public.effects") == count * EFFECTS
    await stage.assert_rules()
    rows = await stage.connection.fetch("select distinct error_code from workflow_step_runs where error_code <> ''")
    assert {row["error_code"] for row in rows} <= FAULTS


async def _drive(stage: Stage, numbers: Iterator[int], chance: random.Random) -> None:
    """Start instances, and tell each what it waits for: at once, or after the next few have been started."""
    owed: list[tuple[str, JsonObject]] = []
    for number in numbers:
        given: JsonObject = {"n": number, "kind": KINDS[number % 3]}
        instance = (await stage.calls.start("chaos", given, once=f"chaos-{number}"))["id"]
        owed.append((instance, given))
        while len(owed) > chance.randint(0, 10):
            await _tell(stage, *owed.pop(0))
    for each in owed:
        await _tell(stage, *each)


async def _tell(stage: Stage, instance: str, given: JsonObject) -> None:
    """What the instance waits for, or will. One that has ended has got it: only the answer was lost."""
    if given["kind"] == "signal":
        try:
            await stage.calls.signal(instance, "go")
        except Refused as refused:
            if refused.code != "instance_ended":
                raise
    elif given["kind"] == "event":
        await stage.calls.emit("paid", {"n": given["n"]})
