"""One run of a graph, driven fact by fact through the real core, with its rows in memory."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeAlias

from korak.core.changes import Changes, Grant
from korak.core.decide import decide
from korak.core.facts import BACKWARD, Claimed, Delivered, Fact, Finished, HandedBack, HandlerResult, Lost, Started
from korak.core.opening import Opening, Owner, Version, open_instance
from korak.core.rows import Delivery, Event, Instance, StepRun, Wait
from korak.core.snapshot import Claimant, Policy, Snapshot
from korak.graphs.builder import GraphBuilder
from korak.graphs.plans import Plan
from korak.model import DeliveryKind, EventType, Json, JsonObject, StepRole, StepStatus
from korak.store.sealing import seal
from tests.support import handlers, stamps
from tests.support.memory import Counter, Emit, Family, Memory
from tests.support.plans import plan_of

Arrow: TypeAlias = "tuple[str, StrEnum | None, StrEnum | None]"

ULID = "01JAAAAAAAAAAAAAAAAAAAAAAA"


class Run:
    """Every verb decides from a fresh load, writes what was decided, and keeps the changes in `last`."""

    def __init__(
        self,
        graph: GraphBuilder | JsonObject | Plan,
        *,
        given: JsonObject | None = None,
        policy: Policy | None = None,
        runs: frozenset[str] | None = None,
        execution_timeout: float | None = None,
    ) -> None:
        self.plan = graph if isinstance(graph, Plan) else plan_of(graph)
        self.memory = Memory(policy)
        self.memory.plans[1] = self.plan
        self.ids = Counter(self.memory)
        self.now = handlers.at(0)
        self.runs = runs
        self.last: Changes
        self.arrows: set[Arrow] = set()
        self._tokens = self._sent = 0
        opening = Opening(
            ULID,
            Version(1, 1, "0" * 64, self.plan),
            Owner("team:1", "team", "1"),
            given or {},
            execution_timeout=execution_timeout,
        )
        self.write(decide(open_instance(opening, self.memory.policy, self.now), Started(), self.now))

    # what there is

    @property
    def family(self) -> Family:
        [family] = self.memory.families.values()
        return family

    @property
    def instance(self) -> Instance:
        return self.family.instance

    @property
    def live(self) -> list[StepRun]:
        return self.family.live

    @property
    def step(self) -> StepRun:
        """The one live step, hooks aside."""
        [step] = [step for step in self.live if step.role is StepRole.STEP]
        return step

    @property
    def hooks(self) -> list[StepRun]:
        return [step for step in self.family.steps.values() if step.role is not StepRole.STEP]

    @property
    def waits(self) -> list[Wait]:
        return self.family.open_waits

    @property
    def history(self) -> list[EventType]:
        return [event.type for event in self.family.events]

    def list_events(self, kind: EventType) -> list[Event]:
        return [event for event in self.family.events if event.type is kind]

    def list_steps(self, node: str) -> list[StepRun]:
        return [step for step in self.family.steps.values() if (step.node_id, step.role) == (node, StepRole.STEP)]

    # facts

    def tell(self, fact: Fact, closed: tuple[int, ...] = ()) -> Changes:
        """Decide and write; the snapshot must come out of it as it went in, and the same must follow from it again."""
        snapshot = self.memory.load(self.instance.id, closed, is_backward=isinstance(fact, BACKWARD))
        return self.write(self.decide(snapshot, fact))

    def decide(self, snapshot: Snapshot, fact: Fact) -> Changes:
        before = dump(snapshot)
        changes = decide(snapshot, fact, self.now)
        assert dump(snapshot) == before
        assert describe(decide(snapshot, fact, self.now)) == describe(changes)
        return changes

    def write(self, changes: Changes) -> Changes:
        seal(changes, self.ids)
        for step in changes.ready:
            step.sent_at = step.ready_at
        assert changes.is_empty or self.memory.apply(changes)
        self.arrows |= set(list_arrows(changes))
        self.last = changes
        return changes

    def claimant(self, *queues: str) -> Claimant:
        self._tokens += 1
        known = self.runs
        return Claimant(
            7, f"T{self._tokens}", frozenset(queues or ("default",)), lambda key, _: known is None or key in known
        )

    def claim(self, step: StepRun | None = None) -> Changes:
        return self.tell(Claimed((step or self.step).id, self.claimant()))

    def get_grant(self) -> Grant:
        [grant] = self.last.claimed
        return grant

    def finish(self, result: HandlerResult, *, inline: bool = False, step: StepRun | None = None) -> Changes:
        """Record what the running step came to."""
        step = step or self.step
        claimant = self.claimant() if inline else None
        return self.tell(Finished(step.id, step.claim_token or "", result, claimant), (step.id,))

    def work(self, *, inline: bool = False) -> Changes:
        """Claim the ready step and run its handler to its record."""
        if self.step.status is not StepStatus.RUNNING:
            self.claim()
        return self.finish(handlers.run(self.get_grant()), inline=inline) if self.last.claimed else self.last

    def tell_quickly(self, step: StepRun) -> None:
        """Claim a ready step and record what its handler comes to, without the looks at what must not change."""
        for _ in range(2):
            held = self.family.steps[step.id]
            fact: Fact = Claimed(step.id, self.claimant())
            if held.status is StepStatus.RUNNING:
                fact = Finished(step.id, held.claim_token or "", handlers.run(self.get_grant()))
            self.write(decide(self.memory.load(self.instance.id), fact, self.now))

    def lose(self, step: StepRun | None = None) -> Changes:
        step = step or self.step
        return self.tell(Lost(step.id, step.claim_token or ""), (step.id,))

    def hand_back(self) -> Changes:
        return self.tell(HandedBack(self.step.id, self.step.claim_token or ""))

    def send(self, kind: DeliveryKind, name: str | None = None, payload: Json = None, **columns: Any) -> Delivery:
        """Address a row to the run; nobody looks at it yet."""
        self._sent += 1
        row = Delivery(0, self.instance.id, "team:1", kind, str(columns.pop("id", self._sent)), self.now)
        row.name, row.payload = name, payload
        for column, value in columns.items():
            setattr(row, column, value)
        self.memory.send(self.family, row)
        return row

    def signal(self, name: str, payload: Json = None) -> Changes:
        self.send(DeliveryKind.SIGNAL, name, payload)
        return self.tell(Delivered())

    def emit(self, name: str, payload: JsonObject, source: str = "e1", *, is_kept: bool = True) -> None:
        """Publish an event: it is kept, and addressed to who waits for it now."""
        emitted = Emit(name, payload, source, self.now)
        self.memory.emits.append(emitted)
        stamps.match_events(self.memory, self.now)
        if not is_kept:
            self.memory.emits.remove(emitted)

    def pass_time(self, seconds: float) -> int:
        """Move the clock and stamp what is due; how many waits that were."""
        self.now += timedelta(seconds=seconds)
        return stamps.stamp_due(self.family, self.now)


def list_arrows(changes: Changes) -> Iterator[Arrow]:
    """From which status to which each row went, in all."""
    before = changes.before
    yield "instance", before.instance.status, changes.instance.status
    for step in (*changes.steps, *changes.new_steps):
        old = before.steps.get(step.id) or before.cancelled.get(step.id)
        yield "step", (old.status if old else None), step.status
    for wait in (*changes.waits, *changes.new_waits):
        known = before.waits.get(wait.id)
        yield "wait", (known.status if known else None), wait.status


def describe(changes: Changes) -> Any:
    """All that a decision comes to, to be compared."""
    rows: list[Any] = [changes.instance, *changes.steps, *changes.new_steps, *changes.waits, *changes.new_waits]
    rows += [*changes.deliveries, *changes.new_deliveries, *changes.events, *changes.failures]
    rows += [*changes.scopes, *changes.new_scopes, *changes.compensations, *changes.new_compensations]
    told = [(grant.step.id, grant.input) for grant in changes.claimed], [step.id for step in changes.ready]
    return deepcopy(([vars(row) for row in rows], told, changes.transitions, changes.dropped))


def dump(snapshot: Snapshot) -> Any:
    """All that a snapshot holds, to be compared."""
    rows: list[Any] = [snapshot.instance, *snapshot.steps.values(), *snapshot.waits.values(), *snapshot.deliveries]
    rows += [*snapshot.scopes.values(), *snapshot.halted.values(), *snapshot.cancelled.values()]
    rows += [*snapshot.compensations.values()]
    rows += [snapshot.failed] if snapshot.failed else []
    return deepcopy(([vars(row) for row in rows], list(snapshot.steps), list(snapshot.waits), snapshot.ended))


def get_time(seconds: float) -> datetime:
    """Seconds after the beginning of a run."""
    return handlers.at(seconds)
