"""Starting instances, many in a transaction: the ledger's unique key decides who is first, no definition is locked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from korak.core.changes import Changes
from korak.core.decide import decide
from korak.core.facts import Started
from korak.core.opening import Opening, open_instance
from korak.core.snapshot import Policy
from korak.store.applying import apply
from korak.store.database import Runner
from korak.store.sealing import Ids, seal


@dataclass(frozen=True, slots=True)
class Start:
    """What a start came to: the instance's ULID, whether this call made it, and whether a repeat had another body."""

    ulid: str
    is_created: bool
    has_other_body: bool = False


@dataclass(frozen=True, slots=True)
class StartBatch:
    """The answers, in the order of the openings, and what to nudge once the transaction has committed."""

    starts: list[Start]
    changes: list[Changes]


class Starter:
    """Starts instances under the engine's policy. `ttl` is how long a start key is known."""

    def __init__(self, policy: Policy, ids: Ids, ttl: timedelta) -> None:
        self._policy = policy
        self._ids = ids
        self._ttl = ttl

    async def start(self, runner: Runner, openings: Sequence[Opening], now: datetime) -> StartBatch:
        """Start each opening, or find whom its key has started already (ID-2). In a transaction of the caller's."""
        first: dict[str, Opening] = {}
        for opening in openings:
            first.setdefault(opening.digest or opening.ulid, opening)
        decided = {
            opening.ulid: decide(open_instance(opening, self._policy, now), Started(), now)
            for opening in first.values()
        }
        await self._ids.reserve(runner, decided.values())
        for changes in decided.values():
            seal(changes, self._ids)
        known = await self._claim(runner, [opening for opening in first.values() if opening.digest], decided, now)
        fresh = [
            decided[opening.ulid] for opening in first.values() if opening.digest is None or opening.digest not in known
        ]
        if fresh:
            await apply(runner, fresh)
        return StartBatch([_answer(opening, first, known) for opening in openings], fresh)

    async def _claim(
        self, runner: Runner, keyed: Sequence[Opening], decided: dict[str, Changes], now: datetime
    ) -> dict[str, tuple[str, str | None]]:
        """The keys that others have started under: their instance's ULID and the fingerprint of their body."""
        if not keyed:
            return {}
        claims = [
            (
                opening.digest,
                opening.version.definition_id,
                decided[opening.ulid].instance.id,
                opening.ulid,
                opening.fingerprint,
                now + self._ttl,
                now,
            )
            for opening in keyed
        ]
        won = {row["key"] for row in await runner.fetch("starts_claim", claim=claims)}
        lost = [opening.digest for opening in keyed if opening.digest not in won]
        if not lost:
            return {}
        rows = await runner.fetch("starts_find", keys=lost)
        return {row["key"]: (row["instance_ulid"], row["fingerprint"]) for row in rows}


def _answer(opening: Opening, first: dict[str, Opening], known: dict[str, tuple[str, str | None]]) -> Start:
    if opening.digest is not None and opening.digest in known:
        ulid, fingerprint = known[opening.digest]
        return Start(ulid, False, has_other_body=fingerprint != opening.fingerprint)
    winner = first[opening.digest or opening.ulid]
    return Start(winner.ulid, winner is opening, has_other_body=winner.fingerprint != opening.fingerprint)
