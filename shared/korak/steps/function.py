"""The @step decorator: a function is enough for most steps."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import Any, Literal, TypeVar, cast

from korak.errors import InvalidStepType
from korak.model import JsonObject
from korak.steps.contract import Handled, Isolation, Outcome, Retry, Returned, Signal, StepType, is_async
from korak.steps.signature import Signature, list_accepted, read_signature

Function = TypeVar("Function", bound=Callable[..., Any])
Hook = Callable[..., Any] | None

ATTRIBUTE = "step_type"
"""Where a decorated function carries its type."""


def step(
    key: str,
    *,
    version: int = 1,
    outcomes: Sequence[str | Outcome] = ("next",),
    side_effects: bool = True,
    ability: str | None = None,
    retry: Retry | None = None,
    timeout: float | timedelta | None = None,
    queue: str | None = None,
    escalations: bool = False,
    resume: Hook = None,
    complete: Hook = None,
    on_cancel: Hook = None,
    simulate: Hook = None,
    isolation: Literal["thread", "process"] = "thread",
    max_output: int | None = None,
    cost: int = 1,
) -> Callable[[Function], Function]:
    """Make a function a step type; it stays a function.

    The context comes first, then the resolved config as keyword arguments. Annotations give the config's schema, the
    return annotation the output's, the docstring's first line the label. `resume(ctx, signal, ...)`,
    `on_cancel(ctx, ...)` and `simulate(ctx, ...)` take those of the config's members that they name. A `def` runs in a
    thread or, with `isolation="process"`, in a process that can be killed. A function that yields text streams; what it
    comes to is made by `complete(ctx, chunks, ...)`, else it is `{"text": ...}`. `cost` are the units that a completed
    step counts for in `limits.max_cost_units`. Raises InvalidStepType.
    """

    def decorate(function: Function) -> Function:
        hooks = Hooks(resume, on_cancel, simulate, complete)
        made = FunctionStep(function, hooks, isolation)
        made.key, made.version, made.ability, made.retry = key, version, ability, retry
        made.has_side_effects, made.supports_escalations = side_effects, escalations
        made.timeout, made.queue, made.max_output, made.cost = timeout, queue, max_output, cost
        made.declared = tuple(Outcome(each) if isinstance(each, str) else each for each in outcomes)
        setattr(function, ATTRIBUTE, made)
        return function

    return decorate


def get_step_type(function: object) -> FunctionStep | None:
    """The type that a decorated function carries."""
    found = getattr(function, ATTRIBUTE, None)
    return found if isinstance(found, FunctionStep) else None


@dataclass(frozen=True, slots=True)
class Hooks:
    """The functions beside the main one."""

    resume: Hook = None
    cancel: Hook = None
    simulate: Hook = None
    complete: Hook = None


class FunctionStep(StepType):
    """A step type made of functions."""

    declared: Sequence[Outcome] = ()

    def __init__(self, function: Callable[..., Any], hooks: Hooks, isolation: Literal["thread", "process"]) -> None:
        self.function = function
        self.signature: Signature = read_signature(function, complete=hooks.complete)
        self.config_schema: JsonObject = self.signature.config_schema
        self.output_schema: JsonObject | None = self.signature.output_schema
        label, description = _read_docstring(function)
        self.label: str = label
        self.description: str | None = description
        self.is_async: bool = is_async(function)
        self._isolation = isolation
        self._hooks = hooks
        self._accepted = {
            "resume": self._accept(hooks.resume, 2),
            "cancel": self._accept(hooks.cancel, 1),
            "simulate": self._accept(hooks.simulate, 1),
            "complete": self._accept_complete(hooks.complete),
        }

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str, str]]:
        return load_step, (self.function.__module__, self.function.__qualname__)

    @property
    def has_cancel_hook(self) -> bool:
        """Whether `on_cancel` was given."""
        return self._hooks.cancel is not None

    @property
    def parks(self) -> bool:
        """Whether `resume` was given."""
        return self._hooks.resume is not None

    @property
    def streams(self) -> bool:
        """Whether the function yields chunks."""
        return self.signature.streams

    @property
    def runs_in(self) -> Isolation:
        """On the loop where the function is `async def`, else where `isolation` says."""
        return "async" if self.is_async else self._isolation

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """Those that the decorator names."""
        return self.declared

    def handle(self, ctx: Any) -> Handled:
        """Call the function."""
        if self.streams:
            return cast("Handled", self.function(ctx, **self.signature.read_arguments(ctx)))
        return self._run(self.function, (ctx,), None)

    def complete(self, ctx: Any, chunks: Sequence[str]) -> Awaitable[Returned] | Returned:
        """Call `complete`, or join the chunks where there is none."""
        if self._hooks.complete is None:
            return super().complete(ctx, chunks)
        return self._run(self._hooks.complete, (ctx, chunks), self._accepted["complete"])

    def resume(self, ctx: Any, signal: Signal) -> Awaitable[Returned] | Returned:
        """Call `resume`, or go by WT-15 where there is none."""
        if self._hooks.resume is None:
            return super().resume(ctx, signal)
        return self._run(self._hooks.resume, (ctx, signal), self._accepted["resume"])

    def simulate(self, ctx: Any) -> Awaitable[Returned] | Returned:
        """Call `simulate`."""
        if self._hooks.simulate is None:
            return None
        return self._run(self._hooks.simulate, (ctx,), self._accepted["simulate"])

    def cancel(self, ctx: Any) -> Awaitable[None] | None:
        """Call `on_cancel`."""
        if self._hooks.cancel is None:
            return None
        return cast("Awaitable[None] | None", self._run(self._hooks.cancel, (ctx,), self._accepted["cancel"]))

    def _run(
        self, function: Callable[..., Any], leading: tuple[Any, ...], accepted: frozenset[str] | None
    ) -> Awaitable[Returned] | Returned:
        if inspect.iscoroutinefunction(function):
            return self._run_async(function, leading, accepted)
        arguments = self.signature.read_arguments(leading[0], accepted)
        return cast("Returned", self.signature.convert(function(*leading, **arguments)))

    async def _run_async(
        self, function: Callable[..., Any], leading: tuple[Any, ...], accepted: frozenset[str] | None
    ) -> Returned:
        arguments = self.signature.read_arguments(leading[0], accepted)
        return cast("Returned", self.signature.convert(await function(*leading, **arguments)))

    def _accept(self, hook: Hook, leading: int) -> frozenset[str] | None:
        if hook is None:
            return None
        if inspect.iscoroutinefunction(hook) is not self.is_async:
            name = hook.__qualname__
            raise InvalidStepType(message=f"{self.function.__qualname__} and {name} must both be async, or neither")
        return list_accepted(hook, leading, self.signature)

    def _accept_complete(self, hook: Hook) -> frozenset[str] | None:
        """A plain function may complete what streams on the loop, as it only puts chunks together."""
        if hook is None:
            return None
        name, where = hook.__qualname__, self.function.__qualname__
        if not self.streams:
            raise InvalidStepType(message=f"{name} completes what streams, and {where} yields nothing")
        if is_async(hook) and not self.is_async:
            raise InvalidStepType(message=f"{where} and {name} must both be async, or {name} not")
        return list_accepted(hook, 2, self.signature)


def load_step(module: str, name: str) -> FunctionStep:
    """The type of a decorated function in another process."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    made = get_step_type(found)
    if made is None:
        raise InvalidStepType(message=f"{module}.{name} is no step function")
    return made


def _read_docstring(function: Callable[..., Any]) -> tuple[str, str | None]:
    first, _, rest = (inspect.getdoc(function) or "").partition("\n")
    name = function.__name__.strip("_").replace("_", " ")
    return first.strip().rstrip(".") or name[:1].upper() + name[1:], rest.strip() or None
