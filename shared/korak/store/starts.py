"""Starting instances, many in a transaction: the ledger's unique key decides who is first, no definition is locked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from korak.core.changes import Changes
from korak.core.decide import decide
from korak.core.facts import Refused, Started
from korak.core.identity import Run
from korak.core.opening import Opening, open_instance
from korak.core.snapshot import Policy
from korak.store import rates
from korak.store.applying import apply
from korak.store.database import Runner
from korak.store.rates import Refusal
from korak.store.sealing import Ids, seal
from korak.store.transacting import Stamper

Known: TypeAlias = dict[str, tuple[str, str | None]]
"""Start keys that stand: the instance's ULID, and the fingerprint of the body that started it."""


@dataclass(frozen=True, slots=True)
class Start:
    """What a start came to: the instance's ULID, whether this call made it, and whether a repeat had another body.

    A refused start has made an instance too, a failed one, and its key is free (LM-3, ID-10). `instance_id` is told
    where the start's greeting lies in front of the instance. While a run of the start's id is `held`, it made nothing:
    it is asked again once that run has ended, or somebody else has let go of it.
    """

    ulid: str
    is_created: bool
    has_other_body: bool = False
    refusal: Refusal | None = None
    instance_id: int | None = None
    held: Run | None = None


@dataclass(frozen=True, slots=True)
class StartBatch:
    """The answers, in the order of the openings, and what to nudge once the transaction has committed."""

    starts: list[Start]
    changes: list[Changes]


class Starter:
    """Starts instances under the engine's policy. `ttl` is how long a start key is known.

    The `stamper` marks the steps that will be sent after the commit; without one they are left to the releaser.
    """

    def __init__(self, policy: Policy, ids: Ids, ttl: timedelta, stamper: Stamper | None = None) -> None:
        self._policy = policy
        self.max_state: int = policy.limits["max_state_bytes"]
        """Bytes that the state of any run may have."""
        self._ids = ids
        self._ttl = ttl
        self._stamper = stamper

    async def start(
        self, runner: Runner, openings: Sequence[Opening], now: datetime, *, limits: Mapping[int, int] | None = None
    ) -> StartBatch:
        """Start each opening, or find whom its key has started already (ID-2). In a transaction of the caller's.

        `limits` are the starts a minute of definitions that have a limit, by id. Ids of the callers' own aren't looked
        at here: see `korak.store.rounds`.
        """
        first: dict[str, Opening] = {}
        for opening in openings:
            first.setdefault(opening.digest or opening.ulid, opening)
        refused = await rates.count(runner, first.values(), limits or {}, now)
        decided = {
            opening.ulid: self._decide(opening, refused, now)
            for opening in first.values()
            if not (opening.is_patient and opening.ulid in refused)
        }
        await self._seal(runner, decided.values())
        keyed = [opening for opening in first.values() if opening.digest and opening.ulid not in refused]
        known = await self.claim(runner, [(each, decided[each.ulid].instance.id, each.ulid) for each in keyed], now)
        fresh = [
            decided[opening.ulid]
            for opening in first.values()
            if opening.ulid in decided and (opening.digest is None or opening.digest not in known)
        ]
        if fresh:
            await apply(runner, fresh)
        return StartBatch([_answer(opening, first, known, refused) for opening in openings], fresh)

    def _decide(self, opening: Opening, refused: Mapping[str, Refusal], now: datetime) -> Changes:
        refusal = refused.get(opening.ulid)
        if refusal is None:
            return decide(open_instance(opening, self._policy, now), Started(), now)
        fact = Refused("start_rate_exceeded", {"limit": refusal.limit})
        return decide(open_instance(replace(opening, digest=None, identity=None), self._policy, now), fact, now)

    async def _seal(self, runner: Runner, batch: Iterable[Changes]) -> None:
        if self._stamper is not None:
            await self._stamper.prepare(batch)
        await self._ids.reserve(runner, batch)
        for changes in batch:
            seal(changes, self._ids)
            if self._stamper is not None:
                self._stamper.stamp(changes)

    async def claim(self, runner: Runner, keyed: Sequence[tuple[Opening, int, str]], now: datetime) -> Known:
        """Claim the keys of starts, each for an instance (id, ULID); the ones that stand already, for whom they do."""
        if not keyed:
            return {}
        claims = [
            (
                opening.digest,
                opening.version.definition_id,
                instance_id,
                ulid,
                opening.fingerprint,
                now + self._ttl,
                now,
            )
            for opening, instance_id, ulid in keyed
        ]
        won = {row["key"] for row in await runner.fetch("starts_claim", claim=claims)}
        lost = [opening.digest for opening, *_ in keyed if opening.digest not in won]
        if not lost:
            return {}
        rows = await runner.fetch("starts_find", keys=lost)
        return {row["key"]: (row["instance_ulid"], row["fingerprint"]) for row in rows}


def repeat(opening: Opening, known: tuple[str, str | None]) -> Start:
    """The answer to a start whose key stands already."""
    ulid, fingerprint = known
    return Start(ulid, False, has_other_body=fingerprint != opening.fingerprint)


def _answer(opening: Opening, first: Mapping[str, Opening], known: Known, refused: Mapping[str, Refusal]) -> Start:
    if opening.digest is not None and opening.digest in known:
        return repeat(opening, known[opening.digest])
    winner = first[opening.digest or opening.ulid]
    if winner.ulid in refused:
        return Start(winner.ulid, False, refusal=refused[winner.ulid])
    return Start(winner.ulid, winner is opening, has_other_body=winner.fingerprint != opening.fingerprint)
