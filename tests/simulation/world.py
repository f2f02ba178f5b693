"""The simulated world: one seed decides everything that happens in it, one thing at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from random import Random

from korak.core.changes import Changes
from korak.core.holds import NO_HOLDS, Holds
from korak.core.rows import StepRun
from korak.core.snapshot import DEFAULT_LIMITS, DEFAULT_RETRY, Policy
from korak.model import HoldKind, ParkedFor, StepRole, StepStatus, WaitKind
from tests.simulation import invariants
from tests.simulation.client import Client
from tests.simulation.engine import Engine
from tests.simulation.graphs import write_plan
from tests.simulation.network import NONE, Faults, Network
from tests.simulation.store import Store
from tests.simulation.undoing import count_undone
from tests.simulation.waker import Waker
from tests.support.handlers import at
from tests.support.memory import Family

GRAPHS = 12
KEPT = 12
"""How many ended instances stay for those who come late."""

POLICY = Policy(retry=DEFAULT_RETRY, limits={**DEFAULT_LIMITS, "max_steps": 25}, timeout=120.0, walk=4)


class World:
    """Engines, wakers and a client around one store, with everything going wrong now and then."""

    def __init__(self, seed: int, *, crowd: int = 24) -> None:
        self.random = Random(seed)
        self.now = at(0)
        self.crowd = crowd
        self.counts: dict[str, int] = {}
        self.holds = NO_HOLDS
        self.store = Store(self.random, POLICY)
        for version in range(1, GRAPHS + 1):
            self.store.memory.plans[version] = write_plan(self.random)
        self.network = Network(self.random)
        self._engines = 0
        few = frozenset({"test.ok", "test.flaky"})
        self.engines = [self._make_engine(), self._make_engine(), self._make_engine(few)]
        self.wakers = [Waker(self), Waker(self)]
        self.client = Client(self)
        self.faults = Faults()

    def _make_engine(self, types: frozenset[str] | None = None) -> Engine:
        self._engines += 1
        return Engine(self, f"E{self._engines}", types=types)

    @property
    def has_faults(self) -> bool:
        """Whether things still go wrong."""
        return not self.faults.is_none

    def count(self, what: str, times: int = 1) -> None:
        """Note that something happened, to see that everything does."""
        if times:
            self.counts[what] = self.counts.get(what, 0) + times

    def count_open(self) -> int:
        """How many instances haven't ended."""
        return sum(not family.instance.is_ended for family in self.store.memory.families.values())

    def nudge(self, batch: Sequence[Changes], now: datetime) -> None:
        """Send what became ready."""
        for changes in batch:
            self.network.send([step.id for step in changes.ready if step.sent_at is not None], now)

    # one step

    def step(self) -> None:
        """One thing happens."""
        self.now += timedelta(seconds=self.random.expovariate(1))
        self._disturb()
        actors: list[Callable[[], None]] = [waker.act for waker in self.wakers]
        for engine in self.engines:
            if self._is_awake(engine):
                actors += [engine.act] * (8 if engine.is_busy else 1)
        if self.has_faults:
            actors += [self.client.act] * 2
        self.random.choice(actors)()

    def _is_awake(self, engine: Engine) -> bool:
        return engine.frozen_until is None or engine.frozen_until <= self.now

    def _disturb(self) -> None:
        faults = self.faults
        if self.random.random() < faults.jumps:
            self.now += timedelta(seconds=self.random.choice([1, 30, 70, 400, 4_000]))
        if self.random.random() < faults.freezes:
            engine = self.random.choice(self.engines)
            engine.frozen_until = self.now + timedelta(seconds=self.random.choice([5, 70, 300]))
            engine.stop_transactions()
            self.count("frozen")
        if self.random.random() < faults.dies:
            place = self.random.randrange(len(self.engines))
            dead = self.engines[place]
            dead.stop_transactions()
            dead.jobs.clear()
            self.engines[place] = self._make_engine(dead.types)
            self.count("died")
        if self.random.random() < faults.dies / 4:
            self.network.purge()
        if self.random.random() < faults.dies / 4:
            self._restart_database()
        if self.random.random() < faults.strays:
            self._stray()
        if self.random.random() < faults.strays / 4:
            held = frozenset({("team:1", HoldKind.STEP_TYPE, "test.ok")})
            self.holds = NO_HOLDS if self.holds.rows else Holds(held)
        self._forget()

    def _restart_database(self) -> None:
        """Every connection breaks: what wasn't committed is rolled back."""
        for transaction in list(self.store.locks.values()):
            transaction.end()

    def _stray(self) -> None:
        """A nudge from long ago, for a step that may be anywhere by now."""
        live = [step.id for family in self.store.memory.families.values() for step in family.live]
        if live:
            self.network.send([self.random.choice(live)], self.now)

    def _forget(self) -> None:
        """Ended instances leave, the oldest first, when nothing is left to do for them."""
        families = self.store.memory.families
        ended = [family for family in families.values() if self._is_over(family)]
        for family in ended[: max(0, len(ended) - KEPT)]:
            del families[family.instance.id]
            self.count("ended")
            self.count("undone", count_undone(family))

    def _is_over(self, family: Family) -> bool:
        is_free = family.instance.id not in self.store.locks
        return is_free and is_heard(family) and family.instance.is_ended and not family.live

    # the end

    def drain(self, limit: int = 120_000) -> None:
        """Nothing goes wrong any more: everything ends, or waits for what only a client can send."""
        self.faults = self.network.faults = self.store.faults = NONE
        self.holds = NO_HOLDS
        for engine in self.engines:
            engine.frozen_until = None
        for _ in range(limit):
            if self.is_settled():
                break
            self.step()
            self.client.resume()
            if self.random.random() < 0.01:
                self.now += timedelta(seconds=self.random.choice([31, 700, 40_000]))
        assert self.is_settled(), [
            (family.instance, family.live, family.open_waits)
            for family in self.store.memory.families.values()
            if not self._is_settled(family)
        ]
        self._check_end()

    def is_settled(self) -> bool:
        """Whether nothing will move by itself any more."""
        return all(self._is_settled(family) for family in self.store.memory.families.values())

    def _is_settled(self, family: Family) -> bool:
        """Ended with every hook done, or waiting for a signal or an event without a time limit; nothing untaken."""
        if any(row.taken_at is None and row.buffered_at is None for row in family.signals.values()):
            return False
        if family.instance.is_ended:
            return is_heard(family) and not family.live
        kinds = {wait.kind for wait in family.open_waits}
        is_parked = all(
            step.role is StepRole.STEP and step.status is StepStatus.WAITING and step.ready_at is None
            for step in family.live
            if not self._is_shut_out(step)
        )
        return is_parked and kinds <= {WaitKind.SIGNAL, WaitKind.EVENT}

    def _is_shut_out(self, step: StepRun) -> bool:
        """Whether a run that waits for a client keeps the room that the step needs."""
        rooms = self.store.memory.rooms
        return step.parked_for is ParkedFor.LIMIT and step.id in rooms.parked and not rooms.has_room(step.id)

    def _check_end(self) -> None:
        """Who waits doesn't wait for what lies there."""
        for family in self.store.memory.families.values():
            invariants.check_nothing_missed(self.store.memory, family)


def is_heard(family: Family) -> bool:
    """Whether the holder of every attempt that ran as it was cancelled has been heard, or was given up."""
    return not any(step.claim_token for step in family.steps.values() if step.status is StepStatus.CANCELLED)


def run(seed: int, steps: int) -> World:
    """So many steps of one seed's world, then its end."""
    world = World(seed)
    for _ in range(steps):
        world.step()
    world.drain()
    return world
