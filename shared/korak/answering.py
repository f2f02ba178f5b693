"""Answering facts by the batch so that a bad row stops no other, and nudging for what came of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from korak.core.changes import Changes
from korak.dispatch import Dispatcher
from korak.errors import KorakError, TransientError
from korak.store.transacting import Ask, Skipped, Transactor

log: logging.Logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Answered:
    """What became of facts: how many changed something, how many couldn't be answered, and those that others held."""

    changed: int = 0
    errors: int = 0
    skipped: list[Ask] = field(default_factory=list)

    def add(self, other: Answered) -> None:
        """These too."""
        self.changed += other.changed
        self.errors += other.errors
        self.skipped += other.skipped


class Answerer:
    """One owner's, one call at a time, like the transactor that it answers with."""

    def __init__(self, transactor: Transactor, dispatcher: Dispatcher) -> None:
        self._transactor = transactor
        self._dispatcher = dispatcher

    async def answer(self, asks: Sequence[Ask], now: datetime, *, patience: float | None = None) -> Answered:
        """Answer them, commit, and nudge. `patience` as for `Transactor.answer`.

        Raises TransientError where the database can't do it now, or a lock wasn't had in time.
        """
        try:
            answers = await self._transactor.answer(asks, now, patience=patience)
        except TransientError:
            raise
        except Exception:
            log.exception(
                "%s facts aren't answered, of the instances %s", len(asks), [a.instance_id for a in asks][:10]
            )
            answered = Answered(errors=1)
            for ask in asks if len(asks) > 1 else ():
                answered.add(await self.answer([ask], now, patience=patience))
            return answered
        return await self._sort(asks, answers)

    async def _sort(self, asks: Sequence[Ask], answers: Sequence[Changes | Skipped | KorakError]) -> Answered:
        answered = Answered()
        for ask, answer in zip(asks, answers, strict=True):
            if isinstance(answer, KorakError):
                answered.errors += 1
                log.error("instance %s refuses a fact: %s (%s)", ask.instance_id, answer.message, answer.code)
            elif isinstance(answer, Skipped):
                answered.skipped.append(ask)
        changes = [answer for answer in answers if isinstance(answer, Changes) and not answer.is_empty]
        await self._dispatcher.send(changes)
        answered.changed = len(changes)
        return answered
