"""The simulated world: one seed decides everything that happens in it, one thing at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from korak.core.changes import Changes, spread
from korak.core.counters import Pages
from korak.core.holds import Held
from korak.core.snapshot import DEFAULT_LIMITS, DEFAULT_RETRY, Policy
from korak.model import HoldKind
from tests.simulation import history, settling
from tests.simulation.client import Client
from tests.simulation.definitions import Definitions
from tests.simulation.engine import Engine
from tests.simulation.nesting import Nesting
from tests.simulation.network import NONE, Faults, Network
from tests.simulation.store import EVERY, Store
from tests.simulation.undoing import count_undone
from tests.simulation.waker import Waker
from tests.support import ties
from tests.support.handlers import at
from tests.support.memory import Family

GRAPHS = 12
CALM = 5
"""How many things happen in a second where nothing goes wrong, and at least one for each transaction that is under way:
so many that what has begun is done in time.
"""

HELD: Held = ("team:1", HoldKind.STEP_TYPE, "test.ok")
KEPT = 12
"""How many ended instances stay for those who come late."""

POLICY = Policy(
    retry=DEFAULT_RETRY,
    limits={**DEFAULT_LIMITS, "max_steps": 25, "max_depth": 2, "max_started_workflows": 8},
    timeout=120.0,
    walk=4,
)


PAGES = (Pages(), Pages(2, 0), Pages(3, 1), Pages(3, 3), Pages(5, 2))
"""Small pages have more borders than large ones."""


class World:
    """Engines, wakers and a client around one store, with everything going wrong now and then."""

    def __init__(self, seed: int, *, crowd: int = 24) -> None:
        self.random = Random(seed)
        self.now = at(0)
        self.crowd = crowd
        self.counts: dict[str, int] = {}
        self.store = Store(self.random, replace(POLICY, pages=self.random.choice(PAGES)))
        self.definitions = Definitions(self.random, self.store.memory, GRAPHS)
        self.nesting = Nesting(self.random, self.store.memory, self.definitions)
        self.network = Network(self.random)
        self._engines = self._steps = 0
        few = frozenset({"test.ok", "test.flaky"})
        self.engines = [self._make_engine(), self._make_engine(), self._make_engine(few)]
        self.wakers = [Waker(self), Waker(self)]
        self.client = Client(self)
        self.disturb()

    def disturb(self) -> None:
        """From here on things go wrong."""
        self.faults = self.network.faults = self.store.faults = Faults()

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
        """Send what became ready, and tell those who wait for what has ended."""
        batch = list(spread(batch))
        for changes in batch:
            self.network.send([step.id for step in changes.ready if step.sent_at is not None], now)
        self.tell(batch, now)

    def tell(self, batch: Sequence[Changes], now: datetime) -> None:
        """After a commit, or never: who waits for a run that has ended is woken, and who begins to wait looks.

        What is bidden to others some engine brings to them.
        """
        memory = self.store.memory
        ended = {changes.instance.id: changes.instance.ulid for changes in batch if changes.is_ended}
        waits = {each.wait.id for changes in batch if changes.outward for each in changes.outward.dependencies}
        if ended and self.random.random() > self.faults.lost:
            self.network.send(ties.wake_parents(memory, ended.values(), now), now)
        rows = [row for row in memory.dependencies if row.wait_id in waits or row.awaited_id in ended]
        if rows and self.random.random() > self.faults.lost:
            self.network.send(ties.look(memory, rows, now), now)
        outwards = [changes.outward for changes in batch if changes.outward is not None]
        cascading = {cascade.instance_id for outward in outwards for cascade in outward.cascades}
        bidden = {command.ulid for outward in outwards for command in outward.commands}
        if (cascading or bidden) and self.random.random() > self.faults.lost:
            self.random.choice(self.engines).bid(sorted(cascading), bidden)

    # one step

    def step(self) -> None:
        """One thing happens."""
        self.now += timedelta(seconds=self.random.expovariate(1 if self.has_faults else self._count_calm()))
        self._disturb()
        actors: list[Waker | Engine | Client] = list(self.wakers)
        for engine in self.engines:
            if engine.frozen_until is None or engine.frozen_until <= self.now:
                actors += [engine] * (8 if engine.is_busy else 1)
        if self.has_faults:
            actors += [self.client] * 2
        self.random.choice(actors).act()

    def _count_calm(self) -> int:
        return max(CALM, sum(len(engine.jobs) for engine in self.engines))

    def _disturb(self) -> None:
        faults = self.faults
        if self.random.random() < faults.jumps:
            self.now += timedelta(seconds=self.random.choice([1, 30, 70, 400, 4_000]))
        if self.random.random() < faults.freezes:
            self._freeze()
        if self.random.random() < faults.dies:
            self._kill()
        if self.random.random() < faults.strays:
            self._stray()
        self._steps += 1
        if self._steps % 100 == 0:
            self._forget()
        if self._steps % 4 == 0:
            self._disturb_seldom(faults.dies)

    def _disturb_seldom(self, chance: float) -> None:
        if self.random.random() < chance:
            self.network.purge()
        if self.random.random() < chance:
            self._restart_database()
        if self.random.random() < chance:
            self.definitions.publish()
        if self.random.random() < self.faults.strays:
            memory = self.store.memory
            memory.hold(*() if memory.holds.rows else [HELD])

    def _freeze(self) -> None:
        engine = self.random.choice(self.engines)
        engine.frozen_until = self.now + timedelta(seconds=self.random.choice([5, 70, 300]))
        engine.stop_transactions()
        self.count("frozen")

    def _kill(self) -> None:
        place = self.random.randrange(len(self.engines))
        dead = self.engines[place]
        dead.stop_transactions()
        dead.jobs.clear()
        self.engines[place] = self._make_engine(dead.types)
        self.count("died")

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
        """Ended families leave, the oldest first, when nothing is left to do for any run of them."""
        roots: dict[int, list[Family]] = {}
        for family in self.store.memory.families.values():
            roots.setdefault(self._find_root(family), []).append(family)
        held = {*self.store.locks, *(row.awaited_id for row in self.store.memory.dependencies)}
        over = [kin for kin in roots.values() if all(self._is_over(family, held) for family in kin)]
        for family in (family for kin in over[: max(0, len(over) - KEPT)] for family in kin):
            history.check_whole(self.store.memory, family)
            self.store.memory.forget(family.instance.id)
            self.count("ended")
            self.count("ended below another", family.parent_id is not None)
            self.count("undone", count_undone(family))
            for event in family.events:
                self.count(event.type.value)
            for step in family.steps.values():
                self.count(f"{step.node_type} {step.status}")
        self.definitions.forget(family.instance.version_id for family in self.store.memory.families.values())

    def _find_root(self, family: Family) -> int:
        while family.parent_id is not None:
            family = self.store.memory.families[family.parent_id]
        return family.instance.id

    def _is_over(self, family: Family, held: Collection[int]) -> bool:
        """Nothing is left to do for it. A fork may wait for what the run that it was forked from has started."""
        is_free = family.instance.ended_at is not None and family.instance.id not in held
        if any(row.awaited_id == family.instance.id for row in self.store.memory.dependencies):
            return False
        return is_free and settling.is_told(family) and not family.live and settling.is_heard(family)

    # the end

    def drain(self, limit: int = 120_000) -> None:
        """Nothing goes wrong any more: everything ends, or waits for what only a client can send."""
        self.faults = self.network.faults = self.store.faults = NONE
        self.store.memory.hold()
        for engine in self.engines:
            engine.frozen_until = None
        if self.random.random() < 0.5:
            self._hold_still()
        memory = self.store.memory
        for number in range(limit):
            if number % 20 == 0:
                self.client.resume()
                if settling.is_settled(memory):
                    break
            self.step()
            if self.random.random() < 0.05 and not any(engine.is_busy for engine in self.engines):
                self.now += timedelta(seconds=self.random.choice([31, 700, 40_000]))
        assert settling.is_settled(memory), [
            (family.instance, family.live, family.open_waits, memory.cascades)
            for family in settling.list_moving(memory)
        ]
        settling.check_end(memory)

    def _hold_still(self) -> None:
        """Pause all that nobody has started but a client; everything below stands still too."""
        self.client.pause()
        memory = self.store.memory
        for _ in range(20_000):
            self.step()
            if not memory.cascades and not any(map(settling.is_bidden, memory.families.values())):
                break
        assert not memory.cascades
        settling.check_pause(memory)
        self.count("held still")


def run(
    seed: int, steps: int, drained: int = 5_000, *, every: int = EVERY, tell: Callable[[int], None] | None = None
) -> World:
    """So many steps of one seed's world; after each `drained` of them, and at the end, it comes to rest.

    All of a run is checked after `every` so many of its changes: that draws nothing, so the world is the same. `tell`
    hears how many steps are done.
    """
    world, done = World(seed), 0
    world.store.every = every
    while done < steps:
        world.disturb()
        for _ in range(min(steps - done, drained)):
            world.step()
        world.drain()
        done = min(steps, done + drained)
        if tell is not None:
            tell(done)
    return world
