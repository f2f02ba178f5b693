"""Instances as the API reads them: one, and a page of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg
from sqlalchemy import ARRAY, BigInteger, String, any_, case, exists, func, select

from korak.core.rows import Instance, StepRun, Wait, get_columns
from korak.core.undoing import OWED
from korak.graphs.plans import Plan
from korak.model import LIVE, InstanceStatus, StepRole, WaitKind, WaitStatus
from korak.store.branches import list_branches
from korak.store.children import list_awaited
from korak.store.database import Connection
from korak.store.filters import Filter, get_conditions
from korak.store.parking import Reason, list_reasons
from korak.store.querying import Query, fetch, parameter
from korak.store.rows import read
from korak.store.tables import workflow_artifacts as artifacts
from korak.store.tables import workflow_compensations as compensations
from korak.store.tables import workflow_definitions as definitions
from korak.store.tables import workflow_failures as failures
from korak.store.tables import workflow_instances as instances
from korak.store.tables import workflow_step_runs as steps
from korak.store.tables import workflow_versions as versions
from korak.store.tables import workflow_waits as waits

_step_columns = [steps.c[name] for name in get_columns(StepRun)]
_parents = instances.alias("parents")
_roots = instances.alias("roots")


@dataclass(frozen=True, slots=True)
class Undoing:
    """What an instance's graph says of undoing, and its compensations, counted by status."""

    on_failure: bool = False
    has_on_cancel: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """An instance with what it does right now: its live steps and its open waits."""

    instance: Instance
    definition: str
    version: int
    steps: tuple[StepRun, ...]
    waits: tuple[Wait, ...]
    version_label: str | None = None
    parent: str | None = None
    root: str | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    """What its definition lowers of the engine's limits."""
    parked: Mapping[int, Reason] = field(default_factory=dict)
    """Why steps that a limit or a hold has parked don't go on, by step."""
    unserved: frozenset[str] = frozenset()
    """The queues of its ready steps that no live engine serves, where somebody has looked that up."""
    artifacts: tuple[str, ...] = ()
    artifacts_count: int = 0
    is_final: bool = False
    """Whether the failure that ended it is one that is never retried by itself."""
    undoing: Undoing = field(default_factory=Undoing)
    branches: Mapping[int, str] = field(default_factory=dict)
    """What the scopes of its live steps are called."""
    awaited: Mapping[int, Sequence[tuple[str, str]]] = field(default_factory=dict)
    """The runs that its waits are for, by the wait: ULID and status."""
    plan: Plan | None = None
    """Its version, where somebody has looked it up."""
    culprit: View | None = None
    """The run by whose failure it has failed, where somebody has looked that up."""


_final = (
    select(failures.c.non_retryable)
    .where(failures.c.instance_id == instances.c.id, failures.c.propagation == "instance")
    .order_by(failures.c.id.desc())
    .limit(1)
    .scalar_subquery()
)
_tally = (
    select(compensations.c.status, func.count().label("count"))
    .where(compensations.c.instance_id == instances.c.id)
    .group_by(compensations.c.status)
    .correlate(instances)
    .subquery()
)
_counts = select(func.jsonb_object_agg(_tally.c.status, _tally.c.count)).scalar_subquery()
_keys = func.array(
    select(artifacts.c.key)
    .where(artifacts.c.instance_id == instances.c.id)
    .order_by(artifacts.c.key)
    .limit(100)
    .scalar_subquery()
)
_keys_count = (
    select(func.count()).select_from(artifacts).where(artifacts.c.instance_id == instances.c.id).scalar_subquery()
)
_views = (
    select(
        *(instances.c[name] for name in get_columns(Instance)),
        definitions.c.key.label("definition"),
        versions.c.number.label("version"),
        versions.c.label.label("version_label"),
        versions.c.settings["limits"].label("limits"),
        _parents.c.ulid.label("parent"),
        _roots.c.ulid.label("root"),
        _final.label("is_final"),
        versions.c.settings["compensate_on_failure"].label("compensates_on_failure"),
        versions.c.settings["on_cancel"].is_not(None).label("has_on_cancel"),
        _counts.label("compensations"),
        _keys.label("artifacts"),
        _keys_count.label("artifacts_count"),
    )
    .join(definitions, definitions.c.id == instances.c.definition_id)
    .join(versions, versions.c.id == instances.c.version_id)
    .outerjoin(_parents, _parents.c.id == instances.c.parent_instance_id)
    .outerjoin(_roots, _roots.c.id == instances.c.root_instance_id)
)
_ids = parameter("ids", ARRAY(BigInteger))
_instance_id = parameter("instance_id", BigInteger())

_is_own = (instances.c.ulid == parameter("ulid", String()), instances.c.owner_scope == parameter("owner", String()))
_GET = Query(_views.where(*_is_own))
_BY_ULID = Query(_views.where(instances.c.ulid == any_(parameter("ulids", ARRAY(String)))))
_LIVE = Query(
    select(*_step_columns)
    .where(steps.c.instance_id == any_(_ids), steps.c.status.in_(sorted(LIVE)))
    .order_by(steps.c.created_at, steps.c.id)
)
_OPEN = Query(
    select(*(waits.c[name] for name in get_columns(Wait)))
    .where(waits.c.instance_id == any_(_ids), waits.c.status.in_([WaitStatus.PENDING, WaitStatus.SUSPENDED]))
    .order_by(waits.c.created_at, waits.c.id)
)
_ENDED_ULIDS = Query(
    select(instances.c.ulid).where(
        instances.c.ulid == any_(parameter("ulids", ARRAY(String))), instances.c.ended_at.is_not(None)
    )
)
_STATUS = Query(
    select(instances.c.id, instances.c.ulid, instances.c.version_id, instances.c.status, instances.c.ended_at).where(
        *_is_own
    )
)

_VERSION = Query(select(instances.c.version_id).where(instances.c.id == _instance_id))
_has_hooks = exists().where(
    steps.c.instance_id == instances.c.id, steps.c.status.in_(sorted(LIVE)), steps.c.role != StepRole.STEP
)
_owes_nothing = func.coalesce(instances.c.walk[OWED].astext, "{}") == "{}"
_is_settled = case((instances.c.ended_at.is_not(None), _owes_nothing & ~_has_hooks))
_END = Query(select(instances.c.status, _is_settled.label("is_settled")).where(instances.c.id == _instance_id))


async def get_end(connection: Connection, instance_id: int) -> str | None:
    """The status that an instance has ended with, or `gone` where it isn't there any more; None while it is open, or
    is cleaning up.
    """
    row = await _END.fetch_one(connection, instance_id=instance_id)
    if row is None:
        return "gone"
    return str(row["status"]) if row["is_settled"] else None


async def get_version_id(connection: Connection, instance_id: int) -> int | None:
    """The version that an instance runs; None where it isn't there any more."""
    row = await _VERSION.fetch_one(connection, instance_id=instance_id)
    return None if row is None else int(row["version_id"])


async def get(connection: Connection, owner_scope: str, ulid: str) -> View | None:
    """The owner's instance; None where there is none."""
    views = await _view(connection, await _GET.fetch(connection, ulid=ulid, owner=owner_scope))
    return views[0] if views else None


async def list_culprits(connection: Connection, views: Sequence[View]) -> dict[str, View]:
    """The runs by whose failure these have failed, by the ULID of the one that has: its own children alone, as far as
    they are still there.

    What an import says of its failure names runs that another one has started.
    """
    named = {(culprit, view.instance.ulid) for view in views if (culprit := get_culprit(view)) is not None}
    rows = await _BY_ULID.fetch(connection, ulids=sorted({culprit for culprit, _ in named})) if named else ()
    own = {row["ulid"]: row["parent"] for row in rows if (row["ulid"], row["parent"]) in named}
    found = await _view(connection, [row for row in rows if row["ulid"] in own])
    return {own[view.instance.ulid]: view for view in found}


def get_culprit(view: View) -> str | None:
    """The run by whose failure it has failed."""
    instance = view.instance
    has_failed = instance.status is InstanceStatus.FAILED and instance.failure_code == "child_failed"
    ulid = (instance.failure_params or {}).get("child") if has_failed else None
    return ulid if isinstance(ulid, str) else None


async def list_instances(connection: Connection, wanted: Filter, *, limit: int) -> list[View]:
    """A page of instances. Refused starts are left out."""
    order = instances.c.ulid.asc() if wanted.is_oldest_first else instances.c.ulid.desc()
    query = _views.where(*get_conditions(wanted)).order_by(order).limit(limit)
    return await _view(connection, await fetch(connection, query))


async def _view(connection: Connection, rows: Sequence[asyncpg.Record]) -> list[View]:
    open_ids = [row["id"] for row in rows if row["ended_at"] is None]
    live = await _list_live(connection, open_ids)
    pending = await _list_open(connection, open_ids)
    branches = await list_branches(connection, [step for steps in live.values() for step in steps])
    parked = await list_reasons(connection, [step for steps in live.values() for step in steps])
    awaiting = [wait.id for waits in pending.values() for wait in waits if wait.kind is WaitKind.WORKFLOWS]
    awaited = await list_awaited(connection, awaiting)
    return [
        View(
            instance=read(Instance, row),
            definition=row["definition"],
            version=row["version"],
            version_label=row["version_label"],
            steps=tuple(live.get(row["id"], ())),
            waits=tuple(pending.get(row["id"], ())),
            parent=row["parent"],
            root=row["root"],
            limits=row["limits"] or {},
            is_final=bool(row["is_final"]),
            undoing=Undoing(bool(row["compensates_on_failure"]), row["has_on_cancel"], row["compensations"] or {}),
            artifacts=tuple(row["artifacts"]),
            artifacts_count=row["artifacts_count"],
            branches=branches,
            parked=parked,
            awaited=awaited,
        )
        for row in rows
    ]


async def _list_live(connection: Connection, ids: Sequence[int]) -> dict[int, list[StepRun]]:
    found: dict[int, list[StepRun]] = {}
    for row in await _LIVE.fetch(connection, ids=ids) if ids else ():
        found.setdefault(row["instance_id"], []).append(read(StepRun, row))
    return found


async def _list_open(connection: Connection, ids: Sequence[int]) -> dict[int, list[Wait]]:
    found: dict[int, list[Wait]] = {}
    for row in await _OPEN.fetch(connection, ids=ids) if ids else ():
        found.setdefault(row["instance_id"], []).append(read(Wait, row))
    return found


async def list_ended(connection: Connection, ulids: Sequence[str]) -> set[str]:
    """Which of these have ended. One that isn't there yet has not: its start may be about to commit."""
    return {row["ulid"] for row in await _ENDED_ULIDS.fetch(connection, ulids=ulids)}


async def get_status(connection: Connection, owner_scope: str, ulid: str) -> asyncpg.Record | None:
    """The ids and the status of the owner's instance, for what is addressed to it."""
    return await _STATUS.fetch_one(connection, ulid=ulid, owner=owner_scope)
