"""Parents and children on a server, driven fact by fact: what an engine does with the steps that see other runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ulid import ULID

from korak.clock import ManualClock
from korak.core.changes import Changes, Grant
from korak.core.facts import Claimed, Delivered, Finished, HandlerResult
from korak.core.opening import Opening, Version
from korak.model import Json, JsonObject
from korak.steps.results import Complete
from korak.steps.waits import Signal
from korak.store import kin
from korak.store.database import Session
from korak.store.plans import Plans
from korak_engine.contexts import AsyncContext, Means
from korak_engine.nesting import Asked, Nesting
from korak_engine.work import Work
from tests.support.flows import APP, KIN, NOW, Flows, chain, make_claimant, work


def nested(child: str = "child", name: str = "sub", **members: Any) -> JsonObject:
    """A node that runs a child and waits for it."""
    config = {"definition": child, "wait": True, **members.pop("config", {})}
    return {"id": name, "type": "start_workflow", "config": config, "save": {"merge": True}, **members}


def many(items: Json, child: str = "child", name: str = "many", **config: Json) -> JsonObject:
    """A node that starts a child for each item."""
    given: JsonObject = {"definition": child, "items": items, **config}
    return {"id": name, "type": "start_workflows", "config": given, "save": {"merge": True}}


def waiting(ids: Json, name: str = "wait", **config: Json) -> JsonObject:
    """A node that waits for runs."""
    return {"id": name, "type": "wait_workflows", "config": {"ids": ids, **config}, "save": {"key": "r"}}


@dataclass
class Families:
    """Runs that go on as far as they can, under one engine of theirs."""

    flows: Flows
    engine: int
    nesting: Nesting
    now: datetime = NOW

    @classmethod
    async def make(cls, flows: Flows) -> Families:
        """With an engine that is registered."""
        return cls(flows, await flows.register(), Nesting(flows.database, Plans(), ManualClock(NOW)))

    async def publish(self, *documents: JsonObject) -> dict[str, Version]:
        """A definition each, by their keys."""
        found = {str(each["key"]): await self.flows.publish(each, key=str(each["key"])) for each in documents}
        async with self.flows.database.transaction() as connection:
            for version in found.values():
                await connection.execute(
                    "update workflow_definitions set current_version_id = $2, status = 'active' where id = $1",
                    version.definition_id,
                    version.version_id,
                )
        return found

    async def start(self, version: Version, given: JsonObject | None = None) -> tuple[int, str]:
        """A run's id and ULID."""
        ulid = str(ULID())
        async with self.flows.database.transaction() as connection:
            opening = Opening(ulid, version, APP, given or {})
            batch = await self.flows.starter.start(Session(connection), [opening], self.now)
        return batch.changes[0].instance.id, ulid

    async def claim(self, instance_id: int) -> Changes:
        """What comes of asking for the run's one ready step."""
        step = await self.flows.get(
            "select id from workflow_step_runs where instance_id = $1 and ready_at is not null order by id limit 1",
            instance_id,
        )
        return await self.flows.answer(instance_id, Claimed(step, make_claimant(self.engine)), self.now)

    async def ask(self, changes: Changes) -> tuple[Grant, HandlerResult]:
        """What the granted step comes to, looked up as an engine does it."""
        [grant] = changes.claimed
        kind = next((kind for kind in KIN if kind.key == grant.step.node_type), None)
        if kind is None:
            output = grant.input if isinstance(grant.input, dict) else {}
            return grant, Complete(output=output)
        job = Work(grant.step, grant.input, changes.after, 1)
        stored = grant.step.resume_signal
        signal = None if stored is None else Signal.from_json(stored)
        nothing: Any = None
        means = Means(nothing, nothing, nothing, nesting=self.nesting)
        ctx: Any = AsyncContext(job, means, signal, set())
        returned: Any = await (kind.handle(ctx) if signal is None else kind.resume(ctx, signal))
        return grant, await self.nesting.settle(job, returned) if isinstance(returned, Asked) else returned

    async def finish(self, grant: Grant, result: HandlerResult) -> Changes:
        fact = Finished(grant.step.id, grant.step.claim_token or "", result)
        return await self.flows.answer(grant.step.instance_id, fact, self.now, step=grant.step.id)

    async def work(self, instance_id: int) -> bool:
        """Claim and record one ready step; whether there was one."""
        ready = await self.flows.get(
            "select count(*) from workflow_step_runs where instance_id = $1 and ready_at is not null", instance_id
        )
        if not ready:
            return False
        changes = await self.claim(instance_id)
        if changes.claimed:
            await self.finish(*await self.ask(changes))
        return True

    async def deliver(self, instance_ids: Iterable[int] | None = None) -> int:
        """Hand out all that lies there; to how many runs."""
        rows = await self.flows.fetch(
            "select distinct instance_id from workflow_signals where taken_at is null and buffered_at is null"
        )
        wanted = [row["instance_id"] for row in rows]
        if instance_ids is not None:
            wanted = [each for each in wanted if each in set(instance_ids)]
        for instance_id in wanted:
            await self.flows.answer(instance_id, Delivered(), self.now)
        return len(wanted)

    async def look(self) -> int:
        """Look on behalf of all who wait for other runs; how many steps woke."""
        async with self.flows.database.acquire() as connection:
            runner = Session(connection)
            page = await kin.list_waits(runner, kin.START, 10_000)
            waits = sorted({wait for wait, _ in page})
            return len((await kin.tell(runner, self.now, is_sent=False, waits=waits)).woken) if waits else 0

    async def cascade(self, count: int = 500) -> int | None:
        """One page of commands to children; to how many, or None where nothing is to do."""
        async with self.flows.database.acquire() as connection:
            advanced = await kin.advance_cascades(Session(connection), self.now, count)
        return sum(len(advance.children) for advance in advanced) if advanced else None

    async def drain(self) -> None:
        """Go on until nothing moves by itself."""
        is_moving = True
        while is_moving:
            is_moving = bool(await self.look()) or await self.cascade() is not None
            is_moving = bool(await self.deliver()) or is_moving
            rows = await self.flows.fetch(
                "select distinct instance_id from workflow_step_runs where ready_at is not null"
            )
            for row in rows:
                while await self.work(row["instance_id"]):
                    is_moving = True

    async def list_children(self, instance_id: int) -> list[Any]:
        """The rows of the runs that it has started, in the order of their ULIDs."""
        return await self.flows.fetch(
            "select * from workflow_instances where parent_instance_id = $1 order by ulid", instance_id
        )


async def copy_children(flows: Flows, parent: int, count: int) -> None:
    """As many copies of its one child as that, which nothing ever moves."""
    rows = await flows.fetch("select * from workflow_instances where parent_instance_id = $1", parent)
    names = [name for name in dict(rows[0]) if name not in ("id", "ulid")]
    listed = ", ".join(f'"{name}"' for name in names)
    async with flows.database.transaction() as connection:
        await connection.execute(
            f"insert into workflow_instances (ulid, {listed})"
            f" select lpad(n::text, 26, 'C'), {listed} from workflow_instances, generate_series(1, {count}) n"
            f" where parent_instance_id = {parent}"
        )


def graph(key: str, *nodes: JsonObject, **settings: Any) -> JsonObject:
    """A line of nodes that takes its input into the state and ends with it."""
    begin: JsonObject = {"id": "begin", "type": "set_field", "config": {"field": "state", "value": {"ref": "input"}}}
    end: JsonObject = {"id": "done", "type": "end", "config": {"result": {"ref": "state"}}}
    return chain(begin, *nodes, end, settings=settings) | {"key": key}


CHILD = graph("child", work(save={"key": "worked"}, config={"by": "child"}))
