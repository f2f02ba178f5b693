"""Single commands on instances from outside: answered under the lock if it is had at once, else left to its holder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final, Self

from korak.batching import Batcher
from korak.clock import Clock
from korak.core.changes import Changes
from korak.core.facts import Fact
from korak.dispatch import Dispatcher
from korak.errors import KorakError, TransientError, Unavailable
from korak.sending import Sender
from korak.store.database import Database, Hot
from korak.store.loading import Loader
from korak.store.sealing import Ids
from korak.store.transacting import Ask, Skipped, Transactor, is_lock_timeout

PATIENCE: Final = 0.1
"""Seconds that a command waits for its instance's lock."""

PERSISTENCE: Final = 4.0
"""The same where nothing can be left for the lock's holder: such commands then wait in a line of their own."""

WORKERS: Final = 4
INSISTENT: Final = 2
BLOCK: Final = 50
"""Ids that a worker takes at once: commands make few rows."""


class Commander:
    """An async context manager. Four commands run at once, each on a connection of its own; two more wait for locks."""

    def __init__(self, database: Database, loader: Loader, dispatcher: Dispatcher, clock: Clock) -> None:
        self._sender = Sender(dispatcher)
        self._clock = clock
        self._hots = [Hot(database) for _ in range(WORKERS + INSISTENT)]
        transactors = [Transactor(hot, loader, Ids(BLOCK), dispatcher) for hot in self._hots]
        self._asking = self._make_batcher(transactors[:WORKERS], PATIENCE)
        self._insisting = self._make_batcher(transactors[WORKERS:], PERSISTENCE)

    def _make_batcher(self, transactors: Iterable[Transactor], patience: float) -> Batcher[Ask, Changes | None]:
        return Batcher([partial(self._run, transactor, patience) for transactor in transactors], limit=1)

    async def __aenter__(self) -> Self:
        await self._asking.__aenter__()
        await self._insisting.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._asking.__aexit__()
        await self._insisting.__aexit__()
        await self._sender.__aexit__()
        for hot in self._hots:
            await hot.close()

    async def answer(self, instance_id: int, fact: Fact) -> Changes | None:
        """The committed changes; None where somebody else holds the instance for longer than a moment.

        Raises what `decide` refuses with (Conflict), and TransientError where the database can't do it now.
        """
        return await self._asking.ask(Ask(instance_id, fact))

    async def insist(self, instance_id: int, fact: Fact) -> Changes:
        """The same for what can't be left to whoever holds the instance: it waits in line for seconds.

        Raises Unavailable where that was in vain too.
        """
        changes = await self.answer(instance_id, fact) or await self._insisting.ask(Ask(instance_id, fact))
        if changes is None:
            raise Unavailable(what="The instance")
        return changes

    async def _run(
        self, transactor: Transactor, patience: float, asks: list[Ask]
    ) -> Sequence[Changes | BaseException | None]:
        try:
            [answer] = await transactor.answer(asks, self._clock.now(), patience=patience)
        except TransientError as error:
            if is_lock_timeout(error):
                return [None]
            raise
        if isinstance(answer, KorakError):
            return [answer]
        if isinstance(answer, Skipped):
            return [None]
        self._sender.send([answer])
        return [answer]
