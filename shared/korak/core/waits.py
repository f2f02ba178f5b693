"""The part of a draft that keeps what its steps wait for, and what was delivered to the instance."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from korak.core import transitions
from korak.core.rows import Delivery, Instance, StepRun, Wait, copy
from korak.core.snapshot import Snapshot
from korak.model import WaitKind, WaitStatus


class Waits:
    """The open waits and the deliveries that nobody has taken, by id; each is copied when it is first edited."""

    def __init__(self, snapshot: Snapshot, now: datetime) -> None:
        self.now = now
        self.instance: Instance = copy(snapshot.instance)
        self.waits: dict[int, Wait] = dict(snapshot.waits)
        self.deliveries: dict[int, Delivery] = {delivery.id: delivery for delivery in snapshot.deliveries}
        self._edited_waits: dict[int, Wait] = {}
        self._new_waits: list[Wait] = []
        self._edited_deliveries: dict[int, Delivery] = {}
        self._new_deliveries: list[Delivery] = []
        self._last_id = 0

    def make_id(self) -> int:
        """An id of the draft's own, until the store has given the row another one."""
        self._last_id -= 1
        return self._last_id

    def list_waits(self, step: StepRun) -> list[Wait]:
        """The open waits of an attempt, oldest first."""
        return [wait for wait in self.waits.values() if wait.step_run_id == step.id]

    def edit_wait(self, wait: Wait) -> Wait:
        """The wait's copy that may be changed."""
        if wait.id < 0:
            return wait
        if wait.id not in self._edited_waits:
            self._edited_waits[wait.id] = self.waits[wait.id] = copy(wait)
        return self._edited_waits[wait.id]

    def move_wait(self, wait: Wait, to: WaitStatus) -> Wait:
        """The wait with its new status, by an arrow that is drawn. One that isn't open leaves the waits."""
        wait = self.edit_wait(wait)
        transitions.check(transitions.WAIT, wait.status, to)
        wait.status = to
        if to is not WaitStatus.PENDING:
            wait.sent_at = None
        if to is WaitStatus.FIRED:
            wait.fired_at = self.now
        if to in (WaitStatus.FIRED, WaitStatus.CANCELLED):
            wait.remaining = None
            self.waits.pop(wait.id, None)
        return wait

    def add_wait(self, step: StepRun, kind: WaitKind, **columns: Any) -> Wait:
        """A new pending wait of the attempt."""
        wait = Wait(
            id=self.make_id(),
            instance_id=self.instance.id,
            step_run_id=step.id,
            owner_scope=self.instance.owner_scope,
            kind=kind,
            created_at=self.now,
            **columns,
        )
        wait.status = WaitStatus.PENDING
        self.waits[wait.id] = wait
        self._new_waits.append(wait)
        return wait

    def cancel_waits(self, step: StepRun) -> None:
        """End every open wait of the attempt (WT-6, WT-7)."""
        for wait in self.list_waits(step):
            self.move_wait(wait, WaitStatus.CANCELLED)

    def take(self, delivery: Delivery) -> None:
        """The delivery has done its work, or never will: it is taken, once."""
        self._edit_delivery(delivery).taken_at = self.now
        self.deliveries.pop(delivery.id, None)

    def discard(self, delivery: Delivery) -> None:
        """The signal was for a visit that waits for it no more: it is taken, and came to nothing."""
        self._edit_delivery(delivery).discarded_at = self.now
        self.take(delivery)

    def buffer(self, delivery: Delivery) -> None:
        """A signal for nobody yet: kept until a wait of its name parks."""
        if delivery.buffered_at is None:
            self._edit_delivery(delivery).buffered_at = self.now

    def add_taken(self, delivery: Delivery) -> None:
        """A row that nobody has sent, taken as it is made."""
        delivery.taken_at = self.now
        self._new_deliveries.append(delivery)

    def _edit_delivery(self, delivery: Delivery) -> Delivery:
        if delivery.id not in self._edited_deliveries:
            self._edited_deliveries[delivery.id] = self.deliveries[delivery.id] = copy(delivery)
        return self._edited_deliveries[delivery.id]
