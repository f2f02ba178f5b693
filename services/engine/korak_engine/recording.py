"""Recording results: from the snapshot that the engine still has where it can, under the lock where it must."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from korak.core.changes import Changes, Grant
from korak.core.facts import Finished, HandedBack
from korak.core.snapshot import Snapshot
from korak.core.starting import grant_again
from korak.store.applying import apply, needs_transaction
from korak.store.database import Hot, is_data_fault
from korak.store.rooms import hold_rooms, settle_rooms
from korak.store.sealing import Ids, seal
from korak.store.transacting import Answer, Ask, Skipped, decide_together
from korak_engine.desk import Desk
from korak_engine.lining import arrange
from korak_engine.repeating import settle_all
from korak_engine.sights import Sights
from korak_engine.work import Work


@dataclass(eq=False, slots=True)
class Result:
    """What became of an attempt, on its way into the database. A Finished holds the token of the step after it.

    `is_settled`: the engine was told what came of it, which happens once.
    """

    work: Work
    fact: Finished | HandedBack
    skips: int = 0
    is_settled: bool = False

    @property
    def ask(self) -> Ask:
        """The same for the way under the lock."""
        return Ask(self.work.step.instance_id, self.fact, self.work.step.id)


Settle = Callable[[Result, Changes | None], None]
"""Told, after the commit, what became of a result: its changes, or None where it could not be recorded at all."""


class Recorder:
    """One worker that records: results that arrive while it is busy are its next batch."""

    def __init__(self, desk: Desk, settle: Settle, sights: Sights) -> None:
        self._hot = desk.hot
        self._transactor = desk.transactor
        self._dispatcher = desk.dispatcher
        self._clock = desk.clock
        self._tell_engine = settle
        self._sights = sights
        self._ids = Ids()
        self._measure = desk.measure

    async def work(self, results: Results) -> None:
        """Record for ever. A fault that passes repeats what wasn't recorded, with the tokens that it had."""
        while True:
            batch = await results.take()
            await settle_all(batch, self._record_measured, self._settle, "results wait to be recorded")
            results.release(batch)

    async def _record_measured(self, batch: Sequence[Result]) -> list[Result]:
        with self._measure("record", len(batch)):
            return await self._record(batch)

    async def _record(self, batch: Sequence[Result]) -> list[Result]:
        """Record what can be; the results that others kept us from."""
        now = self._clock.now()
        quick = self._decide_first(batch, now)
        written = [changes for _, changes in quick if not changes.is_echo]
        moved = await self._apply(written) if written else set()
        done = [
            (result, changes) for result, changes in quick if changes.instance.id in moved and changes.dropped is None
        ]
        await self._tell(done)
        settled = {id(result) for result, _ in done}
        return await self._record_locked([result for result in batch if id(result) not in settled], now)

    def _decide_first(self, batch: Sequence[Result], now: datetime) -> list[tuple[Result, Changes]]:
        """What can be recorded from the engine's own snapshots: the results of one instance in one go.

        What needs room under a limit is decided where that is told: under its key's lock.
        """
        mine: dict[int, list[Result]] = {}
        for result in batch:
            if result.skips == 0:
                mine.setdefault(result.ask.instance_id, []).append(result)
        quick: list[tuple[Result, Changes]] = []
        for results in mine.values():
            snapshot = self._sights.get(results[0].work.snapshot)
            answers = decide_together(snapshot, [result.fact for result in results], now)
            decided = [
                (result, answer) for result, answer in zip(results, answers, strict=True) if isinstance(answer, Changes)
            ]
            has_needs = any(changes.demands for _, changes in decided)
            if not has_needs and any(changes.dropped is None for _, changes in decided):
                quick += decided
        return quick

    async def _apply(self, batch: Sequence[Changes]) -> set[int]:
        await self._dispatcher.prepare(batch)
        async with self._hot.alone() as runner:
            await self._ids.reserve(runner, batch)
        for changes in batch:
            seal(changes, self._ids)
            self._dispatcher.stamp(changes)
        try:
            async with self._hot.transaction() if needs_transaction(batch) else self._hot.alone() as runner:
                moved = await apply(runner, batch)
                await self._give_back(runner, [changes for changes in batch if changes.instance.id in moved])
                return moved
        except Exception as error:
            if is_data_fault(error):
                return set()
            raise

    async def _give_back(self, runner: Hot, batch: Sequence[Changes]) -> None:
        """What ran under limits makes room. What asks for some never comes this way."""
        if any(changes.freed or changes.leaves for changes in batch):
            admission = await hold_rooms(runner, batch, batch[0].instance.updated_at)
            if admission is not None:
                await settle_rooms(runner, admission, batch, self._dispatcher)

    async def _record_locked(self, batch: Sequence[Result], now: datetime) -> list[Result]:
        """The slow way: lock, look, decide again. What is passed over twice waits in line alone."""
        left: list[Result] = []
        for part, patience in arrange(batch, lambda result: result.ask.instance_id):
            answers = await self._transactor.answer([result.ask for result in part], now, patience=patience)
            left += await self._sort(part, answers)
        return left

    async def _sort(self, batch: Sequence[Result], answers: Sequence[Answer]) -> list[Result]:
        left: list[Result] = []
        done: list[tuple[Result, Changes]] = []
        for result, answer in zip(batch, answers, strict=True):
            match answer:
                case Skipped():
                    result.skips += 1
                    left.append(result)
                case Changes():
                    done.append((result, adopt(answer, result.fact)))
                case _:
                    self._settle(result)
        await self._tell(done)
        return left

    async def _tell(self, done: Sequence[tuple[Result, Changes]]) -> None:
        for _, changes in done:
            self._sights.see(changes.after)
        if done:
            await self._dispatcher.send([changes for _, changes in done])
        for result, changes in done:
            self._settle(result, changes)

    def _settle(self, result: Result, changes: Changes | None = None) -> None:
        if not result.is_settled:
            result.is_settled = True
            self._tell_engine(result, changes)


def adopt(changes: Changes, fact: Finished | HandedBack) -> Changes:
    """What was committed although its answer was lost: the step that runs under the token which the fact brought."""
    if not isinstance(fact, Finished) or fact.claimant is None:
        return changes
    if changes.dropped is not None and not changes.claimed:
        changes.claimed = find_granted(changes.after, fact.claimant.token)
    return changes


def find_granted(snapshot: Snapshot, token: str) -> list[Grant]:
    """The steps that run under a token."""
    return grant_again(snapshot, token)


class Results:
    """The results that wait to be recorded. Those of one instance are never with two recorders at a time."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[Result] = deque()
        self._busy: set[int] = set()
        self._changed = asyncio.Event()

    def put(self, result: Result) -> None:
        """One more."""
        self._waiting.append(result)
        self._changed.set()

    async def take(self) -> list[Result]:
        """All there are of instances that no other recorder is at, up to the limit; at least one."""
        while not (batch := self._pick()):
            self._changed.clear()
            await self._changed.wait()
        self._busy.update(result.work.step.instance_id for result in batch)
        return batch

    def release(self, batch: Sequence[Result]) -> None:
        """What was taken is recorded: others may record more of its instances."""
        self._busy.difference_update(result.work.step.instance_id for result in batch)
        self._changed.set()

    def _pick(self) -> list[Result]:
        batch: list[Result] = []
        passed: list[Result] = []
        while self._waiting and len(batch) < self._limit:
            result = self._waiting.popleft()
            (passed if result.work.step.instance_id in self._busy else batch).append(result)
        self._waiting.extendleft(reversed(passed))
        return batch
