"""Imported instances: read line by line and written page by page, all of it or nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import Any, Final

from ulid import ULID

from korak.core import arriving
from korak.core.arriving import Arrival, Head
from korak.core.exporting import Kind
from korak.core.importing import Import
from korak.core.opening import Owner
from korak.core.snapshot import Policy
from korak.errors import Forbidden
from korak.model import Json, JsonObject
from korak.starting import get_digest
from korak.store import arrivals
from korak.store.arrivals import Claim, Landing, land
from korak.store.database import Database
from korak.store.plans import Plans
from korak_api.spooling import Spool

PAGE: Final = 100
"""Rows that are in memory at a time; fewer where they are large."""

BYTES: Final = 1 << 20
"""How large they may be together."""

NAMES: Final = 6
"""Row ids of one table that a line may need at most."""


@dataclass(frozen=True, slots=True)
class Document:
    """What is to be brought in, for whom, by whom. `users` are those for whom it may act; None: for anybody."""

    lines: Spool
    owner: Owner
    actor: JsonObject | None
    now: datetime
    users: frozenset[str | None] | None = None

    def check(self, head: Head) -> None:
        """Raise Forbidden where the run would act for somebody whom its bringer may not act for."""
        starter = head.instance.get("starter_id")
        if self.users is not None and starter is not None and starter not in self.users:
            raise Forbidden("starter_not_allowed", user=str(starter)[:191])


class Importer:
    """Brings documents in. One a process."""

    def __init__(self, database: Database, plans: Plans, policy: Policy) -> None:
        self._database, self._plans, self._policy = database, plans, policy

    async def bring(self, document: Document) -> tuple[str, bool]:
        """The ULID of the instance, and whether it was made now. Raises Invalid, Forbidden, Conflict."""
        lines = document.lines.list_lines()
        first = await anext(lines, None)
        head = arriving.read_head(None if first is None else first[0])
        document.check(head)
        owner = document.owner.scope
        version = await arrivals.find_version(self._database, self._plans, owner, head.key, head.checksum)
        async with land(self._database) as landing:
            keeps = await landing.is_free(head.source)
            ulids = make_ulids(document.now)
            ulid = head.source if keeps else next(ulids)
            key = get_digest("import", owner, document.lines.digest)
            made = await landing.claim(Claim(key, version.definition_id, ulid, document.now))
            if made is not None:
                return made, False
            arrival = Arrival(
                version=version,
                owner=document.owner,
                actor=document.actor,
                instance_id=landing.instance_id,
                ulid=ulid,
                ulids=ulids,
                keeps=keeps,
                take=landing.take,
                policy=self._policy,
                now=document.now,
            )
            await _write(landing, Import(head, arrival), lines, head)
        return ulid, True


async def _write(landing: Landing, coming: Import, lines: AsyncIterator[tuple[Json, int]], head: Head) -> None:
    page: list[Any] = []
    kind: Kind | None = None
    size = 0
    await landing.stock(NAMES * PAGE)
    async for line, length in lines:
        taken = coming.take(line)
        if page and kind is not None and (taken is None or taken[0] is not kind or len(page) >= PAGE or size > BYTES):
            await landing.write(kind, page)
            await landing.stock(NAMES * PAGE)
            page, size = [], 0
        if taken is not None:
            kind, row = taken
            page.append(row)
            size += length
    instance, event = coming.finish()
    await landing.settle(instance, event, parent=head.parent, parent_step=head.parent_step)


def make_ulids(now: datetime) -> Iterator[str]:
    """ULIDs that nobody has, one after the other."""
    first = int(ULID.from_datetime(now))
    return (str(ULID.from_int(first + place)) for place in count())
