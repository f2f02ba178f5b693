"""Several runs of several graphs, driven through the real core with their rows in memory: parents and children."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ulid import ULID

from korak.core.changes import Changes
from korak.core.decide import decide
from korak.core.facts import Claimed, Delivered, Depend, Fact, Finished, HandlerResult, Spawn, Started
from korak.core.opening import Opening, Owner, Version, open_instance
from korak.core.rows import Delivery, Instance, StepRun
from korak.core.snapshot import Claimant, Policy
from korak.graphs.plans import Plan
from korak.model import DeliveryKind, InstanceStatus, Json, JsonObject, TriggerKind
from korak.steps.children import Awaiting, Collecting, Starting, collect
from korak.steps.results import Complete
from korak.store.sealing import seal
from tests.support import handlers, ties
from tests.support.memory import Counter, Family, Memory
from tests.support.plans import plan_of

OWNER = Owner("team:1", "team", "1")


class Kin:
    """Graphs by their keys. Every fact is decided from a fresh load and written; nothing happens by itself."""

    def __init__(self, *documents: JsonObject, policy: Policy | None = None) -> None:
        self.memory = Memory(policy)
        self.now = handlers.at(0)
        self.ids = Counter(self.memory)
        self.versions: dict[str, Version] = {}
        self._tokens = 0
        for number, document in enumerate(documents, 1):
            plan: Plan = plan_of(document)
            self.memory.plans[number] = plan
            self.versions[plan.key] = Version(number, number, "0" * 64, plan)

    def start(self, key: str, given: JsonObject | None = None) -> str:
        """A run of its own."""
        opening = Opening(str(ULID()), self.versions[key], OWNER, given or {})
        self.write(decide(open_instance(opening, self.memory.policy, self.now), Started(), self.now))
        return opening.ulid

    def get(self, ulid: str) -> Family:
        return self.memory.find_ulid(ulid)

    def instance(self, ulid: str) -> Instance:
        return self.get(ulid).instance

    def children(self, ulid: str) -> list[str]:
        """The runs that it has started, in order."""
        parent = self.instance(ulid).id
        rows = [family.instance for family in self.memory.families.values()]
        return [row.ulid for row in rows if getattr(row, "parent_instance_id", None) == parent]

    def tell(self, ulid: str, fact: Fact, closed: Sequence[int] = ()) -> Changes:
        """Decide and write."""
        instance_id = self.instance(ulid).id
        return self.write(decide(self.memory.load(instance_id, closed), fact, self.now))

    def write(self, changes: Changes) -> Changes:
        seal(changes, self.ids)
        assert changes.is_empty or self.memory.apply(changes)
        return changes

    def claim(self, ulid: str, step: StepRun) -> Changes:
        self._tokens += 1
        claimant = Claimant(7, f"T{self._tokens}", frozenset({"default"}), lambda key, version: True)
        return self.tell(ulid, Claimed(step.id, claimant))

    def finish(self, ulid: str, step: StepRun, result: HandlerResult) -> Changes:
        return self.tell(ulid, Finished(step.id, step.claim_token or "", result), (step.id,))

    def work(self, ulid: str) -> bool:
        """Claim one ready step of a run and record what its handler comes to; whether there was one."""
        ready = [step for step in self.get(ulid).live if step.ready_at is not None]
        if not ready:
            return False
        changes = self.claim(ulid, ready[0])
        for grant in changes.claimed:
            asked = handlers.run(grant, is_raw=True)
            self.finish(ulid, grant.step, self.settle(ulid, asked))
        return True

    def settle(self, ulid: str, asked: Any) -> HandlerResult:
        """What an engine looks up for a step, before its record."""
        match asked:
            case Starting():
                ulids = [str(ULID()) for _ in asked.inputs]
                openings = tuple(
                    Opening(
                        own,
                        self.versions[asked.definition],
                        OWNER,
                        given,
                        trigger=TriggerKind.WORKFLOW,
                        trigger_key=asked.group,
                    )
                    for own, given in zip(ulids, asked.inputs, strict=True)
                )
                told: list[Json] = [*asked.before, *ulids]
                output: JsonObject = {asked.result_key: told[0] if asked.is_single else told}
                return Spawn(
                    openings, output, len(asked.before), asked.rest, awaits=asked.awaits, timeout=asked.timeout
                )
            case Awaiting():
                return Depend(asked.ulids, asked.mode, asked.quorum, asked.timeout)
            case Collecting():
                rows = {ulid: self.instance(ulid) for ulid in asked.ulids}
                done = {ulid: row.result for ulid, row in rows.items() if row.status is InstanceStatus.COMPLETED}
                return Complete(output=collect(asked, done))
            case _:
                result: HandlerResult = asked
                return result

    def deliver(self, ulid: str) -> bool:
        """Hand out what lies there; whether there was anything."""
        family = self.get(ulid)
        lies = [row for row in family.signals.values() if row.taken_at is None and row.buffered_at is None]
        before = len(lies)
        if lies:
            self.tell(ulid, Delivered())
        lies = [row for row in self.get(ulid).signals.values() if row.taken_at is None and row.buffered_at is None]
        return len(lies) < before

    def look(self) -> bool:
        """Tell those who wait for runs that have ended; whether anybody was told."""
        told = False
        for row in list(self.memory.dependencies):
            [awaited] = [each.instance for each in self.memory.families.values() if each.instance.id == row.awaited_id]
            if awaited.ended_at is None:
                continue
            family = self.memory.families[row.instance_id]
            source = ties.name_end(awaited)
            delivery = Delivery(0, row.instance_id, "*", DeliveryKind.ENDED, source, self.now)
            delivery.step_run_id, delivery.wait_id = row.step_run_id, row.wait_id
            delivery.payload = {"instance": awaited.ulid, "status": awaited.status}
            told = self.memory.send(family, delivery) or told
        return told

    def cascade(self) -> bool:
        """Bring commands to all children; whether there were any."""
        count = 0
        while ties.advance_cascade(self.memory, self.now, 500) is not None:
            count += 1
        return count > 0

    def drain(self) -> None:
        """Go on until nothing moves by itself."""
        is_moving = True
        while is_moving:
            is_moving = self.look() or self.cascade()
            for family in list(self.memory.families.values()):
                ulid = family.instance.ulid
                is_moving = self.deliver(ulid) or is_moving
                while self.work(ulid):
                    is_moving = True
