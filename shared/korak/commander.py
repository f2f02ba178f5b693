"""Single commands on instances from outside: answered under the lock if it is had at once, else left to its holder."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, Self

from korak.batching import Batcher
from korak.clock import Clock
from korak.core.changes import Changes
from korak.core.facts import Fact
from korak.dispatch import Dispatcher
from korak.errors import KorakError, TransientError
from korak.sending import Sender
from korak.store.database import Database, Hot
from korak.store.loading import Loader
from korak.store.sealing import Ids
from korak.store.transacting import Ask, Skipped, Transactor, is_lock_timeout

PATIENCE: Final = 0.1
"""Seconds that a command waits for its instance's lock."""

WORKERS: Final = 4
BLOCK: Final = 50
"""Ids that a worker takes at once: commands make few rows."""


class Commander:
    """An async context manager. Four commands run at once, each on a connection of its own."""

    def __init__(self, database: Database, loader: Loader, dispatcher: Dispatcher, clock: Clock) -> None:
        self._sender = Sender(dispatcher)
        self._clock = clock
        self._hots = [Hot(database) for _ in range(WORKERS)]
        runs = [partial(self._run, Transactor(hot, loader, Ids(BLOCK), dispatcher)) for hot in self._hots]
        self._batcher: Batcher[Ask, Changes | None] = Batcher(runs, limit=1)

    async def __aenter__(self) -> Self:
        await self._batcher.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._batcher.__aexit__()
        await self._sender.__aexit__()
        for hot in self._hots:
            await hot.close()

    async def answer(self, instance_id: int, fact: Fact) -> Changes | None:
        """The committed changes; None where somebody else holds the instance for longer than a moment.

        Raises what `decide` refuses with (Conflict), and TransientError where the database can't do it now.
        """
        return await self._batcher.ask(Ask(instance_id, fact))

    async def _run(self, transactor: Transactor, asks: list[Ask]) -> Sequence[Changes | BaseException | None]:
        try:
            [answer] = await transactor.answer(asks, self._clock.now(), patience=PATIENCE)
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
