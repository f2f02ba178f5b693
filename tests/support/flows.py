"""Definitions, engines and instances made through the store, for tests that need them standing in a database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from ulid import ULID

from korak.core.changes import Changes
from korak.core.facts import CancelAsked, Claimed, Delivered, Fact, Finished, HandlerResult, PauseAsked, ResumeAsked
from korak.core.opening import Opening, Owner, Version
from korak.core.rows import StepRun
from korak.core.snapshot import Claimant, Policy, Snapshot
from korak.errors import KorakError
from korak.graphs.freezing import freeze
from korak.graphs.planning import build
from korak.model import Json, JsonObject
from korak.steps.builtin import PURE
from korak.steps.builtin.start_workflow import StartWorkflow, StartWorkflows
from korak.steps.builtin.wait_workflows import WaitWorkflows
from korak.store import engines
from korak.store.database import Database, Hot, Session
from korak.store.loading import Loader
from korak.store.plans import Plans
from korak.store.sealing import Ids
from korak.store.starts import Starter
from korak.store.transacting import Ask, Skipped, Transactor
from tests.support.catalogue import ListedCatalogue, contract

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
APP = Owner("*")
LEASE = timedelta(seconds=60)

WORK = contract("test.work")
HELD = contract("test.held", has_cancel_hook=True)
ASKING = contract("test.asking", waits=True)
STREAMING = contract("test.streaming", streams=True)
KIN = (StartWorkflow(), StartWorkflows(), WaitWorkflows())
BUILT_IN = (kind.contract() for kind in (*PURE.values(), *KIN))
CATALOGUE = ListedCatalogue((WORK, HELD, ASKING, STREAMING, *BUILT_IN))

_READY = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null"
_NEWEST = "select * from workflow_step_runs where instance_id = $1 order by id desc limit 1"


def owner(scope: str) -> Owner:
    """An owner of that scope, such as `team:1`."""
    kind, _, key = scope.partition(":")
    return Owner(scope, kind, key)


def make_claimant(engine_id: int) -> Claimant:
    """Whoever asks in an engine's name, with a new token."""
    return Claimant(engine_id, str(ULID()), frozenset({"default"}), lambda key, version: True)


def chain(*nodes: JsonObject, settings: JsonObject | None = None) -> JsonObject:
    """A document whose nodes follow one another."""
    start: JsonObject = {"id": "start", "type": "trigger", "config": {"on": "manual"}}
    ids = ["start", *(str(node["id"]) for node in nodes)]
    edges: list[Json] = [{"from": before, "to": after} for before, after in pairwise(ids)]
    document: JsonObject = {"schema": "korak.graph/v1", "key": "flow", "name": "flow"}
    return document | {"nodes": [start, *nodes], "edges": edges, "settings": settings or {}}


def work(name: str = "work", kind: str = "test.work", **members: Json) -> JsonObject:
    """A node that an engine runs."""
    return {"id": name, "type": kind, "config": {}, **members}


def pausing(name: str = "pausing", **config: Json) -> JsonObject:
    """A wait node; a timer of an hour if nothing else is said."""
    return {"id": name, "type": "wait", "config": config or {"for": "PT1H"}}


@dataclass
class Flows:
    """A database with what is needed to make things happen in it. Every `now` is the caller's."""

    database: Database
    policy: Policy
    starter: Starter
    transactor: Transactor

    async def publish(self, document: JsonObject, *, key: str = "flow") -> Version:
        """A definition with this one version."""
        frozen = freeze(document, CATALOGUE)
        async with self.database.transaction() as connection:
            definition_id = await connection.fetchval(
                "insert into workflow_definitions (key, name, owner_scope, status, created_at, updated_at)"
                " values ($1, $1, '*', 'draft', $2, $2) returning id",
                key,
                NOW,
            )
            version_id = await connection.fetchval(
                "insert into workflow_versions (definition_id, number, status, schema_version, graph, trigger,"
                " settings, contracts, actor_mode, checksum, published_at, created_at, updated_at) values"
                " ($1, 1, 'published', 'korak.graph/v1', $2, '{}', $5, $3, 'system', repeat('0', 64), $4, $4, $4)"
                " returning id",
                definition_id,
                document,
                frozen,
                NOW,
                document.get("settings") or {},
            )
        return Version(definition_id, version_id, "0" * 64, build(document, frozen))

    async def start(
        self, version: Version, count: int = 1, now: datetime = NOW, *, owner: Owner = APP, **members: Any
    ) -> list[int]:
        """The ids of instances that were started now."""
        openings = [Opening(str(ULID()), version, owner, {}, **members) for _ in range(count)]
        async with self.database.transaction() as connection:
            batch = await self.starter.start(Session(connection), openings, now)
        return [changes.instance.id for changes in batch.changes]

    async def register(
        self, now: datetime = NOW, *, types: Sequence[str] = ("test.work@1",), queues: Sequence[str] = ("default",)
    ) -> int:
        """An engine with a lease of a minute."""
        said = engines.Announcement(str(ULID()), "host", 1, "test", queues, types)
        async with self.database.acquire() as connection:
            return await engines.register(Session(connection), said, now, LEASE)

    async def answer(self, instance_id: int, fact: Fact, now: datetime, *, step: int | None = None) -> Changes:
        """What came of a fact."""
        [answer] = await self.transactor.answer([Ask(instance_id, fact, step)], now)
        if isinstance(answer, KorakError):
            raise answer
        assert not isinstance(answer, Skipped), "somebody holds the instance"
        return answer

    async def claim(self, instance_id: int, engine_id: int, now: datetime = NOW) -> StepRun:
        """The instance's one ready step, running under this engine."""
        step_id = await self.get(
            "select id from workflow_step_runs where instance_id = $1 and ready_at is not null", instance_id
        )
        changes = await self.answer(instance_id, Claimed(step_id, make_claimant(engine_id)), now)
        assert changes.claimed, changes.dropped
        return changes.claimed[0].step

    async def ask_claim(self, instance_id: int, engine_id: int, now: datetime) -> Changes:
        """What comes of an engine's asking for the instance's newest attempt."""
        step = await self.get_step(instance_id)
        return await self.answer(instance_id, Claimed(step["id"], make_claimant(engine_id)), now)

    async def claim_any(self, instance_id: int, engine_id: int, now: datetime) -> Changes:
        """The same, where it must not have been in vain."""
        changes = await self.ask_claim(instance_id, engine_id, now)
        assert changes.dropped in (None, "nothing_due"), changes.dropped
        return changes

    async def pause(self, instance_id: int, now: datetime) -> None:
        """Pause the run."""
        await self.answer(instance_id, PauseAsked(), now)

    async def resume(self, instance_id: int, now: datetime) -> None:
        """Let it go on."""
        await self.answer(instance_id, ResumeAsked(), now)

    async def obey(self, instance_id: int, now: datetime) -> None:
        """Carry out what lies there for the run."""
        await self.answer(instance_id, Delivered(), now)

    async def cancel(self, instance_id: int, now: datetime) -> None:
        """Cancel the run."""
        await self.answer(instance_id, CancelAsked(), now)

    async def finish(self, step: StepRun, result: HandlerResult, now: datetime = NOW) -> Changes:
        """What came of a handler's result."""
        assert step.claim_token is not None
        return await self.answer(step.instance_id, Finished(step.id, step.claim_token, result), now, step=step.id)

    async def load(self, instance_id: int) -> Snapshot:
        """What a decision would look at now."""
        async with self.database.transaction() as connection:
            loaded = await Loader(Plans(), self.policy).load(Session(connection), [instance_id], NOW)
        return loaded[instance_id]

    async def get(self, query: str, *given: Any) -> Any:
        """One value."""
        async with self.database.acquire() as connection:
            return await connection.fetchval(query, *given)

    async def fetch(self, query: str, *given: Any) -> list[Any]:
        """Rows."""
        async with self.database.acquire() as connection:
            return list(await connection.fetch(query, *given))

    async def get_step(self, instance_id: int) -> Any:
        """The newest attempt of the instance."""
        [row] = await self.fetch(
            "select * from workflow_step_runs where instance_id = $1 order by id desc limit 1", instance_id
        )
        return row

    async def get_status(self, instance_id: int) -> str:
        """How the instance stands."""
        status: str = (await self.get_instance(instance_id))["status"]
        return status

    async def get_instance(self, instance_id: int) -> Any:
        """The instance's row."""
        [row] = await self.fetch("select * from workflow_instances where id = $1", instance_id)
        return row


@asynccontextmanager
async def open_flows(url: str, *, schema: str = "korak", policy: Policy | None = None) -> AsyncIterator[Flows]:
    """Flows on a migrated database."""
    policy = policy or Policy()
    ids = Ids()
    async with Database(url, schema, name="flows") as database:
        transactor = Transactor(Hot(database), Loader(Plans(), policy), ids, Leaving())
        yield Flows(database, policy, Starter(policy, ids, timedelta(days=30)), transactor)


class Leaving:
    """Nothing is stamped as sent: what is ready stands there for whoever looks."""

    async def prepare(self, batch: Iterable[Changes]) -> None:
        """Nothing to learn."""

    def stamp(self, changes: Changes) -> None:
        """Nothing to stamp."""

    def rouse(self, steps: Sequence[StepRun], now: datetime) -> None:
        """Nothing to stamp."""
