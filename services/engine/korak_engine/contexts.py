"""What a handler gets to see and do: the two faces of the step context, over the snapshot of its claim."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any, TypeVar, cast

import orjson

from korak.core.roots import get_roots
from korak.graphs.forms import ObjectValue
from korak.graphs.plans import PlannedNode
from korak.graphs.values import compile_value
from korak.model import APP_WIDE, Json, JsonObject
from korak.owners.authorizer import Authorizer
from korak.steps.artifacts import Made, make
from korak.steps.secrets import Secrets
from korak.steps.waits import Signal
from korak_engine import authorizing
from korak_engine.effects import Effects
from korak_engine.keeping import Keeper
from korak_engine.nesting import Nesting
from korak_engine.work import Work

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Means:
    """What all contexts of an engine share. `revealed` of a context are the secrets that its handler has seen."""

    effects: Effects
    secrets: Secrets
    authorizer: Authorizer
    keeper: Keeper = field(default_factory=Keeper)
    nesting: Nesting | None = None


class View:
    """What both faces can read. What it gives is the handler's own: changing it changes nothing."""

    def __init__(self, work: Work, means: Means, signal: Signal | None, revealed: set[str]) -> None:
        self._work = work
        self._means = means
        self._signal = signal
        self._revealed = revealed

    @property
    def attempt(self) -> int:
        """The number of this attempt at this visit, from 1."""
        return self._work.step.attempt

    @property
    def visit(self) -> int:
        """How many times the instance has entered this node, this time included."""
        return self._work.step.visit

    @property
    def idempotency_key(self) -> str:
        """The same for every attempt of this visit, and for no other."""
        return self._work.step.idempotency_key

    @property
    def node(self) -> str:
        """The id of the node."""
        return self._work.step.node_id

    @property
    def instance(self) -> str:
        """The instance's ULID."""
        return self._work.snapshot.instance.ulid

    @property
    def definition(self) -> str:
        """The key of the definition."""
        return self._work.snapshot.plan.key

    @property
    def version(self) -> int:
        """The number of the definition's version."""
        return self._work.version

    @property
    def owner(self) -> str | None:
        """Whose instance it is; None for an app-wide one."""
        scope = self._work.snapshot.instance.owner_scope
        return None if scope == APP_WIDE else scope

    @property
    def subject(self) -> Any:
        """What the instance is about; None without one."""
        return None

    @cached_property
    def config(self) -> JsonObject:
        """The node's config, references resolved."""
        return _copy_object(self._work.input)

    @cached_property
    def input(self) -> JsonObject:
        """What the instance was started with."""
        return _copy_object(self._roots["input"])

    @cached_property
    def state(self) -> JsonObject:
        """The public state; in a compensation as it was after the step that it undoes."""
        return _copy_object(self._roots["state"])

    @cached_property
    def trigger(self) -> JsonObject:
        """How the instance was started."""
        return _copy_object(self._roots["trigger"])

    @property
    def now(self) -> datetime:
        """The time of the claim, UTC."""
        step = self._work.step
        return step.claimed_at or step.created_at

    @property
    def timezone(self) -> str:
        """The name of the instance's time zone."""
        return self._work.snapshot.plan.settings.timezone

    @property
    def signal(self) -> Signal | None:
        """What woke the step; None in `handle()`."""
        return self._signal

    @property
    def simulating(self) -> bool:
        """Never: a dry run doesn't come to an engine."""
        return False

    @property
    def cancelled(self) -> bool:
        """Whether nothing that is returned will count any more."""
        return self._work.is_cancelled or self._work.is_settled

    @property
    def chunks(self) -> list[str]:
        """The chunks that are stored for this visit so far."""
        leaving = self._work.leaving
        return [] if leaving is None else list(leaving.chunks)

    def artifact(
        self, key: str, content: Any, kind: str | None = None, metadata: JsonObject | None = None
    ) -> JsonObject:
        """Leave something under a name with the run; a reference to it. Raises `invalid_output`."""
        limit = self._means.keeper.limits.max_artifact_bytes
        return self.keep(make(key, content, kind=kind, metadata=metadata, limit=limit, hidden=self._revealed))

    def keep(self, made: Made) -> JsonObject:
        """Leave an artifact that is checked."""
        return self._means.keeper.keep(self._work, made)

    def output(self, node: str | None = None) -> JsonObject | None:
        """The output of a node's newest ended visit; without a node what this visit parked with."""
        if node is None:
            return _copy_output(self._work.step.output)
        ended = self._roots["steps"].get(node)
        return None if ended is None else _copy_output(ended.get("output"))

    def resolve(self, value: Json) -> Json:
        """A value of the document's forms, resolved now."""
        return _copy(compile_value(value).resolve(self._roots))

    def reveal(self, member: str) -> Json:
        """The config member with its secrets, from the document itself; None where the node hasn't got it."""
        config = get_node(self._work).config
        if not isinstance(config, ObjectValue):
            literal = cast("JsonObject", config.resolve({}))
            return _copy(literal.get(member))
        for name, value in config.members:
            if name == member:
                return _copy(value.reveal(self._roots, self._reveal))
        return None

    def _reveal(self, name: str) -> str:
        secret = self._means.secrets.get(name, self._work.snapshot.instance.owner_scope)
        self._revealed.add(secret)
        return secret

    @cached_property
    def _roots(self) -> dict[str, Any]:
        snapshot, step = self._work.snapshot, self._work.step
        undone = snapshot.compensations.get(step.hook_order or 0)
        if undone is not None:
            return {**get_roots(snapshot, snapshot.scopes, self.now), "state": undone.state or {}}
        return get_roots(snapshot, snapshot.scopes, self.now, scope_id=step.scope_id)


class AsyncContext(View):
    """The face of an `async def` handler."""

    async def authorize(self, ability: str, *args: Json) -> None:
        """Ask the authorizer (AU-12). Raises `authorization_denied`."""
        await authorizing.authorize(self._means.authorizer, self._work, ability, args)

    async def once(self, name: str, effect: Callable[[Any], Awaitable[Json]]) -> Json:
        """Run `effect(connection)` once a visit, or give what it returned."""
        return await self._means.effects.once(self._work, name, effect)

    async def recall(self, name: str) -> Json:
        """What `once(name)` stored in this visit."""
        return await self._means.effects.recall(self._work, name)

    async def heartbeat(self, progress: Json = None) -> None:
        """Tell that the step is alive, and how far it is."""
        self._means.keeper.beat(self._work, progress, self._revealed)

    async def store_chunk(self, text: object) -> None:
        """Store the next chunk of the stream."""
        await self._means.keeper.append(self._work, text, self._revealed)


class ThreadContext(View):
    """The face of a `def` handler: what must be awaited is done on the loop, while its thread waits."""

    def __init__(
        self,
        work: Work,
        means: Means,
        signal: Signal | None,
        revealed: set[str],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(work, means, signal, revealed)
        self._loop = loop

    def authorize(self, ability: str, *args: Json) -> None:
        """Ask the authorizer (AU-12). Raises `authorization_denied`."""
        asked = authorizing.authorize(self._means.authorizer, self._work, ability, args)
        asyncio.run_coroutine_threadsafe(asked, self._loop).result()

    def once(self, name: str, effect: Callable[[Any], Json]) -> Json:
        """Run `effect(connection)` once a visit, or give what it returned."""
        return self._means.effects.once_blocking(self._work, name, effect)

    def recall(self, name: str) -> Json:
        """What `once(name)` stored in this visit."""
        return self._means.effects.recall_blocking(self._work, name)

    def heartbeat(self, progress: Json = None) -> None:
        """Tell that the step is alive, and how far it is."""
        self._means.keeper.beat(self._work, progress, self._revealed)

    def store_chunk(self, text: object) -> None:
        """Store the next chunk of the stream."""
        stored = self._means.keeper.append(self._work, text, self._revealed)
        asyncio.run_coroutine_threadsafe(stored, self._loop).result()


def get_node(work: Work) -> PlannedNode:
    """The node that the step is a visit of, or the hook that it runs."""
    node = work.snapshot.plan.find(work.step.node_id, work.step.role)
    assert node is not None, "a claimed step has a node"
    return node


def _copy(value: Json) -> Json:
    if isinstance(value, (dict, list)):
        copied: Json = orjson.loads(orjson.dumps(value))
        return copied
    return value


def _copy_object(value: Json) -> JsonObject:
    copied = _copy(value)
    return copied if isinstance(copied, dict) else {}


def _copy_output(output: Json) -> JsonObject | None:
    return None if output is None else _copy_object(output)
