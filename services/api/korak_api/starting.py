"""Starts, gathered into batches: what arrives while a transaction is under way is the next one."""

from __future__ import annotations

from functools import partial
from typing import Final, Self

from korak.batching import Batcher
from korak.clock import Clock
from korak.config import Settings
from korak.dispatch import Dispatcher
from korak.metrics import Metrics
from korak.policy import get_policy
from korak.sending import Sender
from korak.starting import Opener, Started, Wish
from korak.store import runs
from korak.store.database import Database, Hot, is_data_fault
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.starts import Start, Starter

WORKERS: Final = 2
BATCH: Final = 200
AGAIN: Final = 3
"""How often a start is tried whose id a retried run has taken in the same instant: the next look sees that run."""


class Starts:
    """All starts of one process. An async context manager."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        plans: Plans,
        *,
        dispatcher: Dispatcher,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._hots = [Hot(database) for _ in range(WORKERS)]
        self._sender = Sender(dispatcher)
        self._clock = clock
        self._metrics = metrics
        policy, ttl, limit = get_policy(settings), settings.idempotency.ttl, settings.limits.max_starts_per_minute
        openers = [Opener(Starter(policy, Ids(), ttl, dispatcher), plans, limit) for _ in self._hots]
        self.opener: Opener = openers[0]
        works = [partial(self._run, hot, opener) for hot, opener in zip(self._hots, openers, strict=True)]
        self._batcher: Batcher[Wish, Started] = Batcher(works, BATCH)

    async def __aenter__(self) -> Self:
        await self._batcher.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._batcher.__aexit__()
        await self._sender.__aexit__()
        for hot in self._hots:
            await hot.close()

    async def start(self, wish: Wish) -> Started:
        """Start an instance, or find the one that the key has started. Raises a Problem where it can't be."""
        started = await self._batcher.ask(wish)
        if started.start.held is None:
            self._metrics.starts.labels(_get_result(started.start)).inc()
        return started

    async def _run(self, hot: Hot, opener: Opener, wishes: list[Wish]) -> list[Started | BaseException]:
        try:
            return await self._start(hot, opener, wishes)
        except Exception as error:
            if not is_data_fault(error) or (len(wishes) == 1 and not runs.is_taken(error)):
                raise
        # One row's data is to blame: each start stands alone, so that it takes no other with it.
        answers: list[Started | BaseException] = []
        for wish in wishes:
            try:
                answers += await self._start_alone(hot, opener, wish)
            except Exception as error:
                answers.append(error)
        return answers

    async def _start_alone(self, hot: Hot, opener: Opener, wish: Wish) -> list[Started | BaseException]:
        for _ in range(AGAIN):
            try:
                return await self._start(hot, opener, [wish])
            except Exception as error:
                if not runs.is_taken(error):
                    raise
        return await self._start(hot, opener, [wish])

    async def _start(self, hot: Hot, opener: Opener, wishes: list[Wish]) -> list[Started | BaseException]:
        async with hot.transaction() as runner:
            outcome = await opener.start(runner, wishes, self._clock.now())
        self._sender.send(outcome.changes)
        return [*outcome.answers]


def _get_result(start: Start) -> str:
    if start.refusal is not None:
        return "refused"
    return "created" if start.is_created else "repeated"
