"""The step types of the end-to-end tests: with effects, slow, failing, blocking, and hostile ones."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, cast

import sqlalchemy

from korak import BlockingContext, Retry, Secret, StepContext, StepFailed, StepResult, StepRetry, step
from korak.loop import wait
from korak.model import Json

CALLS = "KORAK_TEST_CALLS"
"""The variable with the file to which every call of a handler adds a line: its key, attempt and process."""

EFFECT = sqlalchemy.text("insert into public.effects (key, attempt) values (:key, :attempt)")
NEVER = 3_600.0


def tell(ctx: Any) -> None:
    """One line for this call, written whole whoever else writes."""
    line = f"{ctx.idempotency_key} {ctx.attempt} {os.getpid()}\n".encode()
    descriptor = os.open(os.environ[CALLS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


async def _take_effect(ctx: StepContext) -> None:
    async def effect(connection: Any) -> Json:
        await connection.execute(EFFECT, {"key": ctx.idempotency_key, "attempt": ctx.attempt})
        return {"attempt": ctx.attempt}

    await ctx.once("effect", effect)


@step("e2e.effect")
async def effect(ctx: StepContext, seconds: float = 0.0) -> dict[str, int]:
    """Take an effect, then go on for a while at the first attempt"""
    tell(ctx)
    await _take_effect(ctx)
    await wait(seconds if ctx.attempt == 1 else 0.0)
    return {"attempt": ctx.attempt}


@step("e2e.item")
async def item(ctx: StepContext, item: int, slow: list[int]) -> dict[str, int]:
    """Take an effect for an item, then hang at the first attempt of a slow one"""
    tell(ctx)
    await _take_effect(ctx)
    await wait(NEVER if ctx.attempt == 1 and item in slow else 0.0)
    return {"item": item}


@step("e2e.round")
async def round_(ctx: StepContext, rounds: int, slow: int) -> dict[str, int]:
    """Count a round, and hang at the first attempt of the slow one"""
    tell(ctx)
    await _take_effect(ctx)
    await wait(NEVER if ctx.attempt == 1 and rounds + 1 == slow else 0.0)
    return {"rounds": rounds + 1}


@step("e2e.blocking_effect")
def blocking_effect(ctx: BlockingContext) -> dict[str, int]:
    """Take an effect in a thread"""
    tell(ctx)

    def run(connection: sqlalchemy.Connection) -> Json:
        connection.execute(EFFECT, {"key": ctx.idempotency_key, "attempt": ctx.attempt})
        return {"attempt": ctx.attempt}

    ctx.once("effect", run)
    return {"attempt": ctx.attempt}


@step("e2e.flaky", retry=Retry(5, [0.2]))
async def flaky(ctx: StepContext) -> dict[str, int]:
    """Take an effect, and fail at the first attempt all the same"""
    tell(ctx)
    await _take_effect(ctx)
    if ctx.attempt == 1:
        raise StepRetry("busy", "Not yet.")
    return {"attempt": ctx.attempt}


@step("e2e.stream", retry=Retry(2, [0.2]))
async def stream(ctx: StepContext, count: int, stop_at: int = -1, fails: int = 0) -> AsyncIterator[str]:
    """Yield so many chunks behind those that are stored; at the first attempt stand still before one of them"""
    tell(ctx)
    for number in range(len(ctx.chunks), count):
        if number == stop_at and ctx.attempt == 1:
            await wait(NEVER)
        yield f"{number}@{ctx.attempt} "
        await ctx.heartbeat({"done": number + 1})
    if ctx.attempt <= fails:
        raise StepRetry("busy", "Not yet.")


@step("e2e.stream_thread", retry=Retry(2, [0.2]))
def stream_thread(ctx: BlockingContext, count: int, stop_at: int = -1) -> Iterator[str]:
    """The same in a thread"""
    tell(ctx)
    for number in range(len(ctx.chunks), count):
        if number == stop_at and ctx.attempt == 1:
            threading.Event().wait(NEVER)
        yield f"{number}@{ctx.attempt} "
        ctx.heartbeat({"done": number + 1})


@step("e2e.stream_slowly")
async def stream_slowly(ctx: StepContext, count: int, pause: float) -> AsyncIterator[str]:
    """Yield so many chunks in all, with a pause behind each"""
    tell(ctx)
    for number in range(len(ctx.chunks), count):
        yield f"{number}@{ctx.attempt} "
        await wait(pause)


@step("e2e.keep")
async def keep(ctx: StepContext, text: str) -> dict[str, Any]:
    """Keep two artifacts, and fail at the first attempt"""
    tell(ctx)
    kept = {"report": ctx.artifact("report", text), "lost": ctx.artifact(f"attempt-{ctx.attempt}", {"n": ctx.attempt})}
    if ctx.attempt == 1:
        raise StepRetry("busy", "Not yet.")
    return kept


@step("e2e.slow")
async def slow(ctx: StepContext, seconds: float) -> dict[str, int]:
    """Take so long at the first attempt"""
    tell(ctx)
    await wait(seconds if ctx.attempt == 1 else 0.0)
    return {"attempt": ctx.attempt}


@step("e2e.slow_thread")
def slow_thread(ctx: BlockingContext, seconds: float) -> dict[str, int]:
    """The same in a thread"""
    tell(ctx)
    threading.Event().wait(seconds if ctx.attempt == 1 else 0.0)
    return {"attempt": ctx.attempt}


@step("e2e.slow_process", isolation="process")
def slow_process(ctx: BlockingContext, seconds: float) -> dict[str, int]:
    """The same in a process"""
    tell(ctx)
    threading.Event().wait(seconds if ctx.attempt == 1 else 0.0)
    return {"attempt": ctx.attempt}


@step("e2e.blocking_loop")
async def blocking_loop(ctx: StepContext) -> dict[str, int]:
    """Block the event loop for ever at the first attempt"""
    tell(ctx)
    threading.Event().wait(NEVER if ctx.attempt == 1 else 0.0)
    return {"attempt": ctx.attempt}


# hostile ones: each must end in a code, and never take the engine or another step with it


class Strange:
    """Nothing that JSON has."""


class Evil(BaseException):
    """Beyond `except Exception`."""


@step("e2e.returns", retry=Retry(1))
async def returns(ctx: StepContext, what: str) -> Any:
    """Return what no handler may"""
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"deep": deep}
    given = {
        "object": {"it": Strange()},
        "list": [1, 2],
        "number": 7,
        "nan": {"it": float("nan")},
        "nul": {"it": "a\0b"},
        "surrogate": {"it": "\ud800"},
        "big_integer": {"it": 1 << 70},
        "key": {1: "it"},
        "bytes": {"it": b"it"},
        "deep": deep,
        "big": {"it": "x" * (10 << 20)},
        "outcome": StepResult.complete(outcome="nowhere"),
        "class": Strange(),
    }
    return cast("Awaitable[Any]", given[what])


@step("e2e.jumps", retry=Retry(1))
async def jumps(ctx: StepContext, to: Any) -> dict[str, Any]:
    """Name whatever it is told as the next step"""
    return {"_next_step": to, "seen": True}


@step("e2e.raises", retry=Retry(1))
async def raises(ctx: StepContext, what: str) -> None:
    """Raise what no handler should"""
    if what == "exit":
        sys.exit(3)
    given: dict[str, BaseException] = {
        "base": Evil("from beneath"),
        "interrupt": KeyboardInterrupt(),
        "generator_exit": GeneratorExit(),
        "failed": StepFailed("acme_refused", "Refused."),
        "text": ValueError("a\0b \ud800"),
        "long": ValueError("x" * (10 << 20)),
    }
    raise given[what]


@step("e2e.raises_in_thread", retry=Retry(1))
def raises_in_thread(ctx: BlockingContext, what: str) -> None:
    """The same in a thread"""
    if what == "exit":
        sys.exit(3)
    raise Evil("from beneath")


@step("e2e.dies_in_process", isolation="process", retry=Retry(1))
def dies_in_process(ctx: BlockingContext, code: int) -> None:
    """End its own process"""
    os._exit(code)


@step("e2e.never", retry=Retry(1))
async def never(ctx: StepContext) -> None:
    """Never come back"""
    await wait(NEVER)


@step("e2e.never_in_thread", retry=Retry(1))
def never_in_thread(ctx: BlockingContext) -> None:
    """Never come back, and hold a thread"""
    threading.Event().wait(NEVER)


@step("e2e.never_in_process", isolation="process", retry=Retry(1))
def never_in_process(ctx: BlockingContext) -> None:
    """Never come back, in a process"""
    threading.Event().wait(NEVER)


@step("e2e.stubborn", retry=Retry(1))
async def stubborn(ctx: StepContext) -> None:
    """Never come back, and not be cancelled either"""
    while True:
        try:
            await wait(NEVER)
        except BaseException:
            continue


@step("e2e.leaky", retry=Retry(1))
async def leaky(ctx: StepContext, key: Secret, how: str) -> dict[str, str]:
    """Say a secret wherever something can be said"""
    secret = str(key)
    if how == "output":
        return {"said": f"it is {secret}"}
    if how == "failed":
        raise StepFailed("acme_refused", f"refused with {secret}", key=secret)
    try:
        raise ValueError(secret)
    except ValueError as error:
        raise RuntimeError(f"https://user:{secret}@host") from error
