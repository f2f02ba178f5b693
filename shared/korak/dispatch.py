"""Nudging engines about ready steps: stamped in the transaction that makes them ready, sent after its commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from korak.broker.messages import Message, ResumeStep, RunStep
from korak.broker.port import Broker
from korak.core.changes import Changes, spread
from korak.core.rows import StepRun
from korak.errors import TransientError
from korak.model import Probe, SignalKind, StepStatus
from korak.store.gates import Gate

log: logging.Logger = logging.getLogger(__name__)


class Keeper(Protocol):
    """An engine that claims what it parked itself, without a message."""

    def wants(self, step: StepRun) -> bool:
        """Whether it claims this ready step itself."""
        ...

    def keep(self, steps: Sequence[StepRun]) -> None:
        """These are committed: claim them."""
        ...


class Listener(Protocol):
    """Whoever is to know what is committed."""

    def hear(self, batch: Iterable[Changes]) -> None:
        """These are."""
        ...


class Dispatcher:
    """Sends what became ready. A message that is lost costs time, never a step: the waker sends again (JB-10).

    Steps that the `keeper` wants are stamped like sent ones and handed to it instead.
    """

    def __init__(
        self, broker: Broker, gate: Gate, keeper: Keeper | None = None, listener: Listener | None = None
    ) -> None:
        self._broker = broker
        self._gate = gate
        self._keeper = keeper
        self._listener = listener

    async def prepare(self, batch: Iterable[Changes]) -> None:
        """Learn, before a transaction begins, how much room the queues of these changes have."""
        if not self._broker.pulls:
            await self._gate.refresh({step.queue for changes in spread(batch) for step in changes.ready})

    def stamp(self, changes: Changes) -> None:
        """Mark the ready steps that there is room for as sent; the others wait for the releaser."""
        for step in (step for each in spread((changes,)) for step in each.ready):
            if step.sent_at is None and (self._is_kept(step) or self._may_send(step)):
                step.sent_at = step.ready_at

    def rouse(self, steps: Sequence[StepRun], now: datetime) -> None:
        """Mark the steps that got ready because others made room: sent at once as far as there is room for them."""
        for step in steps:
            if self._may_send(step):
                step.sent_at = now

    def _is_kept(self, step: StepRun) -> bool:
        return self._keeper is not None and self._keeper.wants(step)

    def _may_send(self, step: StepRun) -> bool:
        return not self._broker.pulls and self._gate.take(step.queue)

    async def send(self, batch: Iterable[Changes]) -> None:
        """After the commit: nudge for the ready steps, and tell which instances have ended. Never raises."""
        batch = list(spread(batch))
        if self._listener is not None:
            self._listener.hear(batch)
        ready = self._sort(batch)
        ended = [changes.instance.ulid for changes in batch if changes.is_ended]
        try:
            for queue, steps in ready.items():
                await self._broker.send(queue, get_messages(steps))
            if ended:
                await self._broker.publish_ended(ended)
        except TransientError as error:
            log.warning("a nudge was lost: %s", error.message)

    def _sort(self, batch: Iterable[Changes]) -> dict[str, list[StepRun]]:
        """The ready steps to nudge for, by queue; what the keeper wants is handed to it."""
        ready: dict[str, list[StepRun]] = {}
        kept: list[StepRun] = []
        for step in (step for changes in batch for step in (*changes.ready, *changes.roused)):
            if self._is_kept(step):
                kept.append(step)
            elif self._broker.pulls or step.sent_at is not None:
                ready.setdefault(step.queue, []).append(step)
        if self._keeper is not None and kept:
            self._keeper.keep(kept)
        return ready


def get_messages(steps: Sequence[StepRun]) -> list[Message]:
    """The messages that nudge for these steps: RunStep for queued ones, ResumeStep for waiting ones."""
    queued = tuple(step.id for step in steps if step.status is StepStatus.QUEUED)
    waiting: tuple[tuple[int, int | None, SignalKind], ...] = tuple(
        (step.id, None, _get_kind(step)) for step in steps if step.status is StepStatus.WAITING
    )
    messages: list[Message] = []
    if queued:
        messages.append(RunStep(queued))
    if waiting:
        messages.append(ResumeStep(waiting))
    return messages


def _get_kind(step: StepRun) -> SignalKind:
    return SignalKind.PROBE if step.probe is Probe.RESUME else SignalKind.SIGNAL
