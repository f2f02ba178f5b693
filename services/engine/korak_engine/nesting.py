"""What a step asks of other runs, looked up before its record: which version a child runs, who is waited for."""

from __future__ import annotations

from typing import Any, TypeAlias, assert_never

from ulid import ULID

from korak.core import opening
from korak.core.facts import Depend, HandlerResult, Raised, Spawn
from korak.core.opening import Opening, Version
from korak.model import ActorMode, JsonObject, TriggerKind
from korak.steps.children import Awaiting, Collecting, Starting, collect
from korak.steps.results import Complete
from korak.store import children
from korak.store.database import Database
from korak.store.plans import Plans
from korak_engine.work import Work

Asked: TypeAlias = Starting | Awaiting | Collecting


class Nesting:
    """Sees other runs on behalf of steps, each only those of its own owner."""

    def __init__(self, database: Database, plans: Plans) -> None:
        self._database = database
        self._plans = plans

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
        ulids = [*asked.before, *(made.ulid for made in openings)]
        return Spawn(
            openings=tuple(openings),
            output={asked.result_key: ulids[0] if asked.is_single else list(ulids)},
            offset=len(asked.before),
            rest=asked.rest,
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
            return _cannot_come(f"there is no run {stranger}")
        if instance.ulid in ulids:
            return _cannot_come(f"the run {instance.ulid} would wait for itself")
        return Depend(tuple(ulids), asked.mode, asked.quorum, asked.timeout)

    async def _collect(self, work: Work, asked: Collecting) -> HandlerResult:
        async with self._database.acquire() as connection:
            results = await children.get_results(connection, asked.ulids, work.snapshot.instance.owner_scope)
        return Complete(output=collect(asked, results))


def _open(work: Work, asked: Starting, place: int, given: JsonObject, version: Version) -> Opening | Raised:
    parent, plan = work.snapshot.instance, version.plan
    accepted, issues = plan.accept(given)
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
        trigger_payload={"instance": parent.ulid, "node": work.step.node_id, "index": place},
        starter=parent.starter_id,
    )


def _refuse(asked: Starting, detail: str, **more: Any) -> Raised:
    return Raised("child_not_started", None, {"key": asked.definition, "detail": detail, **more}, is_retryable=False)


def _cannot_come(detail: str) -> Raised:
    return Raised("wait_impossible", None, {"detail": detail}, is_retryable=False)
