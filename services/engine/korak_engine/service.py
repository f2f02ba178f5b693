"""The engine service: its composition root."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AsyncExitStack

from korak.config import Settings
from korak.errors import KorakError
from korak.loop import wait
from korak.metrics import Metrics
from korak.service import Health
from korak.serving import serve_health
from korak_engine.fleet import Builder, Fleet

YOUNG, MIDDLE, OLD = 50_000, 20, 50
"""Thresholds of the garbage collector: a batch makes thousands of rows, and nearly all of them are gone by counting."""


class WornOut(KorakError):
    """Half of the threads are kept by handlers that don't end: the engine has drained and leaves its place."""

    code = "worn_out"


async def run(stop: asyncio.Event, settings: Settings) -> None:
    """Claim, run and record until `stop` is set; then drain: stop consuming, let what runs end, close the row."""
    if stop.is_set():
        return
    health, metrics = Health(), Metrics(settings.metrics.directory)
    async with AsyncExitStack() as stack:
        fleet = await _build(stop, Builder(stack, settings, metrics, health))
        if fleet is None:
            return
        _settle_memory()
        async with asyncio.TaskGroup() as tasks:
            serving = tasks.create_task(serve_health(stop, settings.health, health, metrics))
            working = [tasks.create_task(work) for work in fleet.works]
            health.mark("service")
            await wait(None, stop, fleet.engine.is_worn_out)
            health.mark("service", "stopping")
            await fleet.stop()
            for task in working:
                task.cancel()
            serving.cancel()
    if not stop.is_set():
        raise WornOut


async def _build(stop: asyncio.Event, builder: Builder) -> Fleet | None:
    """The engine, once its database is there; None where it is told to stop before."""
    building, stopping = asyncio.create_task(builder.build()), asyncio.create_task(stop.wait())
    await asyncio.wait({building, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not building.done():
        building.cancel()
        await asyncio.wait({building})
        return None
    return building.result()


def _settle_memory() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
