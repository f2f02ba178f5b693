"""The parts of an engine, built and joined: claimers and recorders around it, its lease, its consumer, its watches."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from korak.broker.port import Consumer
from korak.catalogue import load_registry, open_secrets
from korak.clock import Clock
from korak.config import Settings
from korak.connecting import connect_broker, make_database
from korak.dispatch import Dispatcher
from korak.errors import TransientError
from korak.informing import Informer
from korak.loop import Backoff, run_every, wait
from korak.metrics import Metrics
from korak.owners.authorizer import DefaultAuthorizer
from korak.policy import get_policy
from korak.releasing import Puller
from korak.service import Health
from korak.steps.registry import Registry
from korak.store.clocks import measure
from korak.store.database import Database, Hot, Session
from korak.store.engines import list_held
from korak.store.gates import Gate
from korak.store.holds import View
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.transacting import Ask, Transactor
from korak_engine.claiming import Claimer, feed
from korak_engine.contexts import Means
from korak_engine.desk import Desk
from korak_engine.effects import Effects
from korak_engine.engine import Engine
from korak_engine.handlers import Handlers
from korak_engine.identity import Identity
from korak_engine.keeping import Keeper
from korak_engine.lease import BLOCKED, Holder, Lease
from korak_engine.nesting import Nesting
from korak_engine.recording import Recorder

log: logging.Logger = logging.getLogger(__name__)

RECORDERS = 2
CLAIMERS = 1
SWEEP = 0.1
BEAT = 1.0
"""Seconds between two writes of heartbeats: a step's is written once in that time at most."""

CHECK = 2.0
"""Seconds between two looks for attempts past their time, and for attempts that were cancelled."""
HOLDS = 1.0
"""Seconds between two looks for holds: so late at most one ends whose time is over. One that is put or released between
two looks is seen as what was decided without it is refused.
"""


@dataclass(slots=True)
class Fleet:
    """An engine with everything around it, entered and ready to work."""

    engine: Engine
    consumer: Consumer
    works: list[Coroutine[Any, Any, None]]
    drain: float

    async def stop(self) -> None:
        """Stop consuming, then let what runs end."""
        await self.consumer.stop()
        await self.engine.drain(self.drain)


class Builder:
    """Builds a fleet's parts on one stack; what is entered here is left in the opposite order."""

    def __init__(self, stack: AsyncExitStack, settings: Settings, metrics: Metrics, health: Health) -> None:
        self._stack = stack
        self._settings = settings
        self._metrics = metrics
        self._health = health
        self._clock = Clock()
        self._policy = get_policy(settings)
        self._plans = Plans()
        self._loader = Loader(self._plans, self._policy)
        self._view = View()

    async def build(self) -> Fleet:
        """An engine whose lease is registered; nothing is claimed before its works run."""
        settings = self._settings
        registry = load_registry(settings)
        database = await self._stack.enter_async_context(make_database(settings, "engine"))
        await self._look_around(database)
        broker = await connect_broker(self._stack, settings, self._metrics, puller=Puller(database, self._clock))
        handlers = await self._enter_handlers(registry, database)
        identity = Identity(frozenset(settings.engine.queues), handlers.runs, view=self._view)
        engine = Engine(identity, handlers, self._plans, self._clock, self._metrics, settings.engine)
        gate = Gate(database)
        informer = Informer(database, broker, self._loader, gate, self._clock)
        await self._stack.enter_async_context(informer)
        dispatcher = Dispatcher(broker, gate, engine, informer)
        types = [f"{made.key}@{made.version}" for made in registry.list_types() if not made.is_pure]
        slots = engine.slots
        holder = Holder(identity, types, slots.get_oldest_claim, slots.get_types, engine.drop_all, self._tell_late)
        make_own = partial(make_database, settings, "lease")
        lease = Lease(
            holder, make_own, self._clock, lease=settings.engine.lease, block_limit=settings.engine.block_limit
        )
        await self._stack.enter_async_context(lease)
        make_desk = partial(self._make_desk, database, dispatcher)
        consumer = broker.consumer(settings.engine.queues, prefetch=settings.engine.concurrency)
        works = [
            feed(consumer, engine.inbox, engine.slots, lambda: self._may_claim(engine), settings.engine.batch),
            *(self._make_claimer(make_desk(), engine).work(engine.inbox) for _ in range(CLAIMERS)),
            *(Recorder(make_desk(), engine.settle, engine.sights).work(engine.line) for _ in range(RECORDERS)),
            self._watch_time(engine),
            self._watch_tokens(database, engine),
            self._watch_holds(database),
            self._watch_hearts(engine),
            self._free(make_desk(), engine),
        ]
        return Fleet(engine, consumer, works, settings.engine.drain)

    async def _look_around(self, database: Database) -> None:
        """Measure the database's clock and see what is held, as soon as it can be reached: nothing begins before."""
        backoff, failures = Backoff(most=2.0), 0
        while True:
            try:
                async with database.acquire() as connection:
                    await measure(Session(connection), self._clock)
                    await self._view.refresh(Session(connection), self._clock.now())
                    return
            except TransientError as error:
                failures += 1
                log.warning("the engine waits for its database: %s (%s)", error.message, error.__cause__)
                await wait(backoff.after(failures))

    async def _enter_handlers(self, registry: Registry, database: Database) -> Handlers:
        settings = self._settings
        effects = await self._stack.enter_async_context(Effects(settings.database, self._clock))
        self._keeper = Keeper(settings.limits, self._clock, database)
        nesting = Nesting(database, self._plans, self._clock, settings.limits.max_starts_per_minute)
        means = Means(effects, open_secrets(settings.secrets), DefaultAuthorizer(), self._keeper, nesting)
        handlers = Handlers(registry, means, settings=settings.engine, limits=settings.limits, clock=self._clock)
        return await self._stack.enter_async_context(handlers)

    def _make_desk(self, database: Database, dispatcher: Dispatcher) -> Desk:
        hot = Hot(database)
        transactor = Transactor(hot, self._loader, Ids(), dispatcher, self._view)
        return Desk(hot, transactor, dispatcher, self._clock, self._metrics)

    def _make_claimer(self, desk: Desk, engine: Engine) -> Claimer:
        return Claimer(desk, engine.identity, engine.slots, engine.sights, engine.line, granted=engine.grant)

    def _may_claim(self, engine: Engine) -> bool:
        return engine.identity.is_open and not engine.is_draining and not self._is_blocked

    _is_blocked = False

    def _tell_late(self, late: float) -> None:
        self._is_blocked = late >= BLOCKED * self._settings.engine.block_limit
        self._health.mark("loop", f"blocked for {late:.0f} s" if self._is_blocked else None)

    # watches

    async def _watch_time(self, engine: Engine) -> None:
        async def sweep() -> None:
            engine.expire()

        await run_every(asyncio.Event(), sweep, lambda _: SWEEP)

    async def _watch_tokens(self, database: Database, engine: Engine) -> None:
        async def look() -> None:
            since = self._clock.monotonic() - CHECK
            held = [work for work in engine.slots.held if work.held_since < since and not work.is_settled]
            if not held:
                return
            tokens = [(work.step.id, work.step.claim_token or "") for work in held]
            async with database.acquire() as connection:
                still = await list_held(Session(connection), tokens)
            engine.cancel([work for work in held if work.step.id not in still])

        await run_every(asyncio.Event(), look, lambda _: CHECK)

    async def _watch_holds(self, database: Database) -> None:
        async def look() -> None:
            async with database.acquire() as connection:
                await self._view.refresh(Session(connection), self._clock.now())

        await run_every(asyncio.Event(), look, lambda _: HOLDS)

    async def _watch_hearts(self, engine: Engine) -> None:
        async def write() -> None:
            await self._keeper.write_beats(engine.slots.held)

        await run_every(asyncio.Event(), write, lambda _: BEAT)

    async def _free(self, desk: Desk, engine: Engine) -> None:
        """The attempts that wait for an abandoned thread needn't once it has ended."""
        while True:
            instance_id, freed = await engine.freed.get()
            try:
                answers = await desk.transactor.answer([Ask(instance_id, freed)], self._clock.now(), patience=5.0)
            except TransientError as error:
                log.warning("an abandoned thread's end can't be recorded now: %s", error.message)
                await wait(1.0)
                engine.freed.put_nowait((instance_id, freed))
                continue
            log.debug("an abandoned thread ended: %s", answers)
