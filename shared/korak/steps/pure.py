"""Types that read only the snapshot: they are decided in the record of the step before, and have no handler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeAlias, TypeVar

from korak.errors import Issue, KorakError
from korak.graphs.paths import MISSING, Malformed, Missing
from korak.model import Json, JsonObject
from korak.steps.contract import StepType, resume_default
from korak.steps.results import NEXT, Complete, Fail
from korak.steps.waits import Signal, WaitSpec

__all__ = [
    "MISSING",
    "Completed",
    "Entry",
    "Failed",
    "LoopState",
    "Opened",
    "Parked",
    "PureNode",
    "PureResult",
    "PureType",
]

Program = TypeVar("Program")


class PureNode(Protocol):
    """What a pure type needs of its node: a PlannedNode has it."""

    id: str
    raw: JsonObject
    program: object


@dataclass(frozen=True, slots=True)
class LoopState:
    """A loop's own bookkeeping between entries: how often its body was entered, and the item it is at."""

    count: int
    item: Json = None

    @property
    def index(self) -> int:
        """The number of the round, from 0."""
        return self.count - 1

    def to_json(self) -> JsonObject:
        """As it is stored; `loops.<id>` in paths."""
        return {"index": self.index, "item": self.item, "count": self.count}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> LoopState:
        """Read back what `to_json` wrote."""
        return cls(stored["count"], stored.get("item"))


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry into a pure node, or its waking: all that it may read.

    `loop` is the node's own bookkeeping in this scope. `output` is what this visit parked with, when it is woken.
    `branches` tells how many the node has.
    """

    node: PureNode
    roots: Mapping[str, Any]
    now: datetime
    timezone: str = "UTC"
    visit: int = 1
    loop: LoopState | None = None
    output: JsonObject | None = None
    branches: int = 0


@dataclass(frozen=True, slots=True)
class Completed:
    """The node is done.

    `state_patch` replaces top-level keys of the scope's state. `loop` is the bookkeeping to keep for the next entry,
    None to forget it. With `ends` no edge is followed: the body or the instance ends with `result` (MISSING: the last
    output); `terminates` ends the instance from inside a body too.
    """

    outcome: str = NEXT
    output: JsonObject = field(default_factory=dict)
    state_patch: JsonObject | None = None
    loop: LoopState | None = None
    result: Json | Missing = MISSING
    ends: bool = False
    terminates: bool = False


@dataclass(frozen=True, slots=True)
class Parked:
    """The node waits until something of `spec` fires."""

    spec: WaitSpec
    output: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed:
    """The node failed, for good unless `is_retryable`."""

    code: str
    params: Mapping[str, Json] = field(default_factory=dict)
    message: str | None = None
    is_retryable: bool = False


@dataclass(frozen=True, slots=True)
class Opened:
    """The node's bodies begin, `total` of them; it is done by `mode` and `quorum`, and waits meanwhile.

    At most `concurrency` run at a time (None: as many as the engine lets). `input` is what is kept with the visit.
    What fires of `spec` meanwhile wakes the node itself.
    """

    total: int
    mode: Literal["all", "first_success", "quorum"] = "all"
    quorum: int = 1
    concurrency: int | None = None
    input: JsonObject | None = None
    spec: WaitSpec | None = None


PureResult: TypeAlias = Completed | Parked | Opened | Failed


class PureType(StepType, Generic[Program]):
    """A type whose entry is a pure function of the snapshot.

    A subclass compiles the config, once a plan, and says what an entry comes to. What its values and conditions raise
    fails the node with their code.
    """

    category = "flow"
    has_side_effects = False
    is_pure: ClassVar[bool] = True

    def compile(self, config: JsonObject) -> Program:
        """The form of the config that runs. Raises Malformed."""
        raise NotImplementedError

    def begin(self, program: Program, entry: Entry) -> PureResult:
        """What an entry comes to."""
        raise NotImplementedError

    def proceed(self, program: Program, entry: Entry, signal: Signal) -> PureResult:
        """What a parked visit comes to when something has fired: the rule of WT-15 unless the type has its own."""
        result = resume_default(self.key, signal, entry.output)
        match result:
            case Complete(outcome, output):
                return Completed(outcome, output)
            case Fail(code, message, params):
                return Failed(code, params, message)

    def enter(self, entry: Entry) -> PureResult:
        """Enter the node."""
        try:
            return self.begin(self._program(entry.node), entry)
        except KorakError as error:
            return _failed(error)

    def resume_pure(self, entry: Entry, signal: Signal) -> PureResult:
        """Wake a parked visit."""
        try:
            return self.proceed(self._program(entry.node), entry, signal)
        except KorakError as error:
            return _failed(error)

    def _program(self, node: PureNode) -> Program:
        if node.program is None:
            node.program = self._compile(node.raw)
        return node.program  # type: ignore[return-value]  # the slot is this type's alone

    def _compile(self, config: JsonObject) -> Program:
        try:
            return self.compile(config)
        except (LookupError, TypeError, ValueError) as error:  # what publish checked was edited by hand since
            raise Malformed(Issue("invalid_graph", params={"detail": f"the config of {self.key}"})) from error


def _failed(error: KorakError) -> Failed:
    if isinstance(error, Malformed):
        return Failed("invalid_graph", {"detail": str(error.params.get("detail", error.message))})
    return Failed(error.code, error.params, error.message)
