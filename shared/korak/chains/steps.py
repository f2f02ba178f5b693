"""The kinds of steps of a chain, as its methods have read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from korak.chains.handlers import Handler
from korak.model import Json, JsonObject

if TYPE_CHECKING:
    from korak.chains.builder import Chain


@dataclass(frozen=True, slots=True)
class Work:
    """One handler, whose output is merged into the state. `jumps` are names of steps, None for any.

    `flow` are the limits by key of the handlers, here and below.
    """

    name: str
    handler: Handler
    parameters: Mapping[str, Any] = field(default_factory=dict)
    jumps: tuple[str, ...] | None = ()
    flow: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Parallel:
    """Handlers that run at the same time, each in a branch of its own."""

    name: str
    handlers: tuple[Handler, ...]
    flow: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Each:
    """A handler for every item of a list.

    `quorum` is how many must succeed where the mode is that, `concurrency` how many run at a time, None for the usual.
    """

    name: str
    items: str
    handler: Handler
    result_key: str
    mode: str
    quorum: int | None
    reducer: Handler | None
    concurrency: int | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    flow: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Repeat:
    """A way back to an earlier step, taken while the condition holds."""

    name: str
    target: str
    condition: Json
    max_iterations: int


@dataclass(frozen=True, slots=True)
class Pause:
    """A delay."""

    name: str
    config: JsonObject


@dataclass(frozen=True, slots=True)
class Listen:
    """A wait for signals or for other runs. `timed_out` is the step that a time limit leads to."""

    name: str
    config: JsonObject
    result_key: str | None
    timed_out: str | None = None
    kind: str = "wait"


@dataclass(frozen=True, slots=True)
class Start:
    """Other workflows that are started: by chains, as they were when they were taken, or by the key of a workflow."""

    name: str
    kind: str
    config: JsonObject
    child: Chain | None
    label: str | None = None


Step: TypeAlias = Work | Parallel | Each | Repeat | Pause | Listen | Start


def list_handlers(step: Step) -> tuple[Handler, ...]:
    """The handlers that a step runs."""
    match step:
        case Work():
            return (step.handler,)
        case Parallel():
            return step.handlers
        case Each():
            return (step.handler,) if step.reducer is None else (step.handler, step.reducer)
        case Repeat() | Pause() | Listen() | Start():
            return ()
