"""Steps as nobody should write them, and a few that are fine; in a module, so that a process can import them."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from datetime import timedelta
from typing import Any

from structlog.contextvars import get_contextvars

from korak import logs
from korak.errors import StepFailed, StepRetry
from korak.owners.context import get_owner
from korak.steps.contract import (
    BlockingContext,
    Complete,
    Outcome,
    Returned,
    Signal,
    StepContext,
    StepResult,
    StepType,
    WaitSpec,
)
from korak.steps.function import step
from korak.steps.markers import Secret

RELEASED = threading.Event()
"""Ends `stuck`."""


class Unspeakable(Exception):
    """Raises when its text is asked for."""

    def __str__(self) -> str:
        raise SystemExit("no text")


class Evil(Complete):
    """Does harm when it is looked at."""

    def __init__(self) -> None:
        pass

    @property
    def output(self) -> Any:
        raise KeyboardInterrupt("looked at")


@step("test.fine")
async def fine(ctx: StepContext, order: str = "7") -> dict[str, Any]:
    return {"order": order, "owner": get_owner().scope}


@step("test.exits")
async def exits(ctx: StepContext) -> dict[str, Any]:
    sys.exit(3)


@step("test.exits_below")
async def exits_below(ctx: StepContext) -> dict[str, Any]:
    async def below() -> None:
        sys.exit(3)

    await asyncio.create_task(below())
    return {}


@step("test.raises", outcomes=["next"])
async def raises(ctx: StepContext, what: str) -> dict[str, Any]:
    raise RAISED[what]


@step("test.cancels_itself")
async def cancels_itself(ctx: StepContext) -> dict[str, Any]:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    return {"still": "here"}


@step("test.cancels_itself_and_waits")
async def cancels_itself_and_waits(ctx: StepContext) -> dict[str, Any]:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()
    return {}


@step("test.never_returns")
async def never_returns(ctx: StepContext) -> dict[str, Any]:
    await asyncio.Event().wait()
    return {}


@step("test.clings")
async def clings(ctx: StepContext) -> dict[str, Any]:
    """Takes no for an answer once."""
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return {"cancelled": ctx.cancelled}
    return {}


@step("test.tells")
async def tells(ctx: StepContext, key: Secret) -> dict[str, Any]:
    raise RuntimeError(f"the key is {key}") from ValueError(f"caused by {key}")


@step("test.tells_in_output")
async def tells_in_output(ctx: StepContext, key: Secret) -> Outcome:
    return Outcome("next", {"key": key, key: [f"Bearer {key}"]})


@step("test.tells_in_failure")
async def tells_in_failure(ctx: StepContext, key: Secret) -> dict[str, Any]:
    raise StepFailed(f"bad_{key}", f"no {key}", key=key)


@step("test.logs")
async def says_in_logs(ctx: StepContext, key: Secret) -> dict[str, Any]:
    return {"line": logs.scrub(f"the key is {key}"), **get_contextvars()}


@step("test.threaded_logs")
def says_in_logs_of_a_thread(ctx: BlockingContext, key: Secret) -> dict[str, Any]:
    return {"line": logs.scrub(f"the key is {key}"), **get_contextvars()}


@step("test.threaded")
def threaded(ctx: BlockingContext, order: str = "7") -> dict[str, Any]:
    return {"order": order, "owner": get_owner().scope, "thread": threading.current_thread().name}


@step("test.threaded_exits")
def threaded_exits(ctx: BlockingContext) -> dict[str, Any]:
    sys.exit(3)


@step("test.stuck")
def stuck(ctx: BlockingContext) -> dict[str, Any]:
    RELEASED.wait()
    return {"cancelled": ctx.cancelled}


@step("test.asks", ability=None)
def asks(ctx: BlockingContext, ability: str) -> dict[str, Any]:
    ctx.authorize(ability)
    return {"allowed": ability}


@step("test.asks_on_the_loop")
async def asks_on_the_loop(ctx: StepContext, ability: str) -> dict[str, Any]:
    await ctx.authorize(ability)
    return {"allowed": ability}


@step("test.apart", isolation="process")
def apart(ctx: BlockingContext, order: str = "7") -> dict[str, Any]:
    return {
        "order": order,
        "owner": get_owner().scope,
        "pid": os.getpid(),
        "input": ctx.input,
        "state": ctx.state,
        "trigger": ctx.trigger,
        "said": [ctx.attempt, ctx.visit, ctx.idempotency_key, ctx.node, ctx.instance, ctx.definition, ctx.version],
        "now": ctx.now.isoformat(),
        "resolved": ctx.resolve({"ref": "input.order"}),
        "cancelled": ctx.cancelled,
    }


@step("test.dies", isolation="process")
def dies(ctx: BlockingContext) -> dict[str, Any]:
    os._exit(9)


@step("test.exits_apart", isolation="process")
def exits_apart(ctx: BlockingContext) -> dict[str, Any]:
    sys.exit(3)


@step("test.hangs_apart", isolation="process")
def hangs_apart(ctx: BlockingContext) -> dict[str, Any]:
    threading.Event().wait()
    return {}


@step("test.once_apart", isolation="process")
def once_apart(ctx: BlockingContext) -> dict[str, Any]:
    ctx.once("charge", lambda connection: None)
    return {}


@step("test.asks_apart", isolation="process")
def asks_apart(ctx: BlockingContext, ability: str) -> dict[str, Any]:
    ctx.authorize(ability)
    return {"allowed": ability}


@step("test.tells_apart", isolation="process")
def tells_apart(ctx: BlockingContext, key: Secret) -> dict[str, Any]:
    raise RuntimeError(f"the key is {key}")


@step("test.retries_apart", isolation="process")
def retries_apart(ctx: BlockingContext) -> dict[str, Any]:
    raise StepRetry("later", "not now", after=timedelta(hours=1))


class WaitsApart(StepType):
    """Parks in a process, and goes on in one."""

    key = "test.waits_apart"
    isolation = "process"

    def handle(self, ctx: BlockingContext) -> Returned:
        return StepResult.wait(WaitSpec.timer(ctx.now + timedelta(hours=1)).timeout("PT2H"), {"parked": True})

    def resume(self, ctx: BlockingContext, signal: Signal) -> Returned:
        return {"kind": signal.kind, "parked": ctx.output()}


class Lonely(StepType):
    """Can't be sent to a process."""

    key = "test.lonely"
    isolation = "process"

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def handle(self, ctx: BlockingContext) -> Returned:
        return {}


class Asking(StepType):
    """Needs an ability that depends on the run."""

    key = "test.asking"

    def ability_for(self, ctx: Any) -> str | None:
        return f"sign-{ctx.attempt}"

    async def handle(self, ctx: StepContext) -> Returned:
        return {"ran": True}

    async def cancel(self, ctx: StepContext) -> None:
        CALLS.append(("cancel", ctx.output()))


class Resuming(StepType):
    """Tells which of its methods was called."""

    key = "test.resuming"

    async def handle(self, ctx: StepContext) -> Returned:
        return {"method": "handle", "signal": ctx.signal is not None}

    async def resume(self, ctx: StepContext, signal: Signal) -> Returned:
        return {"method": "resume", "kind": signal.kind, "payload": signal.payload, "parked": ctx.output()}


CALLS: list[Any] = []

RAISED: dict[str, BaseException] = {
    "exit": SystemExit(3),
    "interrupt": KeyboardInterrupt(),
    "generator": GeneratorExit(),
    "cancel": asyncio.CancelledError("mine"),
    "stop": StopIteration(3),
    "unspeakable": Unspeakable(),
    "base": BaseException("base"),
    "group": BaseExceptionGroup("several", [ValueError("a"), SystemExit(1)]),
}
