"""Starts, gathered into batches: what arrives while a transaction is under way is the next one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Self

from korak.batching import Batcher
from korak.clock import Clock
from korak.config import Settings
from korak.core import opening
from korak.core.changes import Changes
from korak.core.opening import Opening, Version
from korak.dispatch import Dispatcher
from korak.errors import Conflict, Invalid, Issue, NotFound, Problem
from korak.graphs.durations import compile_duration
from korak.graphs.paths import Malformed
from korak.graphs.plans import Plan
from korak.metrics import Metrics
from korak.model import ActorMode, DefinitionStatus, Json, JsonObject
from korak.owners.scopes import Owner
from korak.policy import get_policy
from korak.sending import Sender
from korak.store.database import Database, Hot, is_data_fault
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.starts import Start, Starter

WORKERS: Final = 2
BATCH: Final = 200
SEPARATOR: Final = "\x1f"
"""Between the parts of a digest (ID-11)."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A start as it is asked for. `fingerprint` tells whether a repeat under the same key asks for the same."""

    ulid: str
    owner: Owner
    key: str
    version: int | str | None
    input: JsonObject
    fingerprint: str
    labels: tuple[str, ...] = ()
    priority: int | None = None
    execution_timeout: Json = None
    starter: str | None = None
    trigger_key: str | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """What a start came to; `changes` are the new instance's, None for a repeat's."""

    start: Start
    version: int
    changes: Changes | None


class Starts:
    """All starts of one process. An async context manager."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        plans: Plans,
        *,
        dispatcher: Dispatcher,
        clock: Clock,
        metrics: Metrics,
    ) -> None:
        self._hots = [Hot(database) for _ in range(WORKERS)]
        self._sender = Sender(dispatcher)
        self._plans = plans
        self._clock = clock
        self._metrics = metrics
        self._limit = settings.limits.max_starts_per_minute
        policy, ttl = get_policy(settings), settings.idempotency.ttl
        runs = [partial(self._run, hot, Starter(policy, Ids(), ttl, dispatcher)) for hot in self._hots]
        self._batcher: Batcher[Wish, Started] = Batcher(runs, BATCH)

    async def __aenter__(self) -> Self:
        await self._batcher.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._batcher.__aexit__()
        await self._sender.__aexit__()
        for hot in self._hots:
            await hot.close()

    async def start(self, wish: Wish) -> Started:
        """Start an instance, or find the one that the key has started. Raises a Problem where it can't be."""
        started = await self._batcher.ask(wish)
        self._metrics.starts.labels(_get_result(started.start)).inc()
        return started

    async def _run(self, hot: Hot, starter: Starter, wishes: list[Wish]) -> list[Started | BaseException]:
        try:
            return await self._start(hot, starter, wishes)
        except Exception as error:
            if not is_data_fault(error) or len(wishes) == 1:
                raise
        # One row's data is to blame: each start stands alone, so that it takes no other with it.
        answers: list[Started | BaseException] = []
        for wish in wishes:
            try:
                answers += await self._start(hot, starter, [wish])
            except Exception as error:
                answers.append(error)
        return answers

    async def _start(self, hot: Hot, starter: Starter, wishes: list[Wish]) -> list[Started | BaseException]:
        now = self._clock.now()
        async with hot.transaction() as runner:
            rows = await runner.fetch("starts_resolve", wanted=[_get_place(place, w) for place, w in enumerate(wishes)])
            found = {row["place"]: row for row in rows}
            plans = await self._plans.get(runner, {row["version_id"] for row in rows if row["version_id"]})
            answers: list[Started | BaseException] = []
            openings: list[Opening] = []
            for place, wish in enumerate(wishes):
                try:
                    openings.append(_open(wish, found.get(place), plans, self._clock))
                    answers.append(_PENDING)
                except Problem as refused:
                    answers.append(refused)
            limits = {o.version.definition_id: limit for o in openings if (limit := self._get_limit(o.version.plan))}
            batch = await starter.start(runner, openings, now, limits=limits) if openings else None
        if batch is None:
            return answers
        self._sender.send(batch.changes)
        changes = {each.instance.ulid: each for each in batch.changes}
        starts = iter(batch.starts)
        for place, answer in enumerate(answers):
            if answer is _PENDING:
                start = next(starts)
                made = changes.get(start.ulid) if start.is_created else None
                answers[place] = Started(start, found[place]["number"], made)
        return answers

    def _get_limit(self, plan: Plan) -> int | None:
        """Starts a minute: the engine's limit, which a definition can only lower (LM-3)."""
        limits = [limit for limit in (self._limit, plan.settings.limits.get("max_starts_per_minute")) if limit]
        return min(limits) if limits else None


_PENDING: Final = RuntimeError("not answered yet")


def get_digest(*parts: str) -> str:
    """SHA-256 over the parts, in hex (ID-11)."""
    return hashlib.sha256(SEPARATOR.join(parts).encode()).hexdigest()


def _get_result(start: Start) -> str:
    if start.refusal is not None:
        return "refused"
    return "created" if start.is_created else "repeated"


def _get_place(place: int, wish: Wish) -> tuple[int, str, str, int | None, str | None]:
    number, checksum = (None, wish.version) if isinstance(wish.version, str) else (wish.version, None)
    return place, wish.owner.scope, wish.key, number, checksum


def _open(wish: Wish, row: Any, plans: dict[int, Plan], clock: Clock) -> Opening:
    if row is None:
        raise NotFound("definition_not_found", key=wish.key)
    if row["status"] == DefinitionStatus.ARCHIVED:
        raise Conflict("definition_archived", key=wish.key)
    if row["version_id"] is None and wish.version is None:
        raise Conflict("definition_not_published", key=wish.key)
    if row["version_id"] is None:
        raise NotFound("version_not_found", key=wish.key, number=wish.version)
    plan = plans[row["version_id"]]
    accepted, issues = plan.accept(wish.input)
    if issues:
        raise Invalid("invalid_request", issues=[issue.at("/input") for issue in issues])
    if plan.settings.actor == ActorMode.ON_BEHALF_OF and wish.starter is None:
        raise Invalid("missing_triggering_user")
    owner = opening.Owner(wish.owner.scope, wish.owner.type, wish.owner.id)
    keyed = None
    if wish.trigger_key is not None:
        keyed = get_digest("start", str(row["definition_id"]), wish.owner.scope, wish.trigger_key)
    return Opening(
        ulid=wish.ulid,
        version=Version(row["definition_id"], row["version_id"], row["checksum"], plan),
        owner=owner,
        input=accepted,
        starter=wish.starter,
        labels=wish.labels,
        priority=wish.priority,
        execution_timeout=_count_seconds(wish.execution_timeout, plan, clock),
        digest=keyed,
        fingerprint=wish.fingerprint,
    )


def _count_seconds(duration: Json, plan: Plan, clock: Clock) -> float | None:
    if duration is None:
        return None
    now = clock.now()
    try:
        seconds = (compile_duration(duration).after(now, plan.settings.timezone) - now).total_seconds()
    except (Malformed, OverflowError) as error:
        detail = error.message if isinstance(error, Malformed) else "it ends after all times"
        issue = Issue("invalid_duration", "/execution_timeout", {"detail": detail})
        raise Invalid("invalid_request", issues=[issue]) from None
    if seconds <= 0:
        issue = Issue("invalid_duration", "/execution_timeout", {"detail": "It is longer than nothing"})
        raise Invalid("invalid_request", issues=[issue])
    return seconds
