"""What is ready of an instance that runs here is claimed by those who write what becomes of it, from what they know."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from korak.broker.messages import Message, RunStep
from korak.core.changes import Changes
from korak.core.facts import Claimed
from korak.core.snapshot import Claimant, Snapshot
from korak.model import DeliveryKind, InstanceStatus
from korak.store import signals
from korak.store.signals import Sending
from korak_engine.claiming import Claimer, Inbox
from korak_engine.entries import Entry, Nudge
from korak_engine.identity import Identity
from korak_engine.lining import Line
from korak_engine.recording import Recorder
from korak_engine.sights import Sights
from korak_engine.slots import Slots
from korak_engine.work import Work
from tests.integration.engine.test_repeating import open_desk
from tests.support.bodies import body, node, parallel
from tests.support.flows import NOW, Flows, chain, open_flows
from tests.support.waiting import eventually

READY = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null order by id"
BRANCHES = {name: body(node(f"n{name}", "test.work")) for name in ("a", "b", "c")}
SIZE = 10


@dataclass(eq=False)
class Paper:
    """A delivery that remembers whether it was acked."""

    message: Message
    traceparent: str | None = None
    acks: int = 0

    async def ack(self) -> bool:
        """Acked."""
        self.acks += 1
        return True

    async def give_back(self, rest: Message | None = None) -> None:
        """Never asked for here."""
        raise AssertionError(rest)


@dataclass(eq=False)
class Hands:
    """A claimer and a recorder of one engine that runs one branch of an instance."""

    flows: Flows
    inbox: Inbox
    line: Line
    recorder: Recorder
    granted: list[Changes]
    told: list[tuple[Entry, Changes | None]]
    seen: Snapshot
    slots: Slots
    instance: int = 0
    others: list[int] = field(default_factory=list)

    async def deliver(self) -> Paper:
        """The other branches' steps arrive in a message."""
        paper = Paper(RunStep(tuple(self.others)))
        self.inbox.deliver(paper, self.others)
        await eventually(lambda: self.inbox.is_empty)
        return paper


@asynccontextmanager
async def hands(url: str) -> AsyncIterator[Hands]:
    async with open_flows(url) as flows, open_desk(url) as desk, open_desk(url) as other:
        version = await flows.publish(chain(parallel("each", **BRANCHES)))
        [instance] = await flows.start(version, 1)
        engine = await flows.register()
        seen = await run_one(flows, instance, engine)
        sights, slots, line = Sights(), Slots(SIZE), Line(SIZE)
        sights.hold(seen)
        granted: list[Changes] = []
        told: list[tuple[Entry, Changes | None]] = []
        identity = Identity(frozenset({"default"}), lambda key, version: True, engine, is_open=True)
        claimer = Claimer(desk, identity, slots, sights, line, granted=granted.append)
        inbox = Inbox(slots, SIZE)
        recorder = Recorder(other, lambda entry, changes: told.append((entry, changes)), sights)
        working = asyncio.create_task(claimer.work(inbox))
        others = [row["id"] for row in await flows.fetch(READY, instance)]
        yield Hands(flows, inbox, line, recorder, granted, told, seen, slots, instance, others)
        working.cancel()


async def run_one(flows: Flows, instance: int, engine: int) -> Snapshot:
    """Claim the first branch's step; what its engine knows of the instance then."""
    first = await flows.get(READY, instance)
    claimant = Claimant(engine, "first", frozenset({"default"}), lambda key, version: True)
    return (await flows.answer(instance, Claimed(first, claimant), NOW)).after


async def test_they_are_claimed_without_a_look_and_acked_when_that_is_committed(database_url: str) -> None:
    async with hands(database_url) as held:
        paper = await held.deliver()
        assert (paper.acks, held.granted) == (0, [])
        async with recording(held):
            await eventually(lambda: paper.acks == 1)
        claims = [changes for entry, changes in held.told if isinstance(entry, Nudge) and changes]
        assert sorted(grant.step.id for changes in claims for grant in changes.claimed) == held.others
        assert claims[0].before is held.seen
        statuses = "select status from workflow_step_runs where id = any($1)"
        assert {row["status"] for row in await held.flows.fetch(statuses, held.others)} == {"running"}


@pytest.mark.parametrize("is_settled", [True, False], ids=["being_recorded", "at_work"])
async def test_what_is_ready_again_before_its_slot_is_free_isn_t_lost(database_url: str, *, is_settled: bool) -> None:
    """A nudge comes while the record that made the step ready still tells others; one for what is at work is stale."""
    async with hands(database_url) as held:
        again = held.others[0]
        held.slots.put(Work(held.seen.steps[again], {}, held.seen, 1, is_settled=is_settled))
        paper = await held.deliver()
        async with recording(held):
            await eventually(lambda: paper.acks == 1)
        claims = [changes for entry, changes in held.told if isinstance(entry, Nudge) and changes]
        claimed = {grant.step.id for changes in claims for grant in changes.claimed}
        assert claimed == set(held.others if is_settled else held.others[1:])


async def test_what_is_addressed_to_the_instance_is_obeyed_first(database_url: str) -> None:
    async with hands(database_url) as held:
        await held.deliver()
        sending = Sending(held.instance, "*", DeliveryKind.CANCEL, "c1", None, {"reason": None}, None)
        async with held.flows.database.transaction() as connection:
            await signals.send(connection, sending, now=NOW)
        async with recording(held):
            await eventually(lambda: len(held.told) == len(held.others))
        assert [changes.claimed for _, changes in held.told if changes] == [[], []]
        row = await held.flows.get_instance(held.instance)
        assert row["status"] == InstanceStatus.CANCELLED


@asynccontextmanager
async def recording(held: Hands) -> AsyncIterator[None]:
    working = asyncio.create_task(held.recorder.work(held.line))
    yield
    working.cancel()


async def test_of_many_that_run_half_are_written_at_a_time() -> None:
    line = Line(1_000, lambda instance_id: 100 if instance_id == 1 else 2)
    for step in range(120):
        line.put(Nudge(step, instance_id=1))
    for step in range(10):
        line.put(Nudge(step, instance_id=2))
    batch = await line.take()
    assert [sum(entry.instance_id == which for entry in batch) for which in (1, 2)] == [50, 10]
    line.release(batch)
    again = await line.take()
    assert [entry.step_id for entry in again if isinstance(entry, Nudge)] == list(range(50, 100))
