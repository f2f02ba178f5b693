"""What a step asks of other runs, looked up before its record: which version a child runs, who is waited for."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeAlias, assert_never

from ulid import ULID

from korak.clock import Clock
from korak.core import opening
from korak.core.depending import make_impossible
from korak.core.facts import Depend, HandlerResult, Raised, Spawn
from korak.core.opening import Opening, Version
from korak.graphs.plans import Plan
from korak.model import ActorMode, JsonObject, TriggerKind
from korak.steps.children import Awaiting, Collecting, Starting, collect
from korak.steps.results import Complete
from korak.store import children, rates
from korak.store.database import Database, Session
from korak.store.plans import Plans
from korak_engine.work import Work

Asked: TypeAlias = Starting | Awaiting | Collecting


class Nesting:
    """Sees other runs on behalf of steps, each only those of its own owner."""

    def __init__(self, database: Database, plans: Plans, clock: Clock, limit: int | None = None) -> None:
        self._database = database
        self._plans = plans
        self._clock = clock
        self._limit = limit

    async def settle(self, work: Work, asked: Asked) -> HandlerResult:
        """What the step comes to. Raises TransientError where the database can't be asked now."""
        match asked:
            case Starting():
                return await self._start(work, asked)
            case Awaiting():
                return await self._await(work, asked)
            case Collecting():
                return await self._collect(work, asked)
            case _:
                assert_never(asked)

    async def _start(self, work: Work, asked: Starting) -> HandlerResult:
        owner = work.snapshot.instance.owner_scope
        async with self._database.acquire() as connection:
            named = children.Named(owner, asked.definition, asked.number, asked.checksum)
            found = await children.resolve(connection, self._plans, named)
        if isinstance(found, str):
            return _refuse(asked, found)
        openings: list[Opening] = []
        for place, given in enumerate(asked.inputs, len(asked.before)):
            made = _open(work, asked, place, given, found)
            if isinstance(made, Raised):
                return made
            openings.append(made)
        limit, now = self._get_limit(found.plan), self._clock.now()
        pause = None if limit is None else await self._count(openings, limit, now)
        if pause is not None and asked.is_single:
            return replace(
                _refuse(asked, f"no more than {limit} starts a minute are allowed"),
                is_retryable=True,
                after=now + timedelta(seconds=pause),
            )
        return self._spawn(asked, openings, pause)

    async def _count(self, openings: list[Opening], limit: int, now: datetime) -> float | None:
        """Leave the openings that a limit on starts lets pass now; in how many seconds the others may come again."""
        limits = {made.version.definition_id: limit for made in openings}
        async with self._database.transaction() as connection:
            refused = await rates.count(Session(connection), openings, limits, now)
        openings[:] = [made for made in openings if made.ulid not in refused]
        return max((refusal.retry_after for refusal in refused.values()), default=None)

    def _get_limit(self, plan: Plan) -> int | None:
        limits = [limit for limit in (self._limit, plan.settings.limits.get("max_starts_per_minute")) if limit]
        return min(limits) if limits else None

    def _spawn(self, asked: Starting, openings: list[Opening], pause: float | None) -> Spawn:
        ulids = [*asked.before, *(made.ulid for made in openings)]
        return Spawn(
            openings=tuple(openings),
            output={asked.result_key: ulids[0] if asked.is_single else list(ulids)},
            offset=len(asked.before),
            rest=asked.rest + len(asked.inputs) - len(openings),
            pause=pause,
            awaits=asked.awaits,
            timeout=asked.timeout,
        )

    async def _await(self, work: Work, asked: Awaiting) -> HandlerResult:
        instance = work.snapshot.instance
        async with self._database.acquire() as connection:
            if asked.group is not None:
                ulids = await children.list_group(connection, instance.id, asked.group)
            else:
                ulids = list(asked.ulids)
            known = await children.list_known(connection, ulids, instance.owner_scope)
        stranger = next((ulid for ulid in ulids if ulid not in known), None)
        if stranger is not None:
            return _cannot_come(asked, ulids.index(stranger), f"there is no run {stranger}")
        if instance.ulid in ulids:
            return _cannot_come(asked, ulids.index(instance.ulid), f"the run {instance.ulid} would wait for itself")
        return Depend(tuple(ulids), asked.mode, asked.quorum, asked.timeout)

    async def _collect(self, work: Work, asked: Collecting) -> HandlerResult:
        async with self._database.acquire() as connection:
            results = await children.get_results(connection, asked.ulids, work.snapshot.instance.owner_scope)
        return Complete(output=collect(asked, results))


def _open(work: Work, asked: Starting, place: int, given: JsonObject, version: Version) -> Opening | Raised:
    parent, plan = work.snapshot.instance, version.plan
    accepted, issues = plan.accept(given, work.snapshot.policy.limits["max_state_bytes"])
    if issues:
        return _refuse(asked, issues[0].message, pointer=issues[0].at("/inputs").pointer, index=place)
    if plan.settings.actor == ActorMode.ON_BEHALF_OF and parent.starter_id is None:
        return _refuse(asked, "it acts on behalf of a user, and nobody has started this run")
    return Opening(
        ulid=str(ULID()),
        version=version,
        owner=opening.Owner(parent.owner_scope, parent.owner_type, parent.owner_id),
        input=accepted,
        trigger=TriggerKind.WORKFLOW,
        trigger_key=asked.group,
        trigger_payload={
            "instance": parent.ulid,
            "node": work.step.node_id,
            "execution": work.step.execution_id,
            "index": place,
        },
        starter=parent.starter_id,
    )


def _refuse(asked: Starting, detail: str, **more: Any) -> Raised:
    told = {"pointer": "/definition", "key": asked.definition, "detail": detail, **more}
    return Raised("child_not_started", None, told, is_retryable=False)


def _cannot_come(asked: Awaiting, place: int, detail: str) -> Raised:
    pointer = f"/ids/{place}" if asked.group is None else "/group"
    return make_impossible(pointer, detail)
