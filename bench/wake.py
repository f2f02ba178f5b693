"""A wake pass over waiting timers of which 100 are due: over 1,000 of them, and over 1,000,000. Prints plans and times.

    python -m bench.wake [--timers 1000000] [--released 20000]

The server is that of KORAK_TEST_DATABASE_URL, else the local one. Databases of its own are made and dropped. It also
measures how fast a backlog is released for engines that pull.
"""

from __future__ import annotations

import argparse
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass

import uvloop
from rich.console import Console
from rich.table import Table

from korak.clock import ManualClock
from korak.metrics import Metrics
from korak.releasing import Puller
from tests.support import databases, servers
from tests.support.flows import NOW, Flows, chain, open_flows, work
from tests.support.timers import Plan, explain, holding, insert_timers
from tests.support.wakers import Wakers

DUE = 100
FEW = 1_000
REPEATS = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """One size: the plan of the look for what is due, and milliseconds of a pass with it and of one without.

    Each is the best of some: what a checkpoint or a cold page costs isn't the look's.
    """

    timers: int
    plan: Plan
    working: float
    idle: float


async def measure(url: str, count: int) -> Measured:
    """Insert the timers, look at the plan, make passes."""
    async with holding(url) as connection:
        await insert_timers(connection, count, DUE, NOW)
        await connection.execute("vacuum analyze")
        plans = [await explain(connection, "waits_due", now=NOW, is_condition=False, count=500) for _ in range(REPEATS)]
    async with open_flows(url) as flows, AsyncExitStack() as stack:
        wakers = await Wakers.open(stack, flows, url, Metrics())
        await wakers.run(-10)
        working = min([await _time_again(flows, wakers) for _ in range(REPEATS)])
        idle = min([await _time(wakers) for _ in range(REPEATS)])
    return Measured(count, min(plans, key=lambda plan: plan.milliseconds), working, idle)


async def _time_again(flows: Flows, wakers: Wakers) -> float:
    """The same timers are due once more."""
    await flows.get("update workflow_waits set sent_at = null where sent_at is not null")
    await flows.get("update workflow_step_runs set ready_at = null where ready_at is not null")
    return await _time(wakers)


async def _time(wakers: Wakers) -> float:
    begun = time.perf_counter()
    await wakers.run(0)
    return (time.perf_counter() - begun) * 1000


async def measure_release(url: str, count: int) -> float:
    """Steps a second that one engine pulls from a backlog."""
    async with open_flows(url) as flows:
        version = await flows.publish(chain(work()))
        for _ in range(count // 1000):
            await flows.start(version, 1000)
        puller = Puller(flows.database, ManualClock(NOW))
        begun, pulled = time.perf_counter(), 0
        while messages := await puller.pull(["default"], 256):
            pulled += sum(map(len, messages))
        await puller.close()
        return pulled / (time.perf_counter() - begun)


async def main(timers: int, released: int) -> None:
    """Measure both sizes and print."""
    console = Console()
    with servers.postgres() as server, databases.migrated(server) as template:
        measured = []
        for count in (FEW, timers):
            with databases.cloned(server, template) as url:
                measured.append(await measure(url, count))
        with databases.cloned(server, template) as url:
            rate = await measure_release(url, released)
    for one in measured:
        console.print(f"\n{one.timers:,} timers, {DUE} due", style="bold")
        console.print(one.plan.text, highlight=False, soft_wrap=True)
    table = Table("timers", "due", "the look: buffers", "the look: ms", "pass with due: ms", "pass without: ms")
    for one in measured:
        cells = (one.plan.buffers, f"{one.plan.milliseconds:.2f}", f"{one.working:.1f}", f"{one.idle:.1f}")
        table.add_row(f"{one.timers:,}", str(DUE), *map(str, cells))
    console.print(table)
    console.print(f"release to one engine that pulls: {rate:,.0f} steps/s from a backlog of {released:,}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timers", type=int, default=1_000_000)
    parser.add_argument("--released", type=int, default=20_000)
    given = parser.parse_args()
    uvloop.run(main(given.timers, given.released))
