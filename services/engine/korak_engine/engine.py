"""The engine: claims, runs and records, and goes on to the next step without the broker where it may."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

from korak.clock import Clock
from korak.config import Engine as EngineSettings
from korak.core.changes import Changes, Grant, spread
from korak.core.facts import Depend, Finished, Freed, HandedBack, HandlerResult, Raised, Spawn
from korak.core.rows import StepRun
from korak.core.snapshot import Snapshot
from korak.metrics import Metrics, get_code_label
from korak.model import FailureCategory
from korak.steps.results import Complete, Fail, Wait
from korak.store.plans import Plans
from korak_engine.claiming import Inbox
from korak_engine.entries import Entry, Result
from korak_engine.handlers import Handlers
from korak_engine.identity import Identity
from korak_engine.lining import Line
from korak_engine.sights import Sights
from korak_engine.slots import Slots
from korak_engine.work import Work

log: logging.Logger = logging.getLogger(__name__)

ABANDONED = timedelta(minutes=10)
"""How long the attempt after one whose thread didn't end waits for it at most."""


GIVEN_UP = Raised("stale_attempt", is_retryable=False, category=FailureCategory.ENGINE)
"""The result of a handler that was ended because its instance was cancelled or its token is lost: it is dropped."""


class Engine:
    """What one process holds and does between a claim and its record. Claimers and recorders work around it."""

    def __init__(
        self,
        identity: Identity,
        handlers: Handlers,
        plans: Plans,
        clock: Clock,
        metrics: Metrics,
        settings: EngineSettings,
    ) -> None:
        self.identity = identity
        self.slots = Slots(settings.concurrency)
        self.inbox = Inbox(self.slots, settings.batch)
        self.sights = Sights()
        self.line = Line(settings.batch, self.sights.count)
        self.is_draining = False
        self.is_worn_out = asyncio.Event()
        self.freed: asyncio.Queue[tuple[int, Freed]] = asyncio.Queue()
        self._handlers = handlers
        self._plans = plans
        self._clock = clock
        self._metrics = metrics
        self._settings = settings

    # the keeper of steps that this engine parked

    def wants(self, step: StepRun) -> bool:
        """Whether a ready step that this engine has parked is looked at here, without a message."""
        return step.probe is not None and not self.is_draining and step.queue in self.identity.queues

    def keep(self, steps: Sequence[StepRun]) -> None:
        """Look at these now."""
        self.inbox.keep(steps)

    # from a claim to a result

    def grant(self, changes: Changes) -> None:
        """Begin what a claim has made running."""
        for granted in changes.claimed:
            self._count_claim(granted.step, changes)
            self._begin(granted, changes.after, in_a_row=1)
        self.count(changes)

    def _begin(self, granted: Grant, snapshot: Snapshot, *, in_a_row: int) -> None:
        version = self._plans.get_number(snapshot.instance.version_id)
        work = Work(granted.step, granted.input, snapshot, version, in_a_row=in_a_row)
        work.held_since = self._clock.monotonic()
        self.slots.put(work)
        self.sights.hold(snapshot)
        work.task = asyncio.create_task(self._run(work))

    async def _run(self, work: Work) -> None:
        try:
            result = await self._handlers.run(work)
        except asyncio.CancelledError:
            result = GIVEN_UP
        if not work.is_settled:
            self.finish(work, result)

    def finish(self, work: Work, result: HandlerResult) -> None:
        """An attempt has come to a result: record it, and go on with the next step here if that is fair."""
        work.is_settled = True
        step = work.step
        claimant = self.identity.get_claimant() if self._may_go_on(work) else None
        left = None if work.leaving is None else work.list_left(result)
        self.line.put(Result(work, Finished(step.id, step.claim_token or "", result, claimant, left)))

    def _may_go_on(self, work: Work) -> bool:
        if self.is_draining or not self.identity.is_open:
            return False
        return work.in_a_row < self._settings.inline or self.slots.free > 0

    # after the record

    def settle(self, entry: Entry, changes: Changes | None) -> None:
        """What became of an entry that was written."""
        if isinstance(entry, Result):
            self._settle(entry, changes)
            return
        self.slots.release(1)
        if changes is not None and changes.claimed:
            self.grant(changes)

    def _settle(self, result: Result, changes: Changes | None) -> None:
        """What became of a result: the next step runs in its slot, or the slot is free."""
        work = result.work
        if changes is None:
            self._metrics.results_dropped.labels("refused").inc()
        elif changes.dropped is not None:
            self._metrics.results_dropped.labels(changes.dropped).inc()
        elif isinstance(result.fact, Finished):
            self._count_result(work, result.fact.result, changes)
        if changes is not None:
            for granted in changes.claimed:
                self._begin(granted, changes.after, in_a_row=work.in_a_row + 1)
            self.count(changes)
        self._drop(work)

    def _drop(self, work: Work) -> None:
        self.slots.drop(work)
        self.sights.drop(work.step.instance_id)

    def _count_claim(self, step: StepRun, changes: Changes) -> None:
        self._metrics.step_claims.labels(step.queue, "claimed").inc()
        before = changes.before.steps.get(step.id)
        if before is not None and before.ready_at is not None and step.claimed_at is not None:
            self._metrics.queue_wait_seconds.observe(max(0.0, (step.claimed_at - before.ready_at).total_seconds()))

    def _count_result(self, work: Work, result: HandlerResult, changes: Changes) -> None:
        match result:
            case Complete():
                name = "completed"
            case Spawn(awaits=False, rest=0):
                name = "completed"
            case Wait() | Spawn() | Depend():
                name = "waiting"
            case Fail():
                name = "failed"
            case Raised(code):
                name = "failed"
                if any(step.retry_of == work.step.ulid for step in changes.new_steps):
                    self._metrics.step_retries.labels(work.step.node_type, get_code_label(code)).inc()
        self._metrics.step_results.labels(work.step.node_type, name).inc()
        if work.step.claimed_at is not None:
            self._metrics.step_seconds.observe((self._clock.now() - work.step.claimed_at).total_seconds())

    def count(self, changes: Changes) -> None:
        """Count the transitions that were applied, each once."""
        for name in (name for each in spread((changes,)) for name in each.transitions):
            self._metrics.transitions.labels(name).inc()

    # time

    def expire(self) -> None:
        """End the attempts that are past their time: the result is recorded now, whatever the handler still does."""
        now = self._clock.monotonic()
        for work in self.slots.held:
            if work.is_settled:
                continue
            if work.deadline and now >= work.deadline:
                self._time_out(work)
            elif not work.deadline and now >= work.held_since + self._settings.grace / 2:
                self._hand_back(work)
        self._metrics.step_threads_lost.set(self._handlers.lost_threads)
        if self._handlers.has_lost_half:
            self.is_worn_out.set()

    def _hand_back(self, work: Work) -> None:
        """No thread or process was free in time: the same attempt goes to whoever has one."""
        work.is_settled = True
        self.line.put(Result(work, HandedBack(work.step.id, work.step.claim_token or "")))
        if work.task is not None:
            work.task.cancel()

    def _time_out(self, work: Work) -> None:
        seconds = self._handlers.get_timeout(work)
        thread = work.thread
        is_abandoned = thread is not None and not thread.done()
        after = self._clock.now() + ABANDONED if is_abandoned else None
        raised = Raised("timeout", None, {"seconds": seconds}, after=after, category=FailureCategory.TIMEOUT)
        log.warning("step %s of type %s timed out after %s s", work.step.ulid, work.step.node_type, seconds)
        self.finish(work, raised)
        if thread is not None and is_abandoned:
            self.slots.shrink()
            thread.add_done_callback(lambda _: self._free(work))
        if work.task is not None:
            work.task.cancel()

    def _free(self, work: Work) -> None:
        self.slots.grow()
        self.freed.put_nowait((work.step.instance_id, Freed(work.step.ulid)))

    # ends

    def cancel(self, lost: Sequence[Work]) -> None:
        """These attempts were cancelled, or their token is lost: their handlers are told, and ended after a grace."""
        for work in lost:
            if not work.is_cancelled:
                work.is_cancelled = True
                work.cancel_at = self._clock.monotonic() + self._settings.grace
            elif self._clock.monotonic() >= work.cancel_at and work.task is not None:
                work.task.cancel()

    def drop_all(self) -> None:
        """Somebody closed this engine's row: nothing that it holds is its own any more."""
        for work in self.slots.held:
            work.is_cancelled = work.is_settled = True
            self._drop(work)
            self._metrics.results_dropped.labels("engine_closed").inc()
            if work.task is not None:
                work.task.cancel()

    async def drain(self, seconds: float) -> None:
        """Let what runs end, for so long; what doesn't is taken over by others once the engine's row is closed."""
        self.is_draining = True
        for work in self.slots.held:
            if not work.deadline and not work.is_settled:
                self._hand_back(work)
        try:
            async with asyncio.timeout(seconds):
                await self.slots.wait_for_none_held()
        except TimeoutError:
            log.warning("%s steps didn't end in time and are left to other engines", len(self.slots.held))
