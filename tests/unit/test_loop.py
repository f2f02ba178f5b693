"""The shared loop: it works, waits, is woken, stops, and no error ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from korak import loop
from korak.errors import TransientError
from korak.loop import Backoff
from tests.support import eventually

QUICK = Backoff(first=0.001, most=0.002)
LONG = 3600.0


class Duty:
    """Counts its rounds; `rounds` of them raise, and `stop` is set after `most`."""

    def __init__(self, *, most: int = 10**9, failing: int = 0) -> None:
        self.stop = asyncio.Event()
        self.rounds = 0
        self._most = most
        self._failing = failing

    async def run_once(self) -> int:
        self.rounds += 1
        if self.rounds >= self._most:
            self.stop.set()
        if self.rounds <= self._failing:
            raise RuntimeError(f"round {self.rounds}")
        return self.rounds


async def test_a_stop_before_the_start_does_nothing() -> None:
    duty = Duty()
    duty.stop.set()
    await loop.run_every(duty.stop, duty.run_once, lambda _: LONG)
    assert duty.rounds == 0


async def test_rounds_follow_one_another_until_it_is_stopped() -> None:
    duty = Duty(most=5)
    pauses: list[int] = []

    def pause(result: int) -> float:
        pauses.append(result)
        return 0.0

    await loop.run_every(duty.stop, duty.run_once, pause)
    assert pauses == [1, 2, 3, 4, 5]


async def test_a_stop_cuts_the_longest_pause_short() -> None:
    duty = Duty()
    running = asyncio.ensure_future(loop.run_every(duty.stop, duty.run_once, lambda _: LONG))
    await eventually(lambda: duty.rounds == 1)
    duty.stop.set()
    await asyncio.wait_for(running, 5)
    assert duty.rounds == 1


async def test_a_wake_cuts_a_pause_short_once() -> None:
    duty, wake = Duty(), asyncio.Event()
    running = asyncio.ensure_future(loop.run_every(duty.stop, duty.run_once, lambda _: LONG, wake=wake))
    await eventually(lambda: duty.rounds == 1)
    wake.set()
    await eventually(lambda: duty.rounds == 2)
    assert not wake.is_set()
    duty.stop.set()
    await asyncio.wait_for(running, 5)
    assert duty.rounds == 2


async def test_a_wake_during_a_round_leads_to_another() -> None:
    stop, wake = asyncio.Event(), asyncio.Event()
    rounds = 0

    async def run_once() -> None:
        nonlocal rounds
        rounds += 1
        if rounds == 1:
            wake.set()
        else:
            stop.set()

    await asyncio.wait_for(loop.run_every(stop, run_once, lambda _: LONG, wake=wake), 5)
    assert rounds == 2


async def test_no_error_ends_the_loop() -> None:
    duty = Duty(most=6, failing=4)
    errors: list[str] = []
    await loop.run_every(
        duty.stop, duty.run_once, lambda _: 0.0, backoff=QUICK, on_error=lambda error: errors.append(str(error))
    )
    assert duty.rounds == 6
    assert errors == ["round 1", "round 2", "round 3", "round 4"]


@pytest.mark.parametrize(
    ("error", "event", "level"),
    [
        (RuntimeError("x"), "loop_failed", "error"),
        (TransientError("database_unavailable"), "loop_interrupted", "warning"),
    ],
)
async def test_what_passes_by_itself_is_told_without_its_trace(error: Exception, event: str, level: str) -> None:
    stop = asyncio.Event()

    async def fail() -> None:
        stop.set()
        raise error

    with capture_logs() as told:
        await loop.run_every(stop, fail, lambda _: LONG, backoff=QUICK)

    assert [(each["event"], each["log_level"]) for each in told] == [(event, level)]
    assert ("exc_info" in told[0]) is (level == "error")


async def test_a_pause_that_cannot_be_read_is_an_error_like_any_other() -> None:
    duty = Duty(most=2)
    errors: list[Exception] = []

    def pause(result: int) -> float:
        raise ZeroDivisionError

    await loop.run_every(duty.stop, duty.run_once, pause, backoff=QUICK, on_error=errors.append)
    assert [type(error) for error in errors] == [ZeroDivisionError, ZeroDivisionError]


async def test_a_stop_cuts_the_back_off_short() -> None:
    duty = Duty(failing=1)
    running = asyncio.ensure_future(
        loop.run_every(duty.stop, duty.run_once, lambda _: 0.0, backoff=Backoff(first=LONG, most=LONG))
    )
    await eventually(lambda: duty.rounds == 1)
    duty.stop.set()
    await asyncio.wait_for(running, 5)


async def test_a_cancelled_loop_ends() -> None:
    duty = Duty()
    running = asyncio.ensure_future(loop.run_every(duty.stop, duty.run_once, lambda _: LONG))
    await eventually(lambda: duty.rounds == 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.1), (2, 0.2), (4, 0.8), (8, 10.0), (10**9, 10.0)])
def test_the_back_off_doubles_up_to_its_most(failures: int, seconds: float) -> None:
    assert Backoff().after(failures) == pytest.approx(seconds)


@pytest.mark.parametrize("choose", [lambda a, b: a, lambda a, b: b], ids=["first", "second"])
async def test_waiting_ends_with_any_event(choose: Callable[..., asyncio.Event]) -> None:
    events = (asyncio.Event(), asyncio.Event())
    asyncio.get_running_loop().call_soon(choose(*events).set)
    assert await loop.wait(LONG, *events) is True


async def test_waiting_for_nothing_takes_its_time() -> None:
    assert await loop.wait(0.001, asyncio.Event()) is False


async def test_waiting_without_an_event_is_a_pause() -> None:
    assert await loop.wait(0.001) is False
