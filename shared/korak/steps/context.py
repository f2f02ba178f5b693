"""What a handler sees of its step and may do in it. The engine implements it, with an async and a blocking face."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Protocol

from korak.model import Json, JsonObject
from korak.steps.waits import Signal


class StepView(Protocol):
    """What both faces can read. Nothing here waits."""

    @property
    def attempt(self) -> int:
        """The number of this attempt at this visit, from 1."""
        ...

    @property
    def visit(self) -> int:
        """How many times the instance has entered this node, this time included."""
        ...

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this visit, and for no other: hand it to what the step calls."""
        ...

    @property
    def node(self) -> str:
        """The id of the node."""
        ...

    @property
    def instance(self) -> str:
        """The instance's ULID."""
        ...

    @property
    def definition(self) -> str:
        """The key of the definition."""
        ...

    @property
    def version(self) -> int:
        """The number of the definition's version that the instance is pinned to."""
        ...

    @property
    def owner(self) -> str | None:
        """Whose instance it is; None for an app-wide one."""
        ...

    @property
    def subject(self) -> Any:
        """What the instance is about, loaded in the owner's context; None without one."""
        ...

    @property
    def config(self) -> JsonObject:
        """The node's config, references resolved and checked. Secrets stand in it as references."""
        ...

    @property
    def input(self) -> JsonObject:
        """What the instance was started with."""
        ...

    @property
    def state(self) -> JsonObject:
        """The public state. Changing it changes nothing: return an output and `save` it."""
        ...

    @property
    def trigger(self) -> JsonObject:
        """How the instance was started."""
        ...

    @property
    def now(self) -> datetime:
        """The time of the claim, UTC."""
        ...

    @property
    def timezone(self) -> str:
        """The name of the instance's time zone."""
        ...

    @property
    def signal(self) -> Signal | None:
        """What woke the step; None in `handle()`."""
        ...

    @property
    def simulating(self) -> bool:
        """Whether this is a dry run."""
        ...

    @property
    def cancelled(self) -> bool:
        """Whether the instance was cancelled or the claim lost meanwhile: nothing that is returned will count."""
        ...

    @property
    def chunks(self) -> list[str]:
        """The chunks that are stored for this visit so far, in order, those of earlier attempts first."""
        ...

    def output(self, node: str | None = None) -> JsonObject | None:
        """The output of a node's newest ended visit; without a node what this visit parked with."""
        ...

    def resolve(self, value: Json) -> Json:
        """A value of the document's forms (a reference, an expression, a template) resolved now."""
        ...

    def reveal(self, member: str) -> Json:
        """The config member `member` with its secrets in it, for the call that needs them and nothing else.

        It is resolved from the document itself, never from data, so that an input can't name a secret. What was
        revealed is scrubbed from the attempt's errors and output. Raises `secret_missing`.
        """
        ...

    def artifact(
        self, key: str, content: Any, kind: str | None = None, metadata: JsonObject | None = None
    ) -> JsonObject:
        """Leave something under a name with the run, beside its state; a reference to put into the output.

        It is written with the step's record: an attempt that fails leaves none. A key is there once a run, the newer
        content replaces the older. `kind` is `json`, `text` or `bytes`, by the content where it isn't given. Raises
        `invalid_output` for what can't be stored or is too large.
        """
        ...


class StepContext(StepView, Protocol):
    """What an `async def` handler gets. A `def` handler gets a `BlockingContext`, which has the same names."""

    async def authorize(self, ability: str, *args: Json) -> None:
        """Ask the authorizer; a denial fails the step for good as `authorization_denied` (AU-12)."""
        ...

    async def once(self, name: str, effect: Callable[[Any], Awaitable[Json]]) -> Json:
        """Run `effect(connection)` in a transaction that stores its result, or give the stored one: once a visit."""
        ...

    async def recall(self, name: str) -> Json:
        """What `once(name)` stored in this visit; None where it didn't run."""
        ...

    async def heartbeat(self, progress: Json = None) -> None:
        """Tell that the step is alive and how far it is; shown within a second, of several the last one.

        Without progress the last one stays. The attempt's time limit holds all the same. Raises `stale_attempt` once
        nothing that the attempt comes to will count.
        """
        ...


class BlockingContext(StepView, Protocol):
    """What a `def` handler gets: the same, and its calls block."""

    def authorize(self, ability: str, *args: Json) -> None:
        """Ask the authorizer; a denial fails the step for good as `authorization_denied` (AU-12)."""
        ...

    def once(self, name: str, effect: Callable[[Any], Json]) -> Json:
        """Run `effect(connection)` in a transaction that stores its result, or give the stored one: once a visit."""
        ...

    def recall(self, name: str) -> Json:
        """What `once(name)` stored in this visit; None where it didn't run."""
        ...

    def heartbeat(self, progress: Json = None) -> None:
        """Tell that the step is alive and how far it is; shown within a second, of several the last one."""
        ...
