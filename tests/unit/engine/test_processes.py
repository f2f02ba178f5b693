"""Handlers in processes of their own: what they see, how they fail, that they can be killed."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import psutil
import pytest

from korak.clock import Clock
from korak.core.facts import HandlerResult, Raised
from korak.model import SignalKind
from korak.steps.contract import Complete, Fail, Signal, Wait, WaitSpec
from korak_engine import wire
from tests.support import eventually
from tests.support.attempts import NOW, ULID, Bench, benched
from tests.unit.engine import hostile

SECRET = "hunter22-" + "x" * 30


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with benched(processes=1, secrets={"api": SECRET}) as made:
        yield made


def list_children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child.status() != psutil.STATUS_ZOMBIE]


async def test_a_handler_in_a_process_sees_what_it_needs(bench: Bench) -> None:
    work = bench.make(
        hostile.apart, config={"order": {"ref": "input.order"}}, input={"order": "9"}, state={"total": 1}, visit=2
    )
    result = await bench.handlers.run(work)

    assert isinstance(result, Complete), result
    assert result.output.pop("pid") != os.getpid()
    assert result.output == {
        "order": "9",
        "owner": "team:42",
        "input": {"order": "9"},
        "state": {"total": 1},
        "trigger": {"on": "manual", "key": None, "payload": {"by": "hand"}},
        "said": [1, 2, f"wf:{ULID}:n:2", "n", ULID, "order", 3],
        "now": NOW.isoformat(),
        "resolved": "9",
        "cancelled": False,
    }
    assert work.deadline > 0


async def test_a_process_is_used_again(bench: Bench) -> None:
    results = [await bench.run(hostile.apart) for _ in range(3)]

    assert len({result.output["pid"] for result in results if isinstance(result, Complete)}) == 1


async def test_a_process_that_dies_fails_its_attempt_and_is_replaced(bench: Bench) -> None:
    result = await bench.run(hostile.dies)

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("exception", True)
    assert result.message == "the process that ran the step died (exit code 9): without a word"
    assert isinstance(await bench.run(hostile.apart), Complete)


async def test_sys_exit_ends_the_attempt_and_not_the_process(bench: Bench) -> None:
    first = await bench.run(hostile.apart)
    result = await bench.run(hostile.exits_apart)
    second = await bench.run(hostile.apart)

    assert isinstance(result, Raised)
    assert (result.code, result.type) == ("exception", "SystemExit")
    assert "sys.exit(3)" in (result.trace or "")
    assert first == second


async def test_a_process_past_its_time_is_killed(bench: Bench) -> None:
    work = bench.make(hostile.hangs_apart)
    task = bench.start(work)
    await eventually(lambda: work.deadline, 30)
    (child,) = list_children()
    work.is_settled = True
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await eventually(lambda: not child.is_running())
    assert bench.handlers.lost_threads == 0
    assert isinstance(await bench.run(hostile.apart), Complete)


async def test_processes_end_with_the_engine_busy_or_not() -> None:
    async with benched(processes=2) as bench:
        await bench.run(hostile.apart)
        work = bench.make(hostile.hangs_apart)
        task = bench.start(work)
        await eventually(lambda: work.deadline, 30)
        children = list_children()
        work.is_settled = True

    assert isinstance(await task, Raised)
    await eventually(lambda: not any(child.is_running() for child in children))


async def test_a_process_ends_with_an_engine_that_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    be_one = "from tests.unit.engine import test_processes as t; t.hang()"
    engine = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", be_one), env=environment, stdout=asyncio.subprocess.PIPE
    )
    assert engine.stdout is not None
    child = psutil.Process(int(await engine.stdout.readline()))
    engine.kill()
    await engine.wait()

    await eventually(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


def hang() -> None:
    """Be an engine whose only step never returns, and tell where it runs."""

    async def run() -> None:
        async with benched(processes=1) as bench:
            work = bench.make(hostile.hangs_apart)
            task = bench.start(work)
            await eventually(lambda: work.deadline, 30)
            sys.stdout.write(f"{list_children()[0].pid}\n")
            sys.stdout.flush()
            await task

    asyncio.run(run())


async def test_there_is_no_once_in_a_process(bench: Bench) -> None:
    result = await bench.run(hostile.once_apart)

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("effect_unavailable", False)


async def test_au_12_a_process_asks_the_authorizer_here(bench: Bench) -> None:
    result = await bench.run(hostile.asks_apart, config={"ability": "pay"})

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("authorization_denied", False)
    assert result.params == {"detail": "nobody was granted the ability pay"}


async def test_a_secret_seen_in_a_process_is_scrubbed_here(bench: Bench) -> None:
    result = await bench.run(hostile.tells_apart, config={"key": {"secret": "api"}})

    assert isinstance(result, Raised)
    assert result.message == "the key is [secret]"
    assert SECRET not in (result.trace or "")


async def test_a_delay_asked_for_in_a_process_counts_by_the_engines_clock() -> None:
    clock = Clock()
    clock.adjust(timedelta(days=3))
    async with benched(processes=1, clock=clock) as bench:
        before = clock.now()
        result = await bench.run(hostile.retries_apart)

    assert isinstance(result, Raised)
    assert (result.code, result.message) == ("later", "not now")
    assert result.after is not None
    assert before + timedelta(hours=1) <= result.after <= clock.now() + timedelta(hours=1)


async def test_a_step_waits_and_is_resumed_in_a_process(bench: Bench) -> None:
    parked = await bench.run(hostile.WaitsApart)
    resumed = await bench.run(hostile.WaitsApart, signal=Signal(SignalKind.TIMER, at=NOW), parked={"parked": True})

    assert parked == Wait(WaitSpec.timer(NOW + timedelta(hours=1)).timeout("PT2H"), {"parked": True})
    assert resumed == Complete("next", {"kind": "timer", "parked": {"parked": True}})


async def test_a_type_that_can_not_be_sent_fails_for_good(bench: Bench) -> None:
    result = await bench.run(hostile.Lonely)

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == ("invalid_step_type", False)


@pytest.mark.parametrize(
    "result",
    [
        Complete("paid", {"a": [1]}),
        Wait(WaitSpec.event("paid", {"order": "7"}, outcome="x").also_at(NOW).timeout("P1D").probe(), {"a": 1}),
        Fail("no", "text", {"a": 1}),
        Raised("code", "text", {"a": 1}, is_retryable=False, after=NOW, type="X", trace="T"),
        Raised("code"),
    ],
)
def test_a_result_comes_over_the_wire_as_it_was(result: HandlerResult) -> None:
    assert wire.decode_result(wire.loads(wire.dumps(wire.encode_result(result)))) == result
