"""What a handler's own tasks raise doesn't end the loop."""

from __future__ import annotations

import asyncio
import sys

import pytest

from korak.owners.context import within
from korak.owners.scopes import APPLICATION
from korak_engine.containing import Exited, contained


async def leave() -> None:
    sys.exit(3)


async def test_a_task_in_an_owners_context_raises_an_exception_instead() -> None:
    with contained(asyncio.get_running_loop()), within(APPLICATION):
        with pytest.raises(Exited, match="SystemExit: 3"):
            await asyncio.create_task(leave())
        with pytest.raises(Exited):
            await asyncio.gather(leave())
        with pytest.raises(Exited):
            await asyncio.wait_for(leave(), 60)


async def test_other_tasks_are_left_as_they_are() -> None:
    async def answer() -> int:
        return 7

    loop = asyncio.get_running_loop()
    before = loop.get_task_factory()
    with contained(loop):
        task = asyncio.create_task(answer(), name="mine")
        assert task.get_name() == "mine"
        assert await task == 7
    assert loop.get_task_factory() is before


async def test_a_contained_task_can_be_cancelled_before_and_after_it_began() -> None:
    began = asyncio.Event()

    async def hang() -> None:
        began.set()
        await asyncio.Event().wait()

    with contained(asyncio.get_running_loop()), within(APPLICATION):
        unborn, running = asyncio.create_task(hang()), asyncio.create_task(hang(), name="mine")
        unborn.cancel()
        await began.wait()
        running.cancel()
        for task in (unborn, running):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert running.get_name() == "mine"


async def test_a_time_limit_inside_a_contained_task_works() -> None:
    async def limited() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "over"
        return "never"

    with contained(asyncio.get_running_loop()), within(APPLICATION):
        assert await asyncio.create_task(limited()) == "over"
