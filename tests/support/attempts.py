"""Attempts as an engine holds them after a claim, made by hand around a real plan, and the handlers that run them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from korak import config
from korak.clock import Clock
from korak.core.facts import HandlerResult
from korak.core.roots import get_roots
from korak.core.rows import Instance, StepRun
from korak.core.snapshot import Policy, Snapshot
from korak.graphs.builder import graph
from korak.graphs.freezing import freeze
from korak.graphs.planning import build
from korak.model import APP_WIDE, ActorMode, JsonObject, StepRole, StepStatus, TriggerKind
from korak.owners.authorizer import Authorizer, DefaultAuthorizer
from korak.steps.contract import Signal, StepType
from korak.steps.registry import Registry
from korak.steps.secrets import Secrets
from korak_engine.contexts import Means
from korak_engine.effects import Effects
from korak_engine.handlers import Handlers
from korak_engine.keeping import Keeper
from korak_engine.work import Work

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
ULID = "01J0000000000000000000000A"
TOKEN = "01J0000000000000000000000T"
NOWHERE = config.Database(url="postgresql://nobody@127.0.0.1:1/nowhere")


@dataclass
class Maker:
    """Makes attempts of a one-node graph, whose node `n` is of the type under test."""

    config: JsonObject = field(default_factory=dict)
    node: dict[str, Any] = field(default_factory=dict)
    settings: JsonObject = field(default_factory=dict)
    input: JsonObject = field(default_factory=dict)
    state: JsonObject = field(default_factory=dict)
    ended: dict[tuple[int | None, str], JsonObject] = field(default_factory=dict)
    owner: tuple[str, str] | None = ("team", "42")
    starter: str | None = None
    role: StepRole = StepRole.STEP
    signal: Signal | None = None
    parked: JsonObject | None = None
    attempt: int = 1
    visit: int = 1
    id: int = 1
    instance: int = 1
    token: str = TOKEN

    def make(self, registry: Registry, kind: StepType) -> Work:
        """An attempt, claimed at NOW."""
        written: Any = graph("order").trigger("manual").node("n", kind.key, self.config).edge("start", "n").document()
        written["nodes"][1].update(self.node)
        written["settings"] = self.settings
        plan = build(written, freeze(written, registry))
        instance = self._make_instance()
        step = StepRun(
            id=self.id,
            instance_id=self.instance,
            owner_scope=instance.owner_scope,
            node_id="n",
            node_type=kind.key,
            type_version=kind.version,
            visit=self.visit,
            attempt=self.attempt,
            idempotency_key=f"wf:{ULID}:n:{self.visit}",
            execution_id=ULID,
            queue="default",
            created_at=NOW,
            status=StepStatus.RUNNING,
            role=self.role,
            output=self.parked,
            resume_signal=self.signal.to_json() if self.signal else None,
            claim_token=self.token,
            claimed_at=NOW,
        )
        snapshot = Snapshot(instance, plan, Policy(), {step.id: step}, ended=self.ended)
        return Work(step, plan.nodes["n"].config.resolve(get_roots(snapshot, {}, NOW)), snapshot, version=3)

    def _make_instance(self) -> Instance:
        kind, name = self.owner or (None, None)
        return Instance(
            id=1,
            ulid=ULID,
            definition_id=1,
            version_id=1,
            owner_type=kind,
            owner_id=name,
            owner_scope=f"{kind}:{name}" if kind else APP_WIDE,
            trigger_type=TriggerKind.MANUAL,
            trigger_payload={"by": "hand"},
            actor_mode=ActorMode.ON_BEHALF_OF if self.starter else ActorMode.SYSTEM,
            starter_id=self.starter,
            input=self.input,
            state=self.state,
            definition_hash="",
            created_at=NOW,
            updated_at=NOW,
        )


@dataclass
class Bench:
    """Handlers that run, with what they were made of."""

    handlers: Handlers
    registry: Registry
    clock: Clock

    def make(self, given: Callable[..., Any] | StepType | type[StepType], **how: Any) -> Work:
        """An attempt of a step."""
        return Maker(**how).make(self.registry, self.registry.add(given))

    def start(self, work: Work) -> asyncio.Task[HandlerResult]:
        """Run the attempt in a task of its own, as the engine does."""
        task = asyncio.create_task(self.handlers.run(work))
        work.task = task  # type: ignore[assignment]  # the engine's own task records the result itself
        return task

    async def run(self, given: Callable[..., Any] | StepType | type[StepType], **how: Any) -> HandlerResult:
        """What an attempt of a step comes to."""
        return await self.start(self.make(given, **how))


@asynccontextmanager
async def benched(
    *,
    database: config.Database = NOWHERE,
    clock: Clock | None = None,
    secrets: Mapping[str, str] | None = None,
    authorizer: Authorizer | None = None,
    keeper: Keeper | None = None,
    **settings: Any,
) -> AsyncIterator[Bench]:
    """Handlers for a test; settings are the engine's."""
    clock, registry = clock or Clock(), Registry()
    kept = Secrets(provider=lambda name, scope: (secrets or {}).get(name))
    async with Effects(database, clock) as effects:
        means = Means(effects, kept, authorizer or DefaultAuthorizer(), keeper or Keeper(clock=clock))
        made = Handlers(registry, means, settings=config.Engine(**settings), limits=config.Limits(), clock=clock)
        async with made as handlers:
            yield Bench(handlers, registry, clock)
