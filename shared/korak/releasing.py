"""From ready to sent: engines pull their steps from the database, or a releaser fills their queues at RabbitMQ."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import assert_never

from korak.broker.messages import FireEscalation, Message, ResumeStep, RunStep
from korak.broker.port import Broker
from korak.clock import Clock
from korak.errors import TransientError
from korak.model import Probe, SignalKind, StepStatus
from korak.store.database import Database
from korak.store.releasing import Released, Turns, get_room, list_backlogs, lock_queue, unstamp
from korak.store.single import Single

log: logging.Logger = logging.getLogger(__name__)

ROUNDS = 20
"""How many batches one call sends of one queue, so that a fast fleet doesn't keep the others waiting."""


class Puller:
    """Ready steps for engines that pull them (`korak.broker.port.Puller`). It holds a connection of its own."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._runner = Single(database)
        self._clock = clock
        self._turns: dict[str, Turns] = {}
        self._first = 0

    async def pull(self, queues: Sequence[str], limit: int) -> list[Message]:
        """See `korak.broker.port.Puller`. Each call begins at another queue, so that none has to wait for ever."""
        released: list[Released] = []
        self._first += 1
        for place in range(len(queues)):
            if len(released) >= limit:
                break
            queue = queues[(self._first + place) % len(queues)]
            turns = self._turns.setdefault(queue, Turns(queue))
            released += await turns.release(self._runner, limit - len(released), self._clock.now())
        return list_messages(released)

    async def unstamp(self, messages: Sequence[Message]) -> None:
        """See `korak.broker.port.Puller`."""
        await unstamp(self._runner, [step for message in messages for step in _get_steps(message)])

    async def close(self) -> None:
        """Let the connection go."""
        await self._runner.close()


class Releaser:
    """Fills the queues at RabbitMQ from their backlogs, each up to its bound, one releaser a queue at a time."""

    def __init__(self, database: Database, broker: Broker, batch: int) -> None:
        self._runner = Single(database)
        self._broker = broker
        self._batch = batch
        self._turns: dict[str, Turns] = {}
        self.has_backlog: bool = False

    async def run_once(self, now: datetime) -> int:
        """Send what there is room for; how many ids that were. `has_backlog` tells whether more stands ready."""
        self.has_backlog = False
        if self._broker.pulls or not self._broker.is_connected:
            return 0
        queues = await list_backlogs(self._runner)
        self.has_backlog = bool(queues)
        return sum([await self._fill(queue, now) for queue in queues])

    async def close(self) -> None:
        """Let the connection go."""
        await self._runner.close()

    async def _fill(self, queue: str, now: datetime) -> int:
        turns = self._turns.setdefault(queue, Turns(queue))
        sent = 0
        for _ in range(ROUNDS):
            released = await self._release(turns, now)
            if not released or not await self._send(queue, released):
                break
            sent += len(released)
        return sent

    async def _release(self, turns: Turns, now: datetime) -> list[Released]:
        async with self._runner.transaction() as runner:
            if not await lock_queue(runner, turns.queue):
                return []
            count = min(self._batch, await get_room(runner, turns.queue))
            return await turns.release(runner, count, now) if count > 0 else []

    async def _send(self, queue: str, released: Sequence[Released]) -> bool:
        try:
            await self._broker.send(queue, list_messages(released))
        except TransientError as error:
            log.warning("the backlog of %s couldn't be sent: %s", queue, error.message)
            await unstamp(self._runner, [step.id for step in released])
            return False
        return True


def list_messages(steps: Sequence[Released]) -> list[Message]:
    """The messages that nudge for these steps, in their order: RunStep for queued ones, ResumeStep for waiting ones."""
    queued = tuple(step.id for step in steps if step.status is StepStatus.QUEUED)
    waiting: tuple[tuple[int, int | None, SignalKind], ...] = tuple(
        (step.id, None, SignalKind.PROBE if step.probe is Probe.RESUME else SignalKind.SIGNAL)
        for step in steps
        if step.status is StepStatus.WAITING
    )
    messages: list[Message] = []
    if queued:
        messages.append(RunStep(queued))
    if waiting:
        messages.append(ResumeStep(waiting))
    return messages


def _get_steps(message: Message) -> tuple[int, ...]:
    match message:
        case RunStep(step_runs):
            return step_runs
        case ResumeStep(waits):
            return tuple(wait[0] for wait in waits)
        case FireEscalation():
            return ()
        case _:
            assert_never(message)
