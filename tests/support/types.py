"""Step types for tests of the core: each does one thing that a type can do, and nothing by chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from korak.errors import StepFailed, StepRetry
from korak.model import JsonObject, SignalKind
from korak.steps.contract import Outcome, Retry, Returned, Signal, StepResult, StepType, StepView, WaitSpec
from korak.steps.function import step
from korak.steps.registry import Registry


@step("test.price")
def price(ctx: Any, order: str, currency: str = "EUR") -> dict[str, Any]:
    """Price an order."""
    return {"order": order, "currency": currency}


class Plain(StepType):
    """Completes at once, with what it was given."""

    key = "test.ok"

    def handle(self, ctx: StepView) -> Returned:
        return {"value": ctx.config.get("value"), "visit": ctx.visit}


class Flaky(StepType):
    """Fails retryably as often as its config says, then completes; or for good where it says so."""

    key = "test.flaky"
    retry = Retry(4, [5, 20], jitter=0.1)

    def handle(self, ctx: StepView) -> Returned:
        if ctx.config.get("for_good"):
            raise StepFailed("test.refused", "no")
        if ctx.attempt <= int(str(ctx.config.get("times", 1))):
            raise StepRetry("test.flaky", "not yet")
        return {"attempt": ctx.attempt}


class Fork(StepType):
    """Leaves by the way that its config names."""

    key = "test.fork"

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        return (Outcome("yes"), Outcome("no"), Outcome("maybe", required=False))

    def handle(self, ctx: StepView) -> Returned:
        return Outcome(str(ctx.config.get("way", "yes")), {"way": ctx.config.get("way", "yes")})


class Nap(StepType):
    """Parks on a timer and goes by the default rule of WT-15."""

    key = "test.nap"

    def handle(self, ctx: StepView) -> Returned:
        return StepResult.wait(WaitSpec.timer(ctx.config.get("seconds", 60)), {"slept": True})


class Ask(StepType):
    """Parks on an event or a signal, with a time limit; probed where its config says so; cleans up after a cancel.

    A probe finds nothing and parks again. Config: `event` or `signal`, `match`, `timeout`, `probe`, `fails`.
    """

    key = "test.ask"
    has_side_effects = True

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        return (Outcome("next"), Outcome("timed_out", required=False))

    def handle(self, ctx: StepView) -> Returned:
        return StepResult.wait(get_spec(ctx.config, is_first=True), {"asked": ctx.attempt})

    def resume(self, ctx: StepView, signal: Signal) -> Returned:
        if ctx.attempt <= int(str(ctx.config.get("fails", 0))):
            raise StepRetry("test.flaky", "not yet")
        match signal.kind:
            case SignalKind.PROBE:
                return StepResult.wait(get_spec(ctx.config, is_first=False), {"asked": ctx.attempt})
            case SignalKind.TIMEOUT:
                return Outcome(signal.outcome or "timed_out", {"kind": "timeout"})
            case _:
                return {"kind": signal.kind.value, "payload": signal.payload}

    def cancel(self, ctx: StepView) -> None:
        """Take back what was asked."""


def get_spec(config: JsonObject, *, is_first: bool) -> WaitSpec:
    """What a config asks to wait for."""
    match, names = config.get("match"), config.get("signals")
    given = match if isinstance(match, dict) else None
    if "event" in config:
        spec = WaitSpec.event(str(config["event"]), given)
    elif isinstance(names, list):
        spec = WaitSpec.signals([str(name) for name in names], "all", given)
    else:
        spec = WaitSpec.signal(str(config.get("signal", "go")), given)
    if "timeout" in config:
        spec = spec.timeout(config["timeout"])
    return spec.probe() if config.get("probe") and is_first else spec


def get_registry() -> Registry:
    """The built-in types and these."""
    registry = Registry()
    for kind in (price, Plain, Flaky, Fork, Nap, Ask):
        registry.add(kind)
    return registry
