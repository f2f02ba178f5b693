"""What a handler's attempt may come to: a closed union."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, TypeAlias

from korak.errors import StepFailed
from korak.graphs import hygiene
from korak.model import Json, JsonObject
from korak.steps.waits import WaitSpec

NEXT = "next"
"""The outcome of a step that names no other."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A way out of a step: declared by `outcomes()`, or returned with the output that goes with it."""

    key: str
    output: JsonObject | None = None
    required: bool = field(default=True, kw_only=True)
    label: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a step is tried, the first attempt included, and how long is waited between; the last wait repeats."""

    max_attempts: int
    backoff: Sequence[Json | timedelta] = ()
    jitter: float = 0.1


class StepResult:
    """What an attempt came to. Made by the three constructors; immutable."""

    __slots__ = ()

    is_complete: ClassVar[bool] = False
    is_wait: ClassVar[bool] = False
    is_fail: ClassVar[bool] = False

    @staticmethod
    def complete(outcome: str = NEXT, output: JsonObject | None = None) -> Complete:
        """Done: follow the edge of `outcome`."""
        return Complete(outcome, {} if output is None else output)

    @staticmethod
    def wait(spec: WaitSpec, output: JsonObject | None = None) -> Wait:
        """Park until something of `spec` fires; `output` is kept for `resume()`."""
        return Wait(spec, {} if output is None else output)

    @staticmethod
    def fail(code: str, message: str | None = None) -> Fail:
        """Failed for good."""
        return Fail(code, message)


@dataclass(frozen=True, slots=True)
class Complete(StepResult):
    """Done: the edge of `outcome` is followed."""

    outcome: str = NEXT
    output: JsonObject = field(default_factory=dict)
    is_complete: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Wait(StepResult):
    """Parked until something of `spec` fires."""

    spec: WaitSpec
    output: JsonObject = field(default_factory=dict)
    is_wait: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Fail(StepResult):
    """Failed for good. A code of Korak's own is rendered with `params`, any other carries its message."""

    code: str
    message: str | None = None
    params: JsonObject = field(default_factory=dict)
    is_fail: ClassVar[bool] = True


Result: TypeAlias = Complete | Wait | Fail
"""The closed form of StepResult, for those who match on it."""

Returned: TypeAlias = StepResult | Outcome | JsonObject | None
"""What a handler may return: an object is the output of `next`, None an empty one."""


def read_result(returned: object, *, max_bytes: int | None = None) -> Result:
    """What a handler returned, as one of the three.

    Raises `invalid_output` for anything else, and for an output that isn't JSON or is over `max_bytes`.
    """
    result = _shape(returned)
    if isinstance(result, Fail):
        return result
    if issue := hygiene.check_json(result.output):
        raise StepFailed("invalid_output", pointer=issue.pointer, detail=issue.params.get("detail"))
    if max_bytes is not None and (size := hygiene.size(result.output)) > max_bytes:
        detail = f"it is {size} bytes, {max_bytes} at most: keep what is large elsewhere and return where it is"
        raise StepFailed("invalid_output", pointer="", detail=detail, size=size, limit=max_bytes)
    return result


def _shape(returned: object) -> Result:
    match returned:
        case Complete() | Wait() | Fail():
            return returned
        case None:
            return Complete()
        case Outcome(key, output):
            return Complete(key, {} if output is None else output)
        case dict():
            return Complete(output=returned)
        case _:
            kind = type(returned).__name__
            raise StepFailed("invalid_output", pointer="", detail=f"a step returns an object, not {kind}")
