"""Gathering: many callers, one flush, and each hears how it went."""

from __future__ import annotations

import asyncio

from korak.broker.gathering import Gathering
from korak.errors import TransientError


class Flushes:
    """Records what is flushed, and when; fails for the keys that are told to."""

    def __init__(self) -> None:
        self.batches: list[tuple[str, list[int]]] = []
        self.times: list[float] = []
        self.failing: set[str] = set()

    async def flush(self, key: str, items: list[int]) -> None:
        self.batches.append((key, items))
        self.times.append(asyncio.get_running_loop().time())
        if key in self.failing:
            raise TransientError("broker_unavailable", why="a test")


async def test_what_comes_together_is_flushed_together() -> None:
    flushes = Flushes()
    gathering = Gathering(flushes.flush, delay=0.01)
    await asyncio.gather(gathering.add("a", [1]), gathering.add("a", [2, 3]), gathering.add("b", [4]))
    assert sorted(flushes.batches) == [("a", [1, 2, 3]), ("b", [4])]


async def test_every_caller_of_a_failed_flush_hears_it_and_no_other() -> None:
    flushes = Flushes()
    flushes.failing = {"a"}
    gathering = Gathering(flushes.flush)
    outcomes = await asyncio.gather(
        gathering.add("a", [1]), gathering.add("a", [2]), gathering.add("b", [3]), return_exceptions=True
    )
    assert [type(outcome) for outcome in outcomes] == [TransientError, TransientError, type(None)]


async def test_a_caller_that_gives_up_takes_nobody_with_it() -> None:
    flushes = Flushes()
    gathering = Gathering(flushes.flush, delay=0.01)
    impatient = asyncio.create_task(gathering.add("a", [1]))
    patient = asyncio.create_task(gathering.add("a", [2]))
    await asyncio.wait({impatient}, timeout=0)
    impatient.cancel()
    await patient
    assert flushes.batches == [("a", [1, 2])]


async def test_spacing_holds_for_one_key_and_the_first_goes_at_once() -> None:
    flushes = Flushes()
    gathering = Gathering(flushes.flush, spacing=0.05)
    begun = asyncio.get_running_loop().time()
    for number in range(3):
        await gathering.add("a", [number])
    first, second, third = flushes.times
    assert first - begun < 0.05
    assert second - first >= 0.049
    assert third - second >= 0.049


async def test_closing_flushes_what_is_kept() -> None:
    flushes = Flushes()
    gathering = Gathering(flushes.flush, delay=60)
    adding = asyncio.create_task(gathering.add("a", [1]))
    await asyncio.wait({adding}, timeout=0)
    await gathering.close()
    await adding
    assert flushes.batches == [("a", [1])]
