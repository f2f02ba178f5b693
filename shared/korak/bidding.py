"""Having runs obey what other runs bid them, right after the commit that bids it. What is lost here the waker finds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from itertools import islice
from typing import Final

from korak.answering import Answerer
from korak.clock import Clock
from korak.core.changes import Outward
from korak.core.facts import Delivered
from korak.dispatch import Dispatcher
from korak.errors import TransientError
from korak.loop import wait
from korak.store import kin
from korak.store.database import Database, Hot
from korak.store.loading import Loader
from korak.store.sealing import Ids
from korak.store.transacting import Ask, Transactor, is_lock_timeout

log: logging.Logger = logging.getLogger(__name__)

PAGE: Final = 100
"""Runs of one transaction: few, so that whoever else works in this process is kept waiting for milliseconds only."""

MOST: Final = 2_000
"""Runs in one go, whatever they bid in turn; what is beyond is left to the waker."""

PASSES: Final = 3
AGAIN: Final = 0.01
"""How often a run that others hold is passed over, and seconds between two of these times."""

PATIENCE, LINE = 0.25, 4
"""Seconds that a run's lock is waited for in the end, in line; how many are waited for before others get their turn."""

BLOCK: Final = 50


class Bidder:
    """Works beside those who commit, on a connection of its own: it finds whom they bid something, and decides it.

    Its dispatcher's listener is to tell it what comes of that: so a command goes from child to child.
    """

    def __init__(self, database: Database, loader: Loader, dispatcher: Dispatcher, clock: Clock) -> None:
        self._hot = Hot(database)
        self._answerer = Answerer(Transactor(self._hot, loader, Ids(BLOCK), dispatcher), dispatcher)
        self._clock = clock
        self._cascades: set[tuple[int, int]] = set()
        self._ulids: list[str] = []
        self._bidden: dict[int, int] = {}
        self._room = MOST
        self._arrived = asyncio.Event()
        self._is_leaving = False

    def hear(self, outward: Outward) -> None:
        """What a run is to others, and committed."""
        self._cascades.update((cascade.instance_id, cascade.seq) for cascade in outward.cascades)
        self._ulids += [command.ulid for command in outward.commands]
        if self._cascades or self._ulids:
            self._arrived.set()

    def bid(self, instances: Iterable[int]) -> None:
        """Something that is committed is addressed to these runs."""
        for instance in instances:
            self._bidden[instance] = 0
            self._room -= 1
            self._arrived.set()

    def leave(self) -> None:
        """End the work as soon as nothing is left of it."""
        self._is_leaving = True
        self._arrived.set()

    async def work(self) -> None:
        """Bring what is heard of, until it is told to leave."""
        while not (self._is_leaving and self._is_idle):
            await wait(None if self._is_idle else self._get_pause(), self._arrived)
            self._arrived.clear()
            try:
                await self._advance()
                await self._find()
                await self._obey()
            except TransientError as error:
                log.warning("what runs bid others isn't brought now: %s", error.message)
                self._forget()
            except Exception:
                log.exception("what runs bid others isn't brought")
                self._forget()
            if self._is_idle or self._room <= 0:
                self._forget()

    async def close(self) -> None:
        """Let the connection go."""
        await self._hot.close()

    @property
    def _is_idle(self) -> bool:
        return not (self._cascades or self._ulids or self._bidden)

    def _get_pause(self) -> float:
        is_held = not (self._cascades or self._ulids) and all(self._bidden.values())
        return AGAIN if is_held else 0.0

    def _forget(self) -> None:
        self._cascades.clear()
        self._ulids.clear()
        self._bidden.clear()
        self._room = MOST

    async def _advance(self) -> None:
        """Bring commands to their next page of children."""
        if not self._cascades:
            return
        instances = list(islice(dict.fromkeys(instance for instance, _ in self._cascades), PAGE // 10))
        async with self._hot.alone() as runner:
            advanced = await kin.advance_cascades(runner, self._clock.now(), PAGE, instances)
        there = {advance.instance for advance in advanced}
        over = {(advance.instance, advance.seq) for advance in advanced if advance.is_over}
        gone = {place for place in self._cascades if place[0] in instances and place[0] not in there}
        self._cascades -= over | gone
        for advance in advanced:
            self.bid(advance.children)

    async def _find(self) -> None:
        if self._ulids:
            ulids, self._ulids = self._ulids[:PAGE], self._ulids[PAGE:]
            async with self._hot.alone() as runner:
                self.bid(await kin.find_runs(runner, ulids))

    async def _obey(self) -> None:
        """Let them take what is addressed to them; who was passed over too often is waited for alone."""
        batch = dict(islice(self._bidden.items(), PAGE))
        for instance in batch:
            del self._bidden[instance]
        together = [Ask(instance, Delivered()) for instance, passes in batch.items() if passes < PASSES]
        if together:
            answered = await self._answerer.answer(together, self._clock.now())
            for ask in answered.skipped:
                self._bidden.setdefault(ask.instance_id, batch[ask.instance_id] + 1)
        held = [instance for instance, passes in batch.items() if passes >= PASSES]
        for instance in held[LINE:]:
            self._bidden.setdefault(instance, PASSES)
        for instance in held[:LINE]:
            await self._wait_for(instance)

    async def _wait_for(self, instance: int) -> None:
        try:
            await self._answerer.answer([Ask(instance, Delivered())], self._clock.now(), patience=PATIENCE)
        except TransientError as error:
            if not is_lock_timeout(error):
                raise
            log.info("instance %s is held: what it is bidden is brought to it later", instance)
