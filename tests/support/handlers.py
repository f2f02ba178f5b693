"""Running a type's handler by hand, to the closed union that the core is told."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from korak.core.changes import Grant
from korak.core.facts import Raised
from korak.errors import StepError
from korak.model import JsonObject, StepRole
from korak.steps.children import Awaiting, Collecting, Starting
from korak.steps.contract import StepType
from korak.steps.results import Complete, read_result
from korak.steps.waits import Signal
from tests.support.plans import registry


@dataclass
class View:
    """As much of a context as these handlers read."""

    config: JsonObject
    attempt: int
    visit: int
    idempotency_key: str
    parked: JsonObject | None
    signal: Signal | None = None
    now: datetime = field(default_factory=lambda: at(0))
    timezone: str = "UTC"
    state: JsonObject = field(default_factory=dict)

    def output(self, node: str | None = None) -> JsonObject | None:
        return self.parked if node is None else None


def run(grant: Grant, *, is_raw: bool = False) -> Any:
    """What the handler of a granted step comes to: `resume` where a signal is stored with it, else `handle` (EX-5).

    With `is_raw` what it asks of other runs is given as it is.
    """
    step = grant.step
    kind = registry().get(step.node_type, step.type_version)
    assert kind is not None
    signal = None if step.resume_signal is None else Signal.from_json(step.resume_signal)
    config = grant.input if isinstance(grant.input, dict) else {}
    view = View(config, step.attempt, step.visit, step.idempotency_key, step.output, signal)
    try:
        if step.role is StepRole.CANCEL:
            kind.cancel(view)
            return Complete()
        returned = _stream(kind, view) if kind.streams else _call(kind, view)
        return returned if is_raw and isinstance(returned, (Starting, Awaiting, Collecting)) else read_result(returned)
    except StepError as error:
        after = error.after if isinstance(error.after, datetime) else None
        return Raised(error.code, error.message, error.params, is_retryable=error.is_retryable, after=after)


def _stream(kind: StepType, view: View) -> Any:
    chunks: list[str] = []
    yielding: Any = kind.handle(view)
    if not inspect.isasyncgen(yielding):
        return kind.complete(view, list(yielding))
    while True:
        try:
            anext(yielding).send(None)
        except StopIteration as given:
            chunks.append(given.value)
        except StopAsyncIteration:
            return kind.complete(view, chunks)


def _call(kind: StepType, view: View) -> Any:
    returned: Any = kind.handle(view) if view.signal is None else kind.resume(view, view.signal)
    if not inspect.iscoroutine(returned):
        return returned
    try:
        returned.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("a handler of these tests awaits nothing")


def at(seconds: float) -> datetime:
    """A time in these tests, by its seconds."""
    return datetime.fromtimestamp(1_770_000_000 + seconds, UTC)
