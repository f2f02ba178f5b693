"""Claiming: deliveries that are there become one claim transaction, and are acked once it has committed."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence

from korak.broker.messages import Message, ResumeStep, RunStep
from korak.broker.port import Consumer, Delivery
from korak.core.changes import Changes
from korak.core.facts import Claimed
from korak.core.rows import StepRun
from korak.errors import TransientError
from korak.store.transacting import Skipped
from korak_engine.desk import Desk
from korak_engine.entries import MOST_SKIPS, Nudge, adopt
from korak_engine.identity import Identity
from korak_engine.lining import Line, arrange
from korak_engine.repeating import settle_all
from korak_engine.sights import Sights
from korak_engine.slots import Slots

log: logging.Logger = logging.getLogger(__name__)


Granted = Callable[[Changes], None]
"""Told, after the commit, of every claim that made a step running."""


class Inbox:
    """The nudges that wait for a claim: from deliveries, and from steps that this engine parked itself."""

    def __init__(self, slots: Slots, limit: int) -> None:
        self._slots = slots
        self._limit = limit
        self._nudges: deque[Nudge] = deque()
        self._deliveries: list[Delivery] = []
        self._arrived = asyncio.Event()

    @property
    def is_empty(self) -> bool:
        """Whether nobody waits for a slot here."""
        return not self._nudges

    def keep(self, steps: Sequence[StepRun]) -> None:
        """Steps that were parked by this engine and are to be looked at again at once."""
        self.put([Nudge(step.id) for step in steps])

    def put(self, nudges: Sequence[Nudge]) -> None:
        """More to claim."""
        self._slots.reserve(len(nudges))
        self._nudges.extend(nudges)
        self._arrived.set()

    def deliver(self, delivery: Delivery, step_ids: Sequence[int]) -> None:
        """A delivery of which these steps are claimed here."""
        self._deliveries.append(delivery)
        self.put([Nudge(step_id) for step_id in step_ids])

    async def take(self) -> tuple[list[Nudge], list[Delivery]]:
        """The nudges that are there, up to the limit, and the deliveries that they came with."""
        while not self._nudges:
            self._arrived.clear()
            await self._arrived.wait()
        nudges = [self._nudges.popleft() for _ in range(min(self._limit, len(self._nudges)))]
        deliveries = [] if self._nudges else self._deliveries
        if deliveries:
            self._deliveries = []
        return nudges, deliveries


async def feed(consumer: Consumer, inbox: Inbox, slots: Slots, is_claiming: Callable[[], bool], limit: int) -> None:
    """Take messages while there are free slots; what a message holds beyond them goes back."""
    while True:
        free = min(limit, await slots.wait_for_free())
        deliveries = await consumer.get(free)
        if not deliveries:
            return
        for delivery in deliveries:
            step_ids = get_steps(delivery.message)
            count = min(len(step_ids), max(slots.free, 0)) if is_claiming() else 0
            if count == 0:
                await _give_back(delivery, None)
                continue
            if count < len(step_ids):
                await _give_back(delivery, get_rest(delivery.message, count))
            inbox.deliver(delivery, step_ids[:count])


async def _give_back(delivery: Delivery, rest: Message | None) -> None:
    try:
        await delivery.give_back(rest)
    except TransientError as error:
        log.warning("a message couldn't be given back: %s", error.message)


def get_steps(message: Message) -> tuple[int, ...]:
    """The steps that a message nudges for."""
    match message:
        case RunStep(step_runs):
            return tuple(step_runs)
        case ResumeStep(waits):
            return tuple(dict.fromkeys(step for step, *_ in waits))
        case _:
            return ()


def get_rest(message: Message, count: int) -> Message:
    """What is left of a message when its first `count` steps are taken."""
    kept = set(get_steps(message)[:count])
    match message:
        case ResumeStep(waits):
            return ResumeStep(tuple(wait for wait in waits if wait[0] not in kept))
        case RunStep(step_runs):
            return RunStep(tuple(step for step in step_runs if step not in kept))
        case _:
            return message


class Claimer:
    """One worker that claims. What is ready of an instance that runs here is handed to those who write that: two who
    move one instance at a time would only make each other look again.
    """

    def __init__(
        self, desk: Desk, identity: Identity, slots: Slots, sights: Sights, line: Line, *, granted: Granted
    ) -> None:
        self._hot = desk.hot
        self._transactor = desk.transactor
        self._dispatcher = desk.dispatcher
        self._clock = desk.clock
        self._measure = desk.measure
        self._identity = identity
        self._slots = slots
        self._sights = sights
        self._line = line
        self._granted = granted

    async def work(self, inbox: Inbox) -> None:
        """Claim for ever. A fault that passes repeats what wasn't answered, with the tokens that it had."""
        handed: list[Nudge] = []
        async with asyncio.TaskGroup() as acking:
            while True:
                batch, deliveries = await inbox.take()
                await settle_all(batch, self._claim, self._give_up, "steps wait to be claimed")
                handed += [nudge for nudge in batch if nudge.answered is not None]
                if deliveries:
                    acking.create_task(_ack(deliveries, handed))
                    handed = []

    async def _claim(self, batch: Sequence[Nudge]) -> list[Nudge]:
        """Claim what can be; the nudges that others kept us from."""
        left: list[Nudge] = []
        with self._measure("claim", len(batch)):
            found = await self._find(batch)
            for part, patience in arrange(found, lambda nudge: nudge.instance_id):
                left += await self._answer(part, patience)
        return left

    async def _find(self, batch: Sequence[Nudge]) -> list[Nudge]:
        unknown = [nudge.step_id for nudge in batch if nudge.fact is None]
        instances = await self._find_instances(unknown) if unknown else {}
        found = []
        for nudge in batch:
            if nudge.answered is not None:
                continue
            if nudge.fact is None:
                nudge.instance_id = instances.get(nudge.step_id, 0)
                nudge.fact = Claimed(nudge.step_id, self._identity.get_claimant())
            if not nudge.instance_id or self._slots.runs(nudge.step_id):
                self._settle(nudge)
            elif self._sights.find(nudge.instance_id) is not None:
                nudge.answered = asyncio.get_running_loop().create_future()
                self._line.put(nudge)
            else:
                found.append(nudge)
        return found

    async def _find_instances(self, step_ids: Sequence[int]) -> dict[int, int]:
        async with self._hot.alone() as runner:
            rows = await runner.fetch("steps_find", ids=step_ids)
        return {row["id"]: row["instance_id"] for row in rows}

    def _settle(self, nudge: Nudge) -> None:
        if not nudge.is_settled:
            nudge.settle()
            self._slots.release(1)

    def _give_up(self, nudge: Nudge) -> None:
        if nudge.answered is None:
            self._settle(nudge)

    async def _answer(self, batch: Sequence[Nudge], patience: float | None) -> list[Nudge]:
        asks = [nudge.ask for nudge in batch]
        answers = await self._transactor.answer(asks, self._clock.now(), patience=patience)
        left: list[Nudge] = []
        done: list[Changes] = []
        for nudge, answer in zip(batch, answers, strict=True):
            match answer:
                case Skipped() if nudge.skips < MOST_SKIPS:
                    nudge.skips += 1
                    left.append(nudge)
                    continue
                case Changes():
                    done.append(adopt(answer, nudge.fact))
            self._settle(nudge)
        for changes in done:
            self._sights.see(changes.after)
            if changes.claimed:
                self._granted(changes)
        await self._dispatcher.send(done)
        return left


async def _ack(deliveries: Sequence[Delivery], handed: Sequence[Nudge]) -> None:
    """Ack once all that came with them is answered, those that were handed on too."""
    await asyncio.gather(*(nudge.answered for nudge in handed if nudge.answered is not None))
    for delivery in deliveries:
        await delivery.ack()
