"""Thousands of instances while processes are killed and connections cut at random: all end, each effect once."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from korak.model import JsonObject
from tests.support import ledger
from tests.support.calls import Refused
from tests.support.chaos import Chaos
from tests.support.graphs import document, edge, node
from tests.support.proxies import Proxy, proxied
from tests.support.stage import Stage, staged

INSTANCES = int(os.environ.get("KORAK_TEST_CHAOS", "300"))
SEED = int(os.environ.get("KORAK_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
ACTS = 8 if INSTANCES < 1_000 else 24
STARTERS = 8
KINDS = ("signal", "event", "none")
EFFECTS = 3
"""Of each instance."""

GRAPH = document(
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


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_every_instance_ends_and_each_effect_is_taken_once(
    tmp_path: Path, database_url: str, broker_url: str | None
) -> None:
    """DESIGN 12: SIGKILL of engines, waker and api, and cut connections, at random."""
    async with wired(broker_url) as (wire, amqp), staged(tmp_path, database_url, amqp) as stage:
        chance = random.Random(SEED)
        await stage.calls.publish(GRAPH)
        async with Chaos(stage, chance, wire) as chaos:
            numbers = iter(range(INSTANCES))
            violence = chaos.run(ACTS, stride=INSTANCES * 5 // ACTS)
            await asyncio.gather(violence, *(drive(stage, numbers, random.Random(n)) for n in range(STARTERS)))
            sys.stdout.write(f"KORAK_TEST_SEED={SEED}: {dict(chaos.done)}\n")

        await stage.end_all(90)

        assert await ledger.count_by_status(stage.connection) == {"completed": INSTANCES}
        assert await stage.connection.fetchval("select count(*) from public.effects") == INSTANCES * EFFECTS
        await stage.assert_rules()
        assert await list_codes(stage) <= {"busy", "lease_expired", "unavailable"}


async def drive(stage: Stage, numbers: Iterator[int], chance: random.Random) -> None:
    """Start instances, and tell each what it waits for: at once, or after the next few have been started."""
    owed: list[tuple[str, JsonObject]] = []
    for number in numbers:
        given: JsonObject = {"n": number, "kind": KINDS[number % 3]}
        instance = (await stage.calls.start("chaos", given, once=f"chaos-{number}"))["id"]
        owed.append((instance, given))
        while len(owed) > chance.randint(0, 10):
            await tell(stage, *owed.pop(0))
    for each in owed:
        await tell(stage, *each)


async def tell(stage: Stage, instance: str, given: JsonObject) -> None:
    """What the instance waits for, or will. One that has ended has got it: only the answer was lost."""
    if given["kind"] == "signal":
        try:
            await stage.calls.signal(instance, "go")
        except Refused as refused:
            if refused.code != "instance_ended":
                raise
    elif given["kind"] == "event":
        await stage.calls.emit("paid", {"n": given["n"]})


async def list_codes(stage: Stage) -> set[str]:
    """Why attempts have failed."""
    rows: list[Any] = await stage.connection.fetch("select distinct error_code from workflow_step_runs")
    return {row["error_code"] for row in rows} - {None}


@asynccontextmanager
async def wired(amqp: str | None) -> AsyncIterator[tuple[Proxy | None, str | None]]:
    """A wire to the broker that can be cut."""
    if amqp is None:
        yield None, None
        return
    async with proxied(amqp) as (wire, url):
        yield wire, url
