"""The wake pass: what is due, lost or over becomes ready again, in the order of spec section 6."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import fields
from datetime import datetime

import structlog

from korak.clock import Clock
from korak.errors import TransientError
from korak.releasing import Releaser
from korak.store import waking
from korak_waker import clearing, delivering, due, holding, limiting, resending
from korak_waker.inbox import Inbox
from korak_waker.kin import Kin
from korak_waker.passing import Pass, Tools
from korak_waker.reclaiming import Reclaimer
from korak_waker.report import Report
from korak_waker.steadiness import Steadiness
from korak_waker.watching import Watch

Stage = Callable[[Pass], Awaitable[None]]

log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(__name__)


class Waker:
    """Passes over one database. Several wakers at once are safe (WK-8); one waker makes one pass at a time.

    `count_losses` tells how many connections were lost since the beginning, those too that were made anew unseen.
    """

    def __init__(
        self, tools: Tools, releaser: Releaser, inbox: Inbox, clock: Clock, count_losses: Callable[[], int]
    ) -> None:
        self._tools = tools
        self.inbox: Inbox = inbox
        self._releaser = releaser
        self._clock = clock
        self._count_losses = count_losses
        self._steadiness = Steadiness(tools.limits.lease)
        kin = Kin()
        self.stages: dict[str, Stage] = {
            "inbox": self._begin,
            "match": delivering.match,
            "cascade": kin.cascade,
            "look": kin.look,
            "deliver": delivering.deliver,
            "reclaim": Reclaimer().reclaim,
            "resend": resending.resend,
            "unpark": resending.unpark,
            "holds": holding.release,
            "limits": limiting.rouse,
            "due": due.wake,
            "polls": due.poll,
            "deadlines": due.expire,
            "release": self._release,
            "clear": clearing.clear,
            "watch": Watch().watch,
        }

    async def run_once(self, now: datetime, *, may_reclaim: bool | None = None) -> Report:
        """The whole pass at that time (WK-3). A stage that fails is counted, and the others go on.

        Leases are taken for over only by a waker that has seen the database without a break for one lease, unless
        `may_reclaim` says so.
        """
        is_steady = self._steadiness.begin(self._clock.monotonic())
        is_asked = may_reclaim is not None
        current = Pass(now, self._tools, is_steady if may_reclaim is None else may_reclaim, is_asked)
        for name, stage in self.stages.items():
            await self._run(name, stage, current)
        self._count(current.report)
        return current.report

    async def get_next_due(self, now: datetime) -> datetime | None:
        """When something is due next, after now."""
        return await waking.get_next_due(self._tools.runner, now)

    async def _run(self, name: str, stage: Stage, current: Pass) -> None:
        """One stage. What passes by itself is tried once more now, and then in the next pass."""
        losses = self._count_losses()
        for is_last in (False, True):
            try:
                await stage(current)
                await current.nudge()
                self._steadiness.see(self._clock.monotonic())
                if self._count_losses() > losses:
                    self._lose(current)
                return
            except TransientError as error:
                self._lose(current)
                log.warning(
                    "stage_interrupted", stage=name, why=str(error.params.get("why", error.message)), is_last=is_last
                )
                current.report.interrupted += is_last
            except Exception:
                log.exception("stage_failed", stage=name)
                current.report.errors += 1
                return

    def _lose(self, current: Pass) -> None:
        self._steadiness.lose()
        current.may_reclaim = current.may_reclaim and current.is_asked

    async def _begin(self, current: Pass) -> None:
        current.report.inbox += await self.inbox.run_once(current.now)

    async def _release(self, current: Pass) -> None:
        current.report.released += await self._releaser.run_once(current.now)

    def _count(self, report: Report) -> None:
        for field in fields(report):
            count = getattr(report, field.name)
            if count:
                self._tools.metrics.wake_handled.labels(field.name).inc(count)
