"""One pass at one time: what its stages share, and how facts are answered so that a bad row stops no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from korak.answering import Answerer
from korak.broker.messages import RunStep
from korak.broker.port import Broker
from korak.dispatch import Dispatcher
from korak.errors import TransientError
from korak.matching import Matcher
from korak.metrics import Metrics
from korak.store.database import Hot, Runner
from korak.store.transacting import Ask
from korak_waker.report import Report

log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """How a waker works: rows of a batch; seconds of the rest.

    A command that lies there is looked at after `soon`, an event that isn't matched to its end after `unmatched`.
    """

    batch: int = 500
    requeue_after: float = 30.0
    lease: float = 60.0
    grace: float = 30.0
    soon: float = 1.0
    unmatched: float = 5.0
    starts: int | None = None
    """Starts a minute that the engine lets a definition have, where it sets a limit."""
    key_ttl: timedelta = timedelta(days=30)
    event_ttl: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a waker works with, from pass to pass. `runner` commits each statement alone, `hot` many together."""

    runner: Runner
    hot: Hot
    answerer: Answerer
    dispatcher: Dispatcher
    matcher: Matcher
    broker: Broker
    metrics: Metrics
    limits: Limits


@dataclass(eq=False)
class Pass:
    """One pass. Everything in it happens at `now` (WK-3). `queues` are those with something ready for their engines.

    `may_reclaim` is taken back where the database is lost on the way, unless somebody asked for it by hand.
    """

    now: datetime
    tools: Tools
    may_reclaim: bool
    is_asked: bool = False
    report: Report = field(default_factory=Report)
    queues: set[str] = field(default_factory=set)

    @property
    def runner(self) -> Runner:
        """Runs statements, each a transaction of its own."""
        return self.tools.runner

    @property
    def limits(self) -> Limits:
        """How much at once, and after how long."""
        return self.tools.limits

    def ago(self, seconds: float) -> datetime:
        """So long before this pass."""
        return self.now - timedelta(seconds=seconds)

    async def answer(self, asks: Sequence[Ask]) -> int:
        """Answer facts, one an instance at a time; how many changed something. What others hold is left for later."""
        changed = 0
        rest = list(asks)
        while rest:
            batch = {ask.instance_id: ask for ask in reversed(rest)}
            answered = await self.tools.answerer.answer(list(batch.values())[::-1], self.now)
            self.report.errors += answered.errors
            changed += answered.changed
            rest = [ask for ask in rest if batch[ask.instance_id] is not ask]
        return changed

    async def nudge(self) -> None:
        """Tell engines that pull of the queues in which something became ready. A nudge that is lost costs a second."""
        queues, self.queues = self.queues, set()
        if not self.tools.broker.pulls:
            return
        for queue in sorted(queues):
            try:
                await self.tools.broker.send(queue, [RunStep((1,))])
            except TransientError as error:
                log.warning("nudge_lost", queue=queue, why=error.message)
