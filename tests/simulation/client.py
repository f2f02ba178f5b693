"""Clients of the simulation: they start, signal, emit and command at random, and send the same thing twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from korak.core.changes import Changes, spread
from korak.core.decide import decide
from korak.core.facts import (
    CancelAsked,
    Delivered,
    Fact,
    ForkAsked,
    PauseAsked,
    ResumeAsked,
    RetryAsked,
    RewindAsked,
    Started,
)
from korak.core.opening import Opening, open_instance
from korak.core.rows import Delivery
from korak.errors import Conflict, TransientError
from korak.model import DeliveryKind, InstanceStatus, WaitKind
from tests.simulation.definitions import OWNER
from tests.simulation.graphs import EVENTS, ORDERS, SIGNALS
from tests.simulation.store import Ask
from tests.simulation.undoing import has_undoing_failed
from tests.support.memory import Emit, Family

if TYPE_CHECKING:
    from tests.simulation.world import World

REWINDS = 3
"""How often one run is sent back at most, so that every run ends."""

COMMANDS: tuple[tuple[Fact, DeliveryKind], ...] = (
    (CancelAsked("simulated"), DeliveryKind.CANCEL),
    (PauseAsked(), DeliveryKind.PAUSE),
    (PauseAsked(), DeliveryKind.PAUSE),
    (ResumeAsked(), DeliveryKind.RESUME),
    (ResumeAsked(), DeliveryKind.RESUME),
    (ResumeAsked(), DeliveryKind.RESUME),
)


class Client:
    """What comes in over HTTP. `accepted` are the ids of the signals that were promised to be kept."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = world.random
        self.ids = world.store.get_ids(5)
        self._count = 0
        self.accepted: set[tuple[int, str]] = set()

    def act(self) -> None:
        """One call."""
        verbs: list[Callable[[], None]] = [self.start, self.start, self.start, self.signal, self.emit, self.command]
        if self.random.random() < 0.3:
            verbs += [self.retry, self.rewind]
        try:
            self.random.choice(verbs)()
        except TransientError:
            self.world.count("call failed")

    def start(self) -> None:
        """Start an instance, unless there are plenty."""
        if self.world.count_open() >= self.world.crowd:
            return
        self._count += 1
        version = self.random.choice(list(self.world.definitions.newest.values()))
        opening = Opening(self.world.nesting.make_ulid(), version, OWNER, {"order": self._count % ORDERS})
        now = self.world.now
        changes = decide(open_instance(opening, self.world.store.memory.policy, now), Started(), now)
        self.world.store.prepare([changes], self.ids)
        self._stamp([changes])
        self.world.store.write([changes])
        self.world.nudge([changes], now)

    def signal(self) -> None:
        """Send a signal to one instance, perhaps twice with one id, and have it looked at, perhaps."""
        family = self._choose()
        if family is None or family.instance.is_ended:
            return
        self._count += 1
        row = self._make_row(family, DeliveryKind.SIGNAL, f"s{self._count}")
        row.name, row.payload = self.random.choice(SIGNALS), self._count
        if self.random.random() < 0.3:
            self._address(family, row)
        for _ in range(self.random.choice([1, 1, 2])):
            self.world.store.memory.send(family, row)
        self.accepted.add((family.instance.id, row.source_id))
        if self.random.random() < 0.7:
            self._tell(family, Delivered())

    def _address(self, family: Family, row: Delivery) -> None:
        """Let the signal be for one visit that waits, if one does."""
        waits = [wait for wait in family.open_waits if wait.kind is WaitKind.SIGNAL]
        if waits:
            wait = self.random.choice(waits)
            row.name, row.step_run_id = wait.event_key, wait.step_run_id

    def emit(self) -> None:
        """Publish an event about some order; a waker matches it."""
        self._count += 1
        payload = {"order": self.random.randrange(ORDERS), "number": self._count}
        emits = self.world.store.memory.emits
        emits.append(Emit(self.random.choice(EVENTS), {**payload}, f"e{self._count}", self.world.now))
        del emits[:-20]

    def command(self) -> None:
        """Cancel, pause or resume: at once if the lock is free, else by a row that the next holder obeys."""
        family = self._choose()
        if family is None:
            return
        fact, kind = self.random.choice(COMMANDS)
        if family.instance.id not in self.world.store.locks and self.random.random() < 0.6:
            self._tell(family, fact)
            return
        self._count += 1
        self.world.store.memory.send(family, self._make_row(family, kind, f"c{self._count}"))

    def retry(self) -> None:
        """Retry a run that failed, or rather what of one could not be undone."""
        families = self.world.store.memory.families.values()
        failed = [family for family in families if has_undoing_failed(family)]
        if not failed or self.random.random() < 0.3:
            failed += [family for family in families if family.instance.status is InstanceStatus.FAILED]
        if failed and self.world.count_open() < self.world.crowd:
            self._tell(self.random.choice(failed), RetryAsked())

    def rewind(self) -> None:
        """Send a run back to some node, be it a place or not, unless it has been sent back often enough; or fork it."""
        family = self._choose()
        if family is None or (family.instance.is_ended and self.world.count_open() >= self.world.crowd):
            return
        rewound = (family.instance.walk or {}).get("rewound")
        if isinstance(rewound, dict) and rewound["count"] == REWINDS:
            return
        nodes = self.world.store.memory.plans[family.instance.version_id].nodes
        to = self.random.choice(["start", *nodes])
        if self.random.random() < 0.3 and self.world.count_open() < self.world.crowd:
            self._tell(family, ForkAsked(self.world.nesting.make_ulid(), self.random.choice([None, to])))
        else:
            self._tell(family, RewindAsked(to))

    def resume(self) -> None:
        """Let every paused run go on."""
        for family in list(self.world.store.memory.families.values()):
            is_paused = family.instance.paused_at is not None and not family.instance.is_ended
            if is_paused and family.instance.id not in self.world.store.locks:
                self._tell(family, ResumeAsked())

    def pause(self) -> None:
        """Hold every run that no other one has started."""
        for family in list(self.world.store.memory.families.values()):
            is_open = not family.instance.is_ended and family.instance.id not in self.world.store.locks
            if is_open and family.parent_id is None:
                self._tell(family, PauseAsked())

    def _tell(self, family: Family, fact: Fact) -> None:
        transaction = self.world.store.begin([Ask(family.instance.id, fact)])
        try:
            batch = transaction.decide(self.world.now)
            self.world.store.prepare(batch, self.ids)
            self._stamp(batch)
            transaction.commit(batch)
        finally:
            transaction.end()
        if any(isinstance(answer, Conflict) for answer in transaction.answers):
            self.world.count("refused")
        self.world.nudge(batch, self.world.now)

    def _stamp(self, batch: list[Changes]) -> None:
        for changes in spread(batch):
            for step in changes.ready:
                step.sent_at = step.ready_at

    def _choose(self) -> Family | None:
        """Any run, one that is open rather than one that isn't."""
        families = list(self.world.store.memory.families.values())
        if self.random.random() < 0.8:
            families = [family for family in families if not family.instance.is_ended] or families
        return self.random.choice(families) if families else None

    def _make_row(self, family: Family, kind: DeliveryKind, source: str) -> Delivery:
        return Delivery(0, family.instance.id, "team:1", kind, source, self.world.now)
