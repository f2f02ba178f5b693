"""Calling a step type's method, here or in another process."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from korak.steps.contract import StepType
from korak.steps.waits import Signal
from korak_engine.streaming import stream, stream_blocking

Method: TypeAlias = Literal["handle", "resume", "cancel"]


def call(kind: StepType, method: Method, ctx: Any, signal: Signal | None) -> object:
    """What the method returns: its result, or an awaitable of it."""
    match method:
        case "cancel":
            return kind.cancel(ctx)
        case "resume" if signal is not None:
            return kind.resume(ctx, signal)
        case _ if kind.streams and kind.runs_in != "async":
            return stream_blocking(kind, ctx)
        case _ if kind.streams:
            return stream(kind, ctx)
        case _:
            return kind.handle(ctx)
