"""Matching events to waits: the deliveries are committed page by page, then the engines are nudged."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from datetime import datetime

from korak.broker.messages import ResumeStep
from korak.broker.port import Broker
from korak.errors import TransientError
from korak.model import SignalKind
from korak.store import emits
from korak.store.database import Database, Session
from korak.store.emits import PAGE, Page
from korak.store.gates import Gate

log: logging.Logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Match:
    """What an event came to: the deliveries that were made now, and the instances whose steps others held.

    These have their delivery; `Delivered`, decided under their lock, hands it out.
    """

    matched: int = 0
    missed: set[int] = field(default_factory=set)


class Matcher:
    """Matches events. Any number of them may be at one event: one is, and what it leaves the next one finds."""

    def __init__(self, database: Database, broker: Broker, gate: Gate) -> None:
        self._database = database
        self._broker = broker
        self._gate = gate

    async def match(self, emit_id: int, now: datetime, *, size: int = PAGE) -> Match:
        """Deliver a kept event to every wait that it fits. Raises TransientError; repeated, it goes on."""
        match, after = Match(), 0
        while True:
            async with self._database.transaction() as connection:
                page = await emits.match_page(
                    Session(connection), emit_id, after, now, may_send=self._may_send, size=size
                )
            await self._nudge(page)
            match.matched += page.matched
            match.missed |= page.missed
            after = page.last
            if page.is_last:
                return match

    def _may_send(self, queue: str) -> bool:
        return not self._broker.pulls and self._gate.take(queue)

    async def _nudge(self, page: Page) -> None:
        """A nudge that is lost costs time, never a delivery."""
        pulls = self._broker.pulls
        for queue, steps in page.roused.items():
            sent = tuple((step, wait, SignalKind.EVENT) for step, wait, is_sent in steps if is_sent or pulls)
            try:
                if sent:
                    await self._broker.send(queue, [ResumeStep(sent)])
                if not pulls:
                    await self._gate.refresh([queue])
            except TransientError as error:
                log.warning("a nudge was lost: %s", error.message)
