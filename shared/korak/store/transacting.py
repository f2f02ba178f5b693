"""Facts into changes, many instances a transaction: lock, look, decide, apply."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeAlias

import asyncpg

from korak.core.changes import Changes
from korak.core.decide import decide, decide_all
from korak.core.facts import BACKWARD, Broken, Claimed, Fact, Finished, Raised, look_again
from korak.core.holds import Holds
from korak.core.snapshot import Snapshot
from korak.errors import Conflict, KorakError, TransientError
from korak.model import FailureCategory
from korak.store import runs
from korak.store.applying import apply
from korak.store.database import Hot, Runner, is_data_fault
from korak.store.holds import View
from korak.store.loading import Loader, lock
from korak.store.rooms import Admission, Rouser, hold_rooms, settle_rooms
from korak.store.sealing import Ids, seal

log: logging.Logger = logging.getLogger(__name__)


class Stamper(Rouser, Protocol):
    """Marks, before they are written, the ready steps that will be sent right after the commit."""

    async def prepare(self, batch: Iterable[Changes]) -> None:
        """Learn what is needed for `stamp`."""
        ...

    def stamp(self, changes: Changes) -> None:
        """Mark those of one instance."""
        ...


@dataclass(frozen=True, slots=True)
class Ask:
    """A fact for one instance. `step` is the one that it is about, which may have ended meanwhile."""

    instance_id: int
    fact: Fact
    step: int | None = None

    def going_by(self, holds: Holds) -> Ask:
        """The same, asked by one who knows of these holds."""
        fact = look_again(self.fact, holds)
        return self if fact is self.fact else replace(self, fact=fact)


@dataclass(frozen=True, slots=True)
class Skipped:
    """Somebody else holds the instance, or there is none of that id."""


class Deferred(Skipped):
    """The fact can't be decided together with the one before it: its turn is the next transaction."""


Answer: TypeAlias = Changes | Skipped | KorakError


class Outdated(TransientError):
    """What was decided under the lock didn't hold any more as it was written: nothing of its transaction counts."""


TRIES = 3
"""How often facts are decided before that is somebody's who waits between two times."""


class Transactor:
    """Answers facts under the instances' locks. One owner, one call at a time: it has a connection of its own.

    An error of one row's data never takes others with it: the batch is split until the culprit stands alone, and that
    instance fails with a code. Every other error is the caller's, who repeats the whole batch.

    Who claims goes by what `view` knows of holds. Where others are in force by then, all is decided once more.
    """

    def __init__(self, hot: Hot, loader: Loader, ids: Ids, stamper: Stamper, view: View | None = None) -> None:
        self._hot = hot
        self._loader = loader
        self._ids = ids
        self._stamper = stamper
        self._view = view

    async def answer(self, asks: Sequence[Ask], now: datetime, *, patience: float | None = None) -> list[Answer]:
        """The answers, in order, committed. With `patience` (seconds) a held lock is waited for.

        Several asks of one instance are answered one after the other, in one decision: the first answer has all
        changes, the others are its echoes. Raises TransientError where the database can't do it now.
        """
        answers = await self._answer_safely(asks, now, patience)
        while later := [place for place, answer in enumerate(answers) if isinstance(answer, Deferred)]:
            others = await self._answer_safely([asks[place] for place in later], now, patience)
            for place, answer in zip(later, others, strict=True):
                answers[place] = answer
        return answers

    async def _answer_safely(self, asks: Sequence[Ask], now: datetime, patience: float | None) -> list[Answer]:
        try:
            return await self._answer_again(asks, now, patience)
        except Exception as error:
            if not is_data_fault(error):
                raise
            log.warning("a row of %s facts can't be written", len(asks), exc_info=error)
            return await self._split(asks, now, patience, error)

    async def _answer_again(self, asks: Sequence[Ask], now: datetime, patience: float | None) -> list[Answer]:
        """Answer by the holds that are in force as the answers are written; their tokens stay what they were."""
        for _ in range(TRIES - 1):
            try:
                return await self._answer_once(asks, now, patience)
            except Outdated:
                if self._view is not None:
                    async with self._hot.alone() as runner:
                        await self._view.refresh(runner, now)
        return await self._answer_once(asks, now, patience)

    async def _answer_once(self, asks: Sequence[Ask], now: datetime, patience: float | None) -> list[Answer]:
        if self._view is not None:
            asks = [ask.going_by(self._view.known) for ask in asks]
        async with self._hot.transaction() as runner:
            return await self._answer(runner, asks, now, patience)

    async def _split(
        self, asks: Sequence[Ask], now: datetime, patience: float | None, error: Exception
    ) -> list[Answer]:
        if len(asks) > 1:
            middle = len(asks) // 2
            first = await self.answer(asks[:middle], now, patience=patience)
            return first + await self.answer(asks[middle:], now, patience=patience)
        if runs.is_taken(error):
            return [Conflict("id_in_use")]
        ask = blame(asks[0], error)
        if ask is None:
            log.error("instance %s can't even be failed", asks[0].instance_id, exc_info=error)
            return [KorakError("internal", str(error))]
        return await self.answer([ask], now, patience=patience)

    async def _answer(self, runner: Runner, asks: Sequence[Ask], now: datetime, patience: float | None) -> list[Answer]:
        wanted = [ask.instance_id for ask in asks]
        locked = await (lock(runner, wanted) if patience is None else wait_for_lock(runner, wanted, patience))
        closed = [step for ask in asks if (step := _get_step(ask)) is not None]
        backward = [ask.instance_id for ask in asks if isinstance(ask.fact, BACKWARD)]
        snapshots = await self._loader.load(runner, locked, now, closed=closed, backward=backward)
        answers = decide_each(snapshots, asks, now)
        admission = await _admit(runner, asks, snapshots, answers, now)
        batch = [answer for answer in answers if isinstance(answer, Changes) and not answer.is_empty]
        if batch:
            await self._stamper.prepare(batch)
            await self._ids.reserve(runner, batch)
            for changes in batch:
                seal(changes, self._ids)
                self._stamper.stamp(changes)
            moved = await apply(runner, [*batch, *(changes.fork for changes in batch if changes.fork is not None)])
            if any(changes.instance.id not in moved for changes in batch):
                raise Outdated(message="what is held has changed meanwhile")
            if admission is not None:
                await settle_rooms(runner, admission, batch, self._stamper)
        return answers


async def _admit(
    runner: Runner,
    asks: Sequence[Ask],
    snapshots: Mapping[int, Snapshot],
    answers: list[Answer],
    now: datetime,
) -> Admission | None:
    """Find room for what was decided to run under limits; what got none is decided once more, knowing that.

    Where no graph has limits this costs nothing.
    """
    if not any(snapshot.plan.has_flow for snapshot in snapshots.values()):
        return None
    admission = await hold_rooms(runner, answers, now)
    for place, denial in admission.admit(answers) if admission is not None else ():
        denied = replace(snapshots[asks[place].instance_id], denials=(denial,))
        answers[place] = decide_safely(denied, asks[place].fact, now)
    return admission


def _get_step(ask: Ask) -> int | None:
    """The step that is asked about: it is looked at wherever it stands."""
    return ask.fact.step if ask.step is None and isinstance(ask.fact, Claimed) else ask.step


async def wait_for_lock(runner: Runner, instance_ids: Sequence[int], patience: float) -> set[int]:
    """Lock instances, waiting for whoever holds them. When that is too long the transaction raises TransientError."""
    await runner.fetch("lock_timeout_set", timeout=f"{int(patience * 1000)}ms")
    rows = await runner.fetch("instances_wait", ids=sorted(set(instance_ids)))
    return {row["id"] for row in rows}


def is_lock_timeout(error: TransientError) -> bool:
    """Whether what failed is that a lock wasn't had in time."""
    return isinstance(error.__cause__, asyncpg.LockNotAvailableError)


def decide_each(snapshots: Mapping[int, Snapshot], asks: Sequence[Ask], now: datetime) -> list[Answer]:
    """The answers, in order: the asks of one instance are decided in one go. Where there is no snapshot, Skipped."""
    places: dict[int, list[int]] = {}
    for place, ask in enumerate(asks):
        places.setdefault(ask.instance_id, []).append(place)
    answers: list[Answer] = [Skipped()] * len(asks)
    for instance_id, mine in places.items():
        snapshot = snapshots.get(instance_id)
        if snapshot is not None:
            decided = decide_together(snapshot, [asks[place].fact for place in mine], now)
            for place, answer in zip(mine, decided, strict=True):
                answers[place] = answer
    return answers


def decide_together(snapshot: Snapshot, facts: Sequence[Fact], now: datetime) -> list[Answer]:
    """`decide_all`; where one of several facts can't be answered the first is decided alone, the others are Deferred.

    So are they where the graph has limits: whether there is room is told for one fact at a time.
    """
    if len(facts) == 1:
        return [decide_safely(snapshot, facts[0], now)]
    if not snapshot.plan.has_flow:
        try:
            return [*decide_all(snapshot, facts, now)]
        except Exception as error:
            log.info("%s facts of instance %s aren't decided together: %s", len(facts), snapshot.instance.ulid, error)
    return [decide_safely(snapshot, facts[0], now), *(Deferred() for _ in facts[1:])]


def decide_safely(snapshot: Snapshot, fact: Fact, now: datetime) -> Changes | KorakError:
    """`decide`, whatever stands in the rows: what it can't make sense of fails that instance and no other.

    A Conflict is an answer; so is every KorakError that a command raises.
    """
    try:
        return decide(snapshot, fact, now)
    except KorakError as refused:
        if not isinstance(fact, Finished) and refused.code != "forbidden_transition":
            return refused
        error: Exception = refused
    except Exception as defect:
        error = defect
    log.error("instance %s can't be decided", snapshot.instance.ulid, exc_info=error)
    try:
        return decide(snapshot, Broken("invalid_graph", f"{type(error).__name__}: {error}"), now)
    except Exception as defect:
        log.exception("instance %s can't even be failed", snapshot.instance.ulid)
        return KorakError("internal", str(defect))


def blame(ask: Ask, error: Exception) -> Ask | None:
    """What to answer instead where the data of this one fact can't be written; None where that was tried already."""
    detail = str(error).split("\n", maxsplit=1)[0]
    match ask.fact:
        case Finished(step, token, result) if not (isinstance(result, Raised) and result.code == "invalid_output"):
            refused = Raised(
                "invalid_output",
                None,
                {"pointer": "", "detail": _clean(detail)},
                is_retryable=False,
                category=FailureCategory.STEP,
            )
            return Ask(ask.instance_id, Finished(step, token, refused), ask.step)
        case Broken():
            return None
        case _:
            return Ask(ask.instance_id, Broken("invalid_graph", _clean(detail)), ask.step)


def _clean(text: str) -> str:
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:500]
