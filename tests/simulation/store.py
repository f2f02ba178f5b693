"""The store of the simulation: the rows in memory, behind transactions that lock, fail and lose their answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random

from korak.core.changes import Changes, spread
from korak.core.decide import decide, decide_all
from korak.core.facts import BACKWARD, Fact, Finished, HandedBack, Lost
from korak.core.rooms import Denial
from korak.core.snapshot import Policy, Snapshot
from korak.errors import Conflict, TransientError
from korak.store.sealing import Ids, seal
from korak.store.transacting import Outdated
from tests.simulation import invariants
from tests.simulation.network import Faults
from tests.simulation.undoing import check_fork
from tests.support import stamps
from tests.support.memory import Counter, Memory
from tests.support.rooms import Held

EVERY = 16
"""After so many changes of a run all of its history is checked, and after each one only what is new of it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A fact for one instance, and the step that it is about."""

    instance_id: int
    fact: Fact
    step: int | None = None


def _never(place: int, denial: Denial) -> Changes:
    raise AssertionError("nobody asks for room here")


@dataclass(eq=False)
class EngineRow:
    """An engine's row in the fleet."""

    id: int
    lease_until: datetime
    closed_at: datetime | None = None


class Transaction:
    """Lock, then look; what happens until `commit` may change whatever the locks don't guard."""

    def __init__(self, store: Store, asks: Sequence[Ask]) -> None:
        self._store = store
        self.asks = asks
        self.locked: set[int] = set()
        self.snapshots: dict[int, Snapshot] = {}
        self.answers: list[Changes | Conflict | None] = []
        self.is_open = True
        self.held: Held | None = None

    def lock(self) -> None:
        """Lock what nobody else holds, and load it."""
        for ask in self.asks:
            if ask.instance_id in self._store.memory.families and ask.instance_id not in self._store.locks:
                self._store.locks[ask.instance_id] = self
                self.locked.add(ask.instance_id)
        for instance_id in self.locked:
            closed = [ask.step for ask in self.asks if ask.instance_id == instance_id and ask.step is not None]
            is_backward = any(isinstance(ask.fact, BACKWARD) for ask in self.asks)
            self.snapshots[instance_id] = self._store.memory.load(instance_id, closed, is_backward=is_backward)

    def decide(self, now: datetime) -> list[Changes]:
        """Decide every fact whose instance was locked; the changes that are to be written."""
        places: dict[int, list[int]] = {}
        for place, ask in enumerate(self.asks):
            places.setdefault(ask.instance_id, []).append(place)
        self.answers = [None] * len(self.asks)
        for instance_id, mine in places.items():
            if instance_id in self.snapshots:
                facts = [self.asks[place].fact for place in mine]
                decided = self._store.decide_together(self.snapshots[instance_id], facts, now)
                for place, answer in zip(mine, decided, strict=True):
                    self.answers[place] = answer
        self._find_room(now)
        return [answer for answer in self.answers if isinstance(answer, Changes) and not answer.is_empty]

    def _find_room(self, now: datetime) -> None:
        """Keys with limits are locked until the end; who would wait for them here comes again."""

        def again(place: int, denial: Denial) -> Changes:
            snapshot = replace(self.snapshots[self.asks[place].instance_id], denials=(denial,))
            return self._store.decide(snapshot, self.asks[place].fact, now)

        self.held = self._store.memory.rooms.admit(self.answers, again, now)
        if self.held is not None and self._store.keys_of not in (None, self):
            raise TransientError(message="the key's lock took too long")
        if self.held is not None:
            self._store.keys_of = self

    def commit(self, batch: Sequence[Changes]) -> None:
        """Write all of it or nothing. Raises TransientError in either case, if it pleases."""
        if not self.is_open:
            raise TransientError(message="the connection was lost")
        try:
            if any(changes.holds not in (None, self._store.memory.holds.version) for changes in batch):
                raise Outdated(message="what is held has changed meanwhile")
            moved = self._store.write(batch, self.held)
            assert all(changes.instance.id in moved for changes in batch), "an instance moved under its lock"
        finally:
            self.end()

    def end(self) -> None:
        """Let the locks go."""
        self.is_open = False
        if self._store.keys_of is self:
            self._store.keys_of = None
        for instance_id in self.locked:
            if self._store.locks.get(instance_id) is self:
                del self._store.locks[instance_id]


class Store:
    """The database: rows, locks, engines' rows, and the ledger of effects by visit."""

    def __init__(self, random: Random, policy: Policy) -> None:
        self._random = random
        self.memory = Memory(policy)
        self.locks: dict[int, Transaction] = {}
        self.keys_of: Transaction | None = None
        self.fleet: dict[int, EngineRow] = {}
        self.open_fleet: dict[int, EngineRow] = {}
        self.ledger: dict[str, str] = {}
        self.faults = Faults()
        self.counts: dict[str, int] = {}
        self.every = EVERY

    def begin(self, asks: Sequence[Ask]) -> Transaction:
        """A transaction that has locked and loaded what it could."""
        self._maybe_fail()
        transaction = Transaction(self, asks)
        transaction.lock()
        return transaction

    def decide(self, snapshot: Snapshot, fact: Fact, now: datetime) -> Changes:
        """`decide`, which mends nothing here: what it can't make sense of ends the simulation."""
        changes = decide(snapshot, fact, now)
        self._note(snapshot, fact, changes)
        return changes

    def decide_together(
        self, snapshot: Snapshot, facts: Sequence[Fact], now: datetime
    ) -> Sequence[Changes | Conflict | None]:
        """Several facts of one instance in one go, unless it has limits; None: that one's turn is the next time."""
        if len(facts) > 1 and not snapshot.plan.has_flow:
            batch = decide_all(snapshot, facts, now)
            for fact, changes in zip(facts, batch, strict=True):
                self._note(snapshot, fact, changes)
            return batch
        try:
            return [self.decide(snapshot, facts[0], now), *(None for _ in facts[1:])]
        except Conflict as refused:
            return [refused, *(None for _ in facts[1:])]

    def _note(self, snapshot: Snapshot, fact: Fact, changes: Changes) -> None:
        if isinstance(fact, Finished | Lost | HandedBack) and changes.dropped is None:
            invariants.check_holder(snapshot, fact)
        self._count(type(fact).__name__ + ("" if changes.dropped is None else f": {changes.dropped}"))
        if any(row.discarded_at is not None for row in changes.deliveries):
            self._count("signal discarded")

    def prepare(self, batch: Iterable[Changes], ids: Ids) -> None:
        """Give new rows their ids, and stamp what will be sent."""
        for changes in batch:
            seal(changes, ids)

    def write(self, batch: Sequence[Changes], held: Held | None = None) -> set[int]:
        """Apply changes, each if its instance stands where they were decided from; all of them, or none."""
        before = {changes.instance.id: self.memory.families.get(changes.instance.id) for changes in batch}
        self.memory.begin()
        try:
            forks = [changes.fork for changes in batch if changes.fork is not None]
            moved = self.memory.apply_all([*batch, *forks], self._maybe_fail)
        except TransientError:
            self.memory.roll_back()
            raise
        written = [changes for changes in batch if changes.instance.id in moved]
        if held is not None:
            self._settle_room(held, written)
        for changes in spread(written):
            invariants.check_changes(changes)
            invariants.check_after(self.memory, changes)
            invariants.check_holds(self.memory, changes)
            check_fork(self.memory, changes)
            is_whole = changes.is_ended or changes.instance.lock_version % self.every == 0
            invariants.check_family(self.memory, before.get(changes.instance.id), changes, is_whole=is_whole)
        if self._random.random() < self.faults.answer:
            self._count("answer lost")
            raise TransientError(message="the answer of the commit was lost")
        return moved

    def write_unlocked(self, batch: Sequence[Changes]) -> set[int]:
        """The fast path: what somebody else holds is left to the slow one, as if it had moved."""
        self._maybe_fail()
        free = [changes for changes in batch if changes.instance.id not in self.locks and self._may_write(changes)]
        held = (
            self.memory.rooms.admit([*filter(self.memory.stands, free)], _never, free[0].instance.updated_at)
            if free
            else None
        )
        return self.write(free, held)

    def is_addressed(self, instance_id: int) -> bool:
        """Whether something lies there for the instance that nobody has taken; not where the instance is gone."""
        family = self.memory.families.get(instance_id)
        return family is not None and any(row.taken_at is None for row in family.signals.values())

    def _may_write(self, changes: Changes) -> bool:
        """What needs room, or gives some back while somebody else has the keys, goes the slow way."""
        gives_back = bool(changes.freed) or changes.leaves
        return not changes.demands and not (gives_back and self.keys_of is not None)

    def _settle_room(self, held: Held, batch: Sequence[Changes]) -> None:
        now = max((changes.instance.updated_at for changes in batch), default=None)
        roused = self.memory.rooms.settle(held, batch)
        if now is not None:
            self._count("roused" if stamps.rouse(self.memory, roused, now) else "room given")
        self.memory.rooms.check()
        invariants.check_room(self.memory)

    def _maybe_fail(self) -> None:
        if self._random.random() < self.faults.statement:
            self._count("statement failed")
            raise TransientError(message="a statement failed")

    def _count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    # engines and effects

    def register(self, now: datetime, lease: timedelta) -> EngineRow:
        """A new engine's row."""
        row = EngineRow(len(self.fleet) + 1, now + lease)
        self.fleet[row.id] = self.open_fleet[row.id] = row
        return row

    def is_held(self, step_id: int, token: str | None) -> bool:
        """Whether the step runs under that token."""
        family = self.memory.find(step_id)
        step = None if family is None else family.steps.get(step_id)
        return step is not None and step.status == "running" and step.claim_token == token

    def perform(self, key: str, step_id: int, token: str) -> bool:
        """`once`: the effect and its record together, only for the holder of the token; False where it is not held."""
        if key in self.ledger:
            return True
        if not self.is_held(step_id, token):
            return False
        self.ledger[key] = token
        return True

    def get_ids(self, block: int) -> Ids:
        """Ids for one process, in blocks."""
        return Counter(self.memory, block)
