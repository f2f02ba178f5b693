"""A waker of the simulation: the stages of one pass, each at the time at which the pass began."""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, TypeAlias

from korak.core.changes import Changes, spread
from korak.core.facts import DeadlinePassed, Delivered, Lost
from korak.core.rows import StepRun
from korak.errors import TransientError
from korak.model import DeliveryKind, ParkedFor, StepRole, StepStatus
from tests.simulation.store import Ask
from tests.support import stamps, ties
from tests.support.memory import Family

if TYPE_CHECKING:
    from tests.simulation.world import World

Pass: TypeAlias = Generator[None, None, None]

REQUEUE_AFTER = timedelta(seconds=30)
SOON = timedelta(seconds=1)
PAGE = 2
WAKING = (DeliveryKind.SIGNAL, DeliveryKind.EVENT)


class Waker:
    """One process that makes one pass after the other; several of them are safe together."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ids = world.store.get_ids(10)
        self.skew = timedelta(seconds=world.random.uniform(-0.3, 0.3))
        self._pass: Pass | None = None
        self._now = world.now

    def act(self) -> None:
        """Go on with the pass, or begin one."""
        if self._pass is None:
            self._now = self.world.now + self.skew
            self._pass = self._make_pass()
        try:
            next(self._pass)
        except StopIteration:
            self._pass = None
        except TransientError:
            self._pass = None
            self.world.count("pass failed")

    @property
    def families(self) -> list[Family]:
        """The instances that there are."""
        return list(self.world.store.memory.families.values())

    def _make_pass(self) -> Pass:
        now, memory = self._now, self.world.store.memory
        while (children := ties.advance_cascade(memory, now, PAGE)) is not None:
            self.world.count("cascaded")
            yield
            for child in children:
                yield from self._answer(Ask(child, Delivered()))
        yield from self._deliver(now)
        self.world.network.send(self._look(now), now)
        stamps.match_events(memory, now)
        yield
        yield from self._reclaim(now)
        for family in self.families:
            stamps.repeat_waits(family, now, REQUEUE_AFTER)
            self.world.count("stamped", stamps.stamp_due(family, now))
        yield
        yield from self._expire(now)
        self._unpark(now)
        yield
        if self.world.store.keys_of is None:
            self.world.count("found room", stamps.rouse_waiting(memory, now))
        yield
        for family in self.families:
            self.world.network.send(stamps.repeat_steps(family, now, REQUEUE_AFTER), now)
        yield

    def _unpark(self, now: datetime) -> None:
        """What a hold has kept is let go once: nobody can park for it any more."""
        memory = self.world.store.memory
        has_all = any(engine.types is None for engine in self.world.engines)
        for family in self.families:
            if has_all:
                self.world.count("unparked", stamps.unpark(family, now))
            if memory.is_unheld:
                self.world.count("unheld", stamps.unpark(family, now, ParkedFor.HOLD))
        memory.is_unheld = False

    def _look(self, now: datetime) -> list[int]:
        memory = self.world.store.memory
        return ties.look(memory, memory.dependencies, now) if memory.dependencies else []

    def _deliver(self, now: datetime) -> Pass:
        for family in self.families:
            untaken = stamps.list_untaken(family, now, SOON, REQUEUE_AFTER)
            if not untaken:
                continue
            stamps.wake_signals(family, now, [row for row in untaken if row.kind in WAKING])
            if any(row.kind not in WAKING for row in untaken) or self.world.random.random() < 0.5:
                yield from self._answer(Ask(family.instance.id, Delivered()))

    def _reclaim(self, now: datetime) -> Pass:
        """Close the engines whose lease is over, then take over what they, or too long an attempt, hold."""
        fleet = self.world.store.open_fleet
        for row in [row for row in fleet.values() if row.lease_until <= now]:
            row.closed_at = now
            del fleet[row.id]
            self.world.count("engine closed")
        yield
        lost = [step for family in self.families for step in family.claimed if self._is_lost(step, now)]
        for step in lost:
            yield from self._answer(Ask(step.instance_id, Lost(step.id, step.claim_token or ""), step.id))

    def _is_lost(self, step: StepRun, now: datetime) -> bool:
        if step.engine_id is None or step.lease_until is None:
            return False
        if step.status is not StepStatus.RUNNING and step.role is not StepRole.STEP:
            return False
        return self.world.store.fleet[step.engine_id].closed_at is not None or step.lease_until <= now

    def _expire(self, now: datetime) -> Pass:
        for family in self.families:
            deadline = family.instance.deadline_at
            if not family.instance.is_ended and deadline is not None and deadline <= now:
                yield from self._answer(Ask(family.instance.id, DeadlinePassed()))

    def _answer(self, ask: Ask) -> Pass:
        """Answer a fact under the lock; what others hold is left to the next pass."""
        transaction = self.world.store.begin([ask])
        try:
            yield
            batch = transaction.decide(self._now)
            self.world.store.prepare(batch, self.ids)
            self._stamp(batch)
            transaction.commit(batch)
        finally:
            transaction.end()
        self.world.nudge(batch, self._now)

    def _stamp(self, batch: list[Changes]) -> None:
        for changes in spread(batch):
            for step in changes.ready:
                step.sent_at = step.ready_at
