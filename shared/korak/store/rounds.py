"""Starts under ids of the callers' own, in rounds: an id makes one run a round, and the next round sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from korak.core.changes import Changes
from korak.core.identity import Admit, Greeting, Replace, Run, Standing, Use, judge
from korak.core.opening import Opening
from korak.errors import Problem, refuse_at
from korak.model import DeliveryKind, JsonObject
from korak.store import runs
from korak.store.database import Runner
from korak.store.plans import Plans
from korak.store.runs import Key
from korak.store.starts import Known, Start, Starter, repeat

REPLACED = "Replaced by another start of its id."
"""The reason of a run that was cancelled for a new one."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What each start came to, in order, and what to nudge once the transaction has committed.

    A Problem refuses that start alone: nothing was stored of it.
    """

    starts: list[Start | Problem]
    changes: list[Changes]


async def start(
    runner: Runner,
    starter: Starter,
    plans: Plans,
    openings: Sequence[Opening],
    now: datetime,
    *,
    limits: Mapping[int, int],
) -> Answers:
    """Start each opening, or find the run that its key or its id has. In a transaction of the caller's.

    Where no opening is under an id, this is `Starter.start` and nothing else.
    """
    if all(opening.identity is None for opening in openings):
        batch = await starter.start(runner, openings, now, limits=limits)
        return Answers([*batch.starts], batch.changes)
    return await Rounds(runner, starter, plans, now, limits).start(openings)


@dataclass(eq=False)
class Rounds:
    """The starts of one transaction. Ids are locked first of all, then counters, keys and rows, as everywhere."""

    runner: Runner
    starter: Starter
    plans: Plans
    now: datetime
    limits: Mapping[int, int]
    _standing: dict[Key, Standing] = field(default_factory=dict)
    _known: Known = field(default_factory=dict)
    _heard: set[tuple[int, str]] = field(default_factory=set)
    _names: dict[int, frozenset[str] | None] = field(default_factory=dict)
    _answers: dict[int, Start | Problem] = field(default_factory=dict)
    _used: dict[int, tuple[Opening, Run]] = field(default_factory=dict)
    _deliveries: list[tuple[Any, ...]] = field(default_factory=list)
    _changes: list[Changes] = field(default_factory=list)

    async def start(self, openings: Sequence[Opening]) -> Answers:
        """The answers, in order."""
        self._standing = await runs.lock(self.runner, openings)
        await self._look([opening for opening in openings if opening.identity is not None])
        pending = list(enumerate(openings))
        while pending:
            pending = await self._go_round(pending)
        await self._greet()
        await self._claim()
        if self._deliveries:
            await self.runner.fetch("signals_send", signal=self._deliveries)
        return Answers([self._answers[place] for place in range(len(openings))], self._changes)

    async def _look(self, openings: Sequence[Opening]) -> None:
        """Read what the ids' own rows don't tell: keys that stand, greetings that were heard, names that are known."""
        digests = [opening.digest for opening in openings if opening.digest is not None]
        if digests:
            rows = await self.runner.fetch("starts_known", keys=digests, now=self.now)
            self._known = {row["key"]: (row["instance_ulid"], row["fingerprint"]) for row in rows}
        greeted = [(self._get(opening), opening.greeting) for opening in openings if opening.greeting is not None]
        asked = [(run.id, greeting.source_id) for standing, greeting in greeted if (run := standing.newest)]
        if asked:
            rows = await self.runner.fetch("signals_known", asked=asked)
            self._heard = {(row["instance_id"], row["source_id"]) for row in rows}
        versions = {run.version_id for standing, _ in greeted if (run := standing.open)}
        plans = await self.plans.get(self.runner, versions) if versions else {}
        self._names = {version_id: plan.signals for version_id, plan in plans.items()}

    async def _go_round(self, pending: Sequence[tuple[int, Opening]]) -> list[tuple[int, Opening]]:
        """Answer what can be answered now and start what can; what must wait for a run that begins in this round."""
        going: dict[int, Opening] = {}
        busy: set[Key] = set()
        later: list[tuple[int, Opening]] = []
        for place, opening in pending:
            key = runs.get_key(opening)
            if key is not None and key in busy:
                later.append((place, opening))
            elif (admitted := opening if key is None else self._admit(place, opening)) is not None:
                going[place] = admitted
                busy |= set() if key is None else {key}
        if going:
            await self._begin(going)
        return later

    def _admit(self, place: int, opening: Opening) -> Opening | None:
        """The opening with the number of its run; None where it is answered otherwise."""
        assert opening.identity is not None
        standing = self._get(opening)
        if opening.digest is not None and opening.digest in self._known:
            self._answers[place] = repeat(opening, self._known[opening.digest])
        elif (heard := self._find_heard(opening, standing)) is not None:
            self._answers[place] = Start(heard.ulid, False, instance_id=heard.id)
        else:
            match judge(opening.identity, standing):
                case Admit(number) if self._can_hear(opening.greeting, opening.version.plan.signals):
                    return replace(opening, run_number=number)
                case Use(run) if self._can_hear(opening.greeting, self._names.get(run.version_id)):
                    self._answers[place] = Start(run.ulid, False)
                    self._used[place] = (opening, run)
                case Replace(run):
                    self._deliveries.append(_cancel(opening, run, self.now))
                    self._answers[place] = Start(run.ulid, False, held=run)
                case Problem() as refused:
                    self._answers[place] = refused
                case _:
                    name = "" if opening.greeting is None else opening.greeting.name
                    self._answers[place] = refuse_at("/name", "unknown_signal", name=name)
        return None

    def _get(self, opening: Opening) -> Standing:
        key = runs.get_key(opening)
        return Standing() if key is None else self._standing[key]

    def _find_heard(self, opening: Opening, standing: Standing) -> Run | None:
        """The run that has ended with this very greeting: a repeat doesn't start another one."""
        run, greeting = standing.newest, opening.greeting
        if greeting is None or run is None or standing.open is not None:
            return None
        return run if (run.id, greeting.source_id) in self._heard else None

    @staticmethod
    def _can_hear(greeting: Greeting | None, names: frozenset[str] | None) -> bool:
        return greeting is None or names is None or greeting.name in names

    async def _begin(self, going: Mapping[int, Opening]) -> None:
        batch = await self.starter.start(self.runner, list(going.values()), self.now, limits=self.limits)
        self._changes += batch.changes
        made = {changes.instance.ulid: changes for changes in batch.changes}
        for (place, opening), answer in zip(going.items(), batch.starts, strict=True):
            self._answers[place] = answer
            key = runs.get_key(opening)
            if key is None or answer.refusal is not None:
                continue
            if answer.is_created:
                self._answers[place] = self._note(key, opening, answer, made[answer.ulid])

    def _note(self, key: Key, opening: Opening, answer: Start, changes: Changes) -> Start:
        """Have the next round see the new run, and its greeting lie in front of it."""
        instance = changes.instance
        assert instance.status is not None
        if opening.digest is not None:
            self._known[opening.digest] = (answer.ulid, opening.fingerprint)
        run = Run(instance.id, instance.ulid, instance.version_id, instance.run_number, instance.status)
        self._standing[key] = Standing(run, None if changes.is_ended else run)
        self._names[run.version_id] = opening.version.plan.signals
        if opening.greeting is None:
            return answer
        self._deliveries.append(_signal(opening, opening.greeting, run, self.now))
        return replace(answer, instance_id=run.id)

    async def _greet(self) -> None:
        """Greet the open runs that were found, where they can be kept from ending before the greeting is theirs."""
        greeted = {place: used for place, used in self._used.items() if used[0].greeting is not None}
        kept = await runs.keep_open(self.runner, {run.id for _, run in greeted.values()})
        for place, (opening, run) in greeted.items():
            if run.id in kept and opening.greeting is not None:
                self._deliveries.append(_signal(opening, opening.greeting, run, self.now))
                self._answers[place] = Start(run.ulid, False, instance_id=run.id)
            else:
                self._answers[place] = Start(run.ulid, False, held=run)

    async def _claim(self) -> None:
        """Have the keys of starts that found an open run stand for that run, so that a repeat finds it too."""
        keyed = {place: used for place, used in self._used.items() if used[0].digest is not None}
        first = {opening.digest: (opening, run.id, run.ulid) for opening, run in reversed(keyed.values())}
        known = await self.starter.claim(self.runner, list(first.values()), self.now)
        for place, (opening, _) in keyed.items():
            if opening.digest is not None and opening.digest in known:
                self._answers[place] = repeat(opening, known[opening.digest])


def _signal(opening: Opening, greeting: Greeting, run: Run, now: datetime) -> tuple[Any, ...]:
    what = (greeting.name, greeting.payload, greeting.source_id, greeting.sender)
    return (run.id, None, None, opening.owner.scope, DeliveryKind.SIGNAL, *what, None, now)


def _cancel(opening: Opening, run: Run, now: datetime) -> tuple[Any, ...]:
    reason: JsonObject = {"reason": REPLACED}
    sender: JsonObject = {"user": opening.starter}
    return (run.id, None, None, opening.owner.scope, DeliveryKind.CANCEL, None, reason, opening.ulid, sender, None, now)
