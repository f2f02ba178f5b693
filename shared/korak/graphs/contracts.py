"""What the rest of Korak knows of a step type without its code: frozen at publish, and one day read from rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from korak.errors import Issue
from korak.model import Json, JsonObject


@dataclass(frozen=True, slots=True)
class OutcomeSpec:
    """One way out of a node. A required one must be connected."""

    key: str
    is_required: bool = True
    label: str | None = None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often an attempt that failed retryably is repeated, and when.

    `max_attempts` counts the first attempt (RT-2b). `backoff` is durations as written in the document, seconds or any
    other form; the last one repeats. `jitter` is a fraction, 0 to 1.
    """

    max_attempts: int
    backoff: tuple[Json, ...] = ()
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class TypeContract:
    """A step type as publish and the walker see it.

    `outcomes` may depend on the node's config. `is_pure` types read only the snapshot and are decided in the record of
    the step before. `validate` are the type's own semantic checks (`validate_config`). `secret_members` are the
    top-level config members in which a secret may stand. `cost` are the units that a completed step counts for.
    """

    key: str
    version: int
    label: str
    config_schema: JsonObject
    outcomes: Callable[[JsonObject], Sequence[OutcomeSpec]]
    output_schema: JsonObject | None = None
    has_side_effects: bool = True
    is_pure: bool = False
    can_fail: bool = True
    ability: str | None = None
    retry: RetryPolicy | None = None
    timeout: float | None = None
    queue: str | None = None
    max_output: int | None = None
    cost: int = 1
    supports_escalations: bool = False
    has_cancel_hook: bool = False
    waits: bool = False
    streams: bool = False
    secret_members: frozenset[str] = frozenset()
    description: str | None = None
    category: str = "custom"
    validate: Callable[[JsonObject, Scope], Sequence[Issue]] | None = field(default=None, compare=False)


class Scope(Protocol):
    """What a type's own checks may read of the graph around its node (spec 13.9)."""

    @property
    def node(self) -> str:
        """The id of the node that is checked."""
        ...

    @property
    def inputs(self) -> Mapping[str, Json]:
        """The trigger's declared inputs, name to schema."""
        ...

    def is_ancestor(self, node: str) -> bool:
        """Whether `node` runs before this one on every path."""
        ...


class Catalogue(Protocol):
    """Where types are looked up, by key and version (None: the newest)."""

    def get_contract(self, key: str, version: int | None = None) -> TypeContract | None:
        """The type's contract, or None where nobody has it."""
        ...

    def list_contracts(self) -> Sequence[TypeContract]:
        """Every type that is known, by key."""
        ...
