"""An engine of the simulation: claims, runs and records as the real one does, and stops, dies or comes back late."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

from korak.core.changes import Changes, spread
from korak.core.facts import Claimed, Delivered, Finished, HandedBack, HandlerResult, Raised, look_again
from korak.core.snapshot import Claimant, Snapshot
from korak.core.starting import grant_again
from korak.errors import TransientError
from korak.model import StepRole
from korak.steps.results import Complete
from korak.store.transacting import Outdated
from korak_engine.entries import is_told_by
from korak_engine.sights import Sights
from tests.simulation.nesting import Asked
from tests.simulation.store import Ask, EngineRow, Transaction
from tests.simulation.work import IN_A_ROW, LEASE, SLOTS, Entry, Job, Nudge, Result, Work
from tests.support import handlers, ties

if TYPE_CHECKING:
    from tests.simulation.world import World

BROUGHT = 3
"""Children to which a command goes at once; the waker brings it to the others."""


class Engine:
    """One process. What it does is cut where others may come between: every `yield` is such a place."""

    def __init__(self, world: World, name: str, *, types: frozenset[str] | None = None) -> None:
        self.world = world
        self.name = name
        self.random: Random = world.random
        self.ids = world.store.get_ids(20)
        self.skew = timedelta(seconds=world.random.uniform(-0.3, 0.3))
        self.types = types
        self.frozen_until: datetime | None = None
        self.row: EngineRow
        self._tokens = 0
        self.begin_anew()

    def begin_anew(self) -> None:
        """A new row in the fleet, and empty hands."""
        self.row = self.world.store.register(self.now, LEASE)
        self.renew_at = self.now + LEASE / 3
        self.holds = self.world.store.memory.holds
        self.held: dict[int, Work] = {}
        self.sights = Sights()
        self.nudges: deque[Nudge] = deque()
        self.line: deque[Entry] = deque()
        self.jobs: list[Job[None]] = []
        self.open: list[Transaction] = []

    @property
    def now(self) -> datetime:
        """The time, as far as this process knows it."""
        return self.world.now + self.skew

    @property
    def is_busy(self) -> bool:
        """Whether it has something under way."""
        return bool(self.jobs or self.nudges or self.line or self.held)

    def claimant(self) -> Claimant:
        """The engine as one who claims, with a new token."""
        self._tokens += 1
        token = f"{self.name}.{self.row.id}.{self._tokens}"
        return Claimant(self.row.id, token, frozenset({"default"}), self._has, self.holds)

    def _has(self, key: str, version: int) -> bool:
        return self.types is None or key in self.types

    def stop_transactions(self) -> None:
        """The connection breaks: what isn't committed is rolled back."""
        for transaction in self.open:
            transaction.end()
        self.open.clear()

    # one step

    def act(self) -> None:
        """Do one thing: go on with what is under way, or begin something."""
        if self.now >= self.renew_at and self.random.random() < 0.3:
            self._renew()
            return
        if self.jobs and self.random.random() < 0.7:
            self._advance(self.random.choice(self.jobs))
            return
        verbs = [self._take]
        if self.nudges:
            verbs += [self._claim] * 2
        if self.line:
            verbs += [self._record] * 2
        if any(not work.is_reported for work in self.held.values()):
            verbs += [self._handle] * 4
        self.random.choice(verbs)()

    def _renew(self) -> None:
        if self.row.closed_at is None:
            self.row.lease_until, self.renew_at = self.now + LEASE, self.now + LEASE / 3
        else:
            self.world.count("engine found itself closed")
            self.stop_transactions()
            self.begin_anew()

    def _advance(self, job: Job[None]) -> None:
        if next(job, StopIteration) is StopIteration:
            self.jobs.remove(job)

    def _take(self) -> None:
        """Take messages, as many as there are slots, unless too much waits for others already."""
        if len(self.jobs) > 2 * SLOTS:
            return
        free = SLOTS - len(self.held) - len(self.nudges) - sum(isinstance(entry, Nudge) for entry in self.line)
        if free > 0:
            self.nudges.extend(Nudge(step_id) for step_id in self.world.network.take(free, self.now))

    def _handle(self) -> None:
        """Let a handler end, or do the effect that it does once."""
        waiting = [work for work in self.held.values() if not work.is_reported]
        if not waiting:
            return
        work = self.random.choice(waiting)
        if not work.has_effect and self.random.random() < 0.5:
            work.has_effect = self.world.store.perform(
                f"{work.step.idempotency_key}:{work.step.role}", work.step.id, work.step.claim_token or ""
            )
            return
        if self.random.random() < 0.02 and self.world.has_faults:
            self.jobs.append(self._hand_back(work))
            return
        claimant = self.claimant() if work.in_a_row < IN_A_ROW and self.random.random() < 0.9 else None
        fact = Finished(work.step.id, work.step.claim_token or "", self._get_result(work), claimant)
        work.is_reported = True
        self.line.append(Result(work, fact))

    def _get_result(self, work: Work) -> HandlerResult:
        if self.world.has_faults and self.random.random() < 0.06:
            after = self.now + timedelta(seconds=200) if self.random.random() < 0.3 else None
            return Raised("exception", is_retryable=self.random.random() < 0.9, after=after)
        asked = handlers.run(work.grant, is_raw=True)
        result: HandlerResult = self.world.nesting.settle(work.step, asked) if isinstance(asked, Asked) else asked
        if isinstance(result, Complete) and work.step.role is StepRole.STEP:
            key = f"{work.step.idempotency_key}:{work.step.role}"
            if not self.world.store.perform(key, work.step.id, work.step.claim_token or ""):
                return Raised("exception")
        return result

    # claims

    def _claim(self) -> None:
        if self.nudges:
            self.jobs.append(self._claim_batch([self.nudges.popleft() for _ in range(min(4, len(self.nudges)))]))

    def _claim_batch(self, batch: list[Nudge]) -> Job[None]:
        tries = 0
        while batch and tries < 12:
            try:
                batch = yield from self._try_to_claim(batch)
            except TransientError:
                yield
            tries += 1

    def _try_to_claim(self, batch: list[Nudge]) -> Job[list[Nudge]]:
        """The claims of one instance are answered in one go; those of one that runs here, with what becomes of that."""
        chosen: list[Nudge] = []
        for nudge in batch:
            family = self.world.store.memory.find(nudge.step_id)
            if family is not None and nudge.step_id not in self.held:
                nudge.instance_id = family.instance.id
                nudge.fact = nudge.fact or Claimed(nudge.step_id, self.claimant())
                is_known = self.sights.find(nudge.instance_id) is not None
                (self.line if is_known else chosen).append(nudge)
        answers = yield from self._transact([_ask(nudge) for nudge in chosen])
        left: list[Nudge] = []
        self.world.count("claimed together", sum(answer is not None and answer.is_echo for answer in answers))
        for nudge, answer in zip(chosen, answers, strict=True):
            if answer is None:
                left.append(nudge)
            elif nudge.fact is not None:
                self._begin(answer, nudge.fact.claimant.token, in_a_row=1)
        return left

    def _begin(self, changes: Changes, token: str, *, in_a_row: int) -> None:
        claimed = changes.claimed
        if not claimed and changes.dropped is not None:
            claimed = grant_again(changes.after, token)
            self.world.count("adopted", len(claimed))
        for grant in claimed:
            self._let_go(grant.step.id)
            self.held[grant.step.id] = Work(grant, changes.after, in_a_row)
            self.sights.hold(changes.after)
        self.sights.see(changes.after)

    def _let_go(self, step_id: int) -> None:
        work = self.held.pop(step_id, None)
        if work is not None:
            self.sights.drop(work.step.instance_id)

    def _transact(self, asks: Sequence[Ask]) -> Job[list[Changes | None]]:
        transaction = self.world.store.begin([replace(ask, fact=look_again(ask.fact, self.holds)) for ask in asks])
        self.open.append(transaction)
        try:
            yield
            batch = transaction.decide(self.now)
            self._stamp(batch)
            if self.random.random() < 0.5:
                yield
            transaction.commit(batch)
        except Outdated:
            self.world.count("held otherwise")
            self.holds = self.world.store.memory.holds
            raise
        finally:
            transaction.end()
            if transaction in self.open:
                self.open.remove(transaction)
        self._dispatch(batch)
        return [answer if isinstance(answer, Changes) else None for answer in transaction.answers]

    # records

    def _record(self) -> None:
        """Record some results, perhaps all that there are of one instance."""
        if self.line:
            batch = list(self.line)[: self.random.randint(1, 4)]
            if self.random.random() < 0.5:
                instance_id = batch[0].instance_id
                batch = [entry for entry in self.line if entry.instance_id == instance_id]
            self.line = deque(entry for entry in self.line if entry not in batch)
            self.jobs.append(self._record_batch(batch))

    def _record_batch(self, batch: list[Entry]) -> Job[None]:
        while batch:
            try:
                batch = yield from self._try_to_record(batch)
            except TransientError:
                yield

    def _try_to_record(self, batch: list[Entry]) -> Job[list[Entry]]:
        quick = self._decide_first(batch)
        decided = [changes for _, changes in quick if not changes.is_echo]
        self._stamp(decided)
        moved = self.world.store.write_unlocked(decided)
        written = [
            (entry, changes) for entry, changes in quick if changes.instance.id in moved and changes.dropped is None
        ]
        self._dispatch([changes for _, changes in written])
        for entry, changes in written:
            self._settle(entry, changes)
            self.world.count("recorded at once" if isinstance(entry, Result) else "claimed at once")
        self.world.count("recorded together", sum(changes.is_echo for _, changes in written))
        rest = [entry for entry in batch if all(entry is not done for done, _ in written)]
        return (yield from self._record_locked(rest)) if rest else []

    def _decide_first(self, batch: list[Entry]) -> list[tuple[Entry, Changes]]:
        """What can be recorded from the engine's own snapshots: the entries of one instance in one go."""
        mine: dict[int, list[Entry]] = {}
        for entry in batch:
            mine.setdefault(entry.instance_id, []).append(entry)
        quick: list[tuple[Entry, Changes]] = []
        for entries in mine.values():
            snapshot = self._find_known(entries)
            if snapshot is None:
                continue
            answers = self.world.store.decide_together(snapshot, [_ask(entry).fact for entry in entries], self.now)
            decided = [
                (entry, answer) for entry, answer in zip(entries, answers, strict=True) if isinstance(answer, Changes)
            ]
            if any(changes.dropped is None for _, changes in decided) and not decided[0][1].demands:
                quick += decided
        return quick

    def _find_known(self, entries: list[Entry]) -> Snapshot | None:
        """What a decision without a lock begins with; None where it has to look first."""
        [first, *_] = entries
        known = self.sights.find(first.instance_id) or (first.work.snapshot if isinstance(first, Result) else None)
        claims = [entry.step_id for entry in entries if isinstance(entry, Nudge)]
        if known is None or not all(is_told_by(known, step_id) for step_id in claims):
            return None
        return None if claims and self.world.store.is_addressed(first.instance_id) else known

    def _record_locked(self, batch: list[Entry]) -> Job[list[Entry]]:
        answers = yield from self._transact([_ask(entry) for entry in batch])
        left: list[Entry] = []
        for entry, answer in zip(batch, answers, strict=True):
            if answer is not None:
                self._settle(entry, answer)
                self.world.count("recorded under the lock")
            elif entry.instance_id in self.world.store.memory.families:
                left.append(entry)
            elif isinstance(entry, Result):
                self._let_go(entry.work.step.id)
        return left

    def _settle(self, entry: Entry, changes: Changes) -> None:
        in_a_row = 1
        if isinstance(entry, Result):
            in_a_row += entry.work.in_a_row
            if self.held.get(entry.work.step.id) is entry.work:
                self._let_go(entry.work.step.id)
        claimant = None if entry.fact is None else entry.fact.claimant
        self._begin(changes, "" if claimant is None else claimant.token, in_a_row=in_a_row)

    def _hand_back(self, work: Work) -> Job[None]:
        self._let_go(work.step.id)
        try:
            yield from self._transact(
                [Ask(work.step.instance_id, HandedBack(work.step.id, work.step.claim_token or ""), work.step.id)]
            )
        except TransientError:
            self.world.count("hand back lost")

    # what runs bid others

    def bid(self, cascading: Sequence[int], bidden: Collection[str]) -> None:
        """Bring these runs' commands to their first children; have those obey, and whoever is bidden by its ULID."""
        self.jobs.append(self._bring(cascading, bidden))

    def _bring(self, cascading: Sequence[int], bidden: Collection[str]) -> Job[None]:
        memory = self.world.store.memory
        runs = [family.instance.id for family in memory.families.values() if family.instance.ulid in bidden]
        for instance in cascading:
            yield
            runs += ties.advance_cascade(memory, self.now, BROUGHT, instance) or []
        asks = [Ask(run, Delivered()) for run in dict.fromkeys(runs)]
        self.world.count("brought", len(asks))
        try:
            yield from self._transact(asks)
        except TransientError:
            self.world.count("bidden in vain")

    # dispatch

    def _stamp(self, batch: Sequence[Changes]) -> None:
        self.world.store.prepare(batch, self.ids)
        for changes in spread(batch):
            for step in changes.ready:
                if step.probe is not None or self.random.random() < 0.7:
                    step.sent_at = step.ready_at

    def _dispatch(self, batch: Sequence[Changes]) -> None:
        batch = list(spread(batch))
        for changes in batch:
            for step in changes.ready:
                if step.sent_at is not None and step.probe is not None:
                    self.nudges.append(Nudge(step.id))
                elif step.sent_at is not None:
                    self.world.network.send([step.id], self.now)
        self.world.tell(batch, self.now)


def _ask(entry: Entry) -> Ask:
    assert entry.fact is not None
    return Ask(entry.instance_id, entry.fact, entry.work.step.id if isinstance(entry, Result) else None)
