"""Writing what became of steps that run here, and claims beside them: from the snapshot that the engine still has where
it can, under the lock where it must.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from korak.core.changes import Changes
from korak.core.snapshot import Snapshot
from korak.store.applying import apply, needs_transaction
from korak.store.database import Hot, is_data_fault
from korak.store.rooms import hold_rooms, settle_rooms
from korak.store.sealing import Ids, seal
from korak.store.transacting import Answer, Skipped, decide_together
from korak_engine.desk import Desk
from korak_engine.entries import MOST_SKIPS, Entry, Nudge, adopt
from korak_engine.lining import Line, arrange
from korak_engine.repeating import settle_all
from korak_engine.sights import Sights

Settle = Callable[[Entry, Changes | None], None]
"""Told, after the commit, what became of an entry: its changes, or None where it could not be written at all."""


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

    async def work(self, line: Line) -> None:
        """Record for ever. A fault that passes repeats what wasn't recorded, with the tokens that it had."""
        while True:
            batch = await line.take()
            await settle_all(batch, self._record_measured, self._settle, "results wait to be recorded")
            line.release(batch)

    async def _record_measured(self, batch: Sequence[Entry]) -> list[Entry]:
        with self._measure("record", len(batch)):
            return await self._record(batch)

    async def _record(self, batch: Sequence[Entry]) -> list[Entry]:
        """Record what can be; the results that others kept us from."""
        now = self._clock.now()
        quick = await self._decide_first(batch, now)
        written = [changes for _, changes in quick if not changes.is_echo]
        moved = await self._apply(written) if written else set()
        done = [(entry, adopt(changes, entry.fact)) for entry, changes in quick if changes.instance.id in moved]
        await self._tell(done)
        settled = {id(result) for result, _ in done}
        return await self._record_locked([result for result in batch if id(result) not in settled], now)

    async def _decide_first(self, batch: Sequence[Entry], now: datetime) -> list[tuple[Entry, Changes]]:
        """What can be written from the engine's own snapshots: the entries of one instance in one go.

        What needs room under a limit is decided where that is told: under its key's lock. A claim obeys what is
        addressed to its instance, which a lock lets it see.
        """
        quick: list[tuple[Entry, Changes]] = []
        for snapshot, entries in await self._find_known(batch):
            answers = decide_together(snapshot, [entry.ask.fact for entry in entries], now)
            decided = [
                (entry, answer) for entry, answer in zip(entries, answers, strict=True) if isinstance(answer, Changes)
            ]
            has_needs = any(changes.demands for _, changes in decided)
            if not has_needs and any(changes.dropped is None for _, changes in decided):
                quick += decided
        return quick

    async def _find_known(self, batch: Sequence[Entry]) -> list[tuple[Snapshot, list[Entry]]]:
        mine: dict[int, list[Entry]] = {}
        for entry in batch:
            if entry.skips == 0:
                mine.setdefault(entry.instance_id, []).append(entry)
        known: list[tuple[Snapshot, list[Entry]]] = []
        for entries in mine.values():
            snapshot = self._sights.find(entries[0].instance_id) or entries[0].snapshot
            if snapshot is not None and all(entry.can_be_told_from(snapshot) for entry in entries):
                known.append((snapshot, entries))
        claiming = [entries[0].instance_id for _, entries in known if any(isinstance(each, Nudge) for each in entries)]
        if not claiming:
            return known
        async with self._hot.alone() as runner:
            addressed = {row["instance_id"] for row in await runner.fetch("signals_any", ids=claiming)}
        return [(snapshot, entries) for snapshot, entries in known if entries[0].instance_id not in addressed]

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

    async def _record_locked(self, batch: Sequence[Entry], now: datetime) -> list[Entry]:
        """The slow way: lock, look, decide again. What is passed over twice waits in line alone."""
        left: list[Entry] = []
        for part, patience in arrange(batch, lambda entry: entry.instance_id):
            answers = await self._transactor.answer([result.ask for result in part], now, patience=patience)
            left += await self._sort(part, answers)
        return left

    async def _sort(self, batch: Sequence[Entry], answers: Sequence[Answer]) -> list[Entry]:
        left: list[Entry] = []
        done: list[tuple[Entry, Changes]] = []
        for result, answer in zip(batch, answers, strict=True):
            match answer:
                case Skipped() if isinstance(result, Nudge) and result.skips >= MOST_SKIPS:
                    self._settle(result)
                case Skipped():
                    result.skips += 1
                    left.append(result)
                case Changes():
                    done.append((result, adopt(answer, result.fact)))
                case _:
                    self._settle(result)
        await self._tell(done)
        return left

    async def _tell(self, done: Sequence[tuple[Entry, Changes]]) -> None:
        for _, changes in done:
            self._sights.see(changes.after)
        if done:
            await self._dispatcher.send([changes for _, changes in done])
        for result, changes in done:
            self._settle(result, changes)

    def _settle(self, entry: Entry, changes: Changes | None = None) -> None:
        if not entry.is_settled:
            entry.settle()
            self._tell_engine(entry, changes)
