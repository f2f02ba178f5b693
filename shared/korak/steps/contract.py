"""The step contract: what one class says about a node type and how it does the work (spec 13)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Literal, TypeAlias

from korak.errors import Issue
from korak.graphs.contracts import OutcomeSpec, RetryPolicy, Scope, TypeContract
from korak.model import Json, JsonObject, SignalKind
from korak.steps.context import BlockingContext, StepContext, StepView
from korak.steps.results import NEXT, Complete, Fail, Outcome, Result, Retry, Returned, StepResult, Wait
from korak.steps.waits import TIMED_OUT, Signal, WaitItem, WaitSpec

__all__ = [
    "NEXT",
    "TIMED_OUT",
    "BlockingContext",
    "Complete",
    "Fail",
    "Isolation",
    "Outcome",
    "Result",
    "Retry",
    "Returned",
    "Signal",
    "StepContext",
    "StepResult",
    "StepType",
    "StepView",
    "Wait",
    "WaitItem",
    "WaitSpec",
]

Isolation: TypeAlias = Literal["async", "thread", "process"]
"""Where a handler runs: on the loop, in a thread, or in a process that can be killed."""

Handled: TypeAlias = Awaitable[Returned] | Returned | Iterator[str] | AsyncIterator[str]
"""What `handle` may give: a result, now or later, or chunks of text."""

SECRET_MARK = "x-korak-secret"
"""Marks the config members in which a secret may stand."""

OPEN_SCHEMA: JsonObject = {"type": "object"}
"""Takes any config."""

DEFAULT_OUTCOMES = (Outcome(NEXT),)


class StepType:
    """A node type: catalogue entry and handler in one class (ST-1).

    A subclass sets what is fixed as attributes and overrides the methods it needs; only `key` and `handle` are
    required. `handle`, `resume`, `cancel` and `simulate` are all `async def` or all `def`; a `def` runs in a thread or,
    with `isolation = "process"`, in a process that can be killed. What they return is awaited where it can be. A type
    keeps no state between calls, does not sleep or poll, and makes its effects idempotent on `ctx.idempotency_key`.

    A `handle` that yields streams: each text is stored as a chunk at once, and `complete` makes the output of them all.
    """

    key: str = ""
    version: int = 1
    label: str = ""
    description: str | None = None
    category: str = "custom"
    config_schema: JsonObject = OPEN_SCHEMA
    output_schema: JsonObject | None = None
    has_side_effects: bool = True
    ability: str | None = None
    retry: Retry | None = None
    supports_escalations: bool = False
    timeout: float | timedelta | None = None
    queue: str | None = None
    isolation: Literal["thread", "process"] = "thread"
    max_output: int | None = None
    cost: int = 1
    can_fail: bool = True
    is_pure: ClassVar[bool] = False

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """The ways out; may depend on the node's config as written in the document."""
        return DEFAULT_OUTCOMES

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """What is wrong with a config that fits the schema, by what it means; pointers are into the config."""
        return ()

    def ability_for(self, ctx: StepView) -> str | None:
        """The ability that this run needs."""
        return self.ability

    def handle(self, ctx: Any) -> Handled:
        """Do the work. `ctx` is a StepContext in an `async def`, a BlockingContext in a `def`."""
        raise NotImplementedError(f"{type(self).__name__} has no handle()")

    def complete(self, ctx: Any, chunks: Sequence[str]) -> Awaitable[Returned] | Returned:
        """What a step that streams comes to: it has all its chunks in order, those of earlier attempts first."""
        return {"text": "".join(chunks)}

    def resume(self, ctx: Any, signal: Signal) -> Awaitable[Returned] | Returned:
        """Go on after a wait (WT-15): a timer completes, a time limit leaves by its outcome, all else fails."""
        return resume_default(self.key, signal, ctx.output())

    def simulate(self, ctx: Any) -> Awaitable[Returned] | Returned:
        """What a dry run shows; pure. None: it only tells that the step would run."""
        return None

    def cancel(self, ctx: Any) -> Awaitable[None] | None:
        """Clean up after a cancel; idempotent, for it may be called twice (CN-5, CN-7)."""
        return None

    @property
    def has_cancel_hook(self) -> bool:
        """Whether there is something to clean up."""
        return type(self).cancel is not StepType.cancel

    @property
    def parks(self) -> bool:
        """Whether it waits for signals or events; it then has a `resume` of its own."""
        return type(self).resume is not StepType.resume

    @property
    def streams(self) -> bool:
        """Whether `handle` yields chunks."""
        return inspect.isgeneratorfunction(self.handle) or inspect.isasyncgenfunction(self.handle)

    @property
    def runs_in(self) -> Isolation:
        """On the loop where `handle` is `async def`, else where `isolation` says."""
        return "async" if is_async(self.handle) else self.isolation

    def contract(self) -> TypeContract:
        """What the rest of Korak knows of the type."""
        return TypeContract(
            key=self.key,
            version=self.version,
            label=self.label or self.key,
            description=self.description,
            category=self.category,
            config_schema=self.config_schema,
            outcomes=self._outcome_specs,
            output_schema=self.output_schema,
            has_side_effects=self.has_side_effects,
            is_pure=self.is_pure,
            can_fail=self.can_fail,
            ability=self.ability,
            retry=_policy(self.retry),
            timeout=_seconds(self.timeout),
            queue=self.queue,
            max_output=self.max_output,
            cost=self.cost,
            supports_escalations=self.supports_escalations,
            has_cancel_hook=self.has_cancel_hook,
            waits=self.parks,
            streams=self.streams,
            secret_members=find_secret_members(self.config_schema),
            validate=self.validate_config,
        )

    def _outcome_specs(self, config: JsonObject) -> Sequence[OutcomeSpec]:
        return tuple(OutcomeSpec(outcome.key, outcome.required, outcome.label) for outcome in self.outcomes(config))


def is_async(function: object) -> bool:
    """Whether a function belongs on the loop: a coroutine's, or one that yields there."""
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def resume_default(key: str, signal: Signal, output: JsonObject | None) -> Complete | Fail:
    """The rule of WT-15. The output that the step parked with is kept."""
    match signal.kind:
        case SignalKind.TIMER:
            return Complete(NEXT, output or {})
        case SignalKind.TIMEOUT:
            return Complete(signal.outcome or TIMED_OUT, output or {})
        case _:
            return Fail("resume_unsupported", params={"type": key, "kind": signal.kind.value})


def find_secret_members(schema: JsonObject) -> frozenset[str]:
    """The config members in which a secret may stand."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return frozenset()
    return frozenset(name for name, part in properties.items() if isinstance(part, dict) and part.get(SECRET_MARK))


def _policy(retry: Retry | None) -> RetryPolicy | None:
    if retry is None:
        return None
    return RetryPolicy(retry.max_attempts, tuple(_wait(pause) for pause in retry.backoff), retry.jitter)


def _wait(pause: Json | timedelta) -> Json:
    return pause.total_seconds() if isinstance(pause, timedelta) else pause


def _seconds(timeout: float | timedelta | None) -> float | None:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
