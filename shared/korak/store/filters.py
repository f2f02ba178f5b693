"""Which instances a list, a count or a command over many is about."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.sql.expression import cast
from ulid import ULID

from korak.model import ClosedReason, InstanceStatus
from korak.store.tables import workflow_definitions as definitions
from korak.store.tables import workflow_instances as instances

PAUSED = "paused"
"""The status of a paused run, as the API shows it."""

WAITED = 60.0
"""Seconds that a start may wait at most before it makes the instance whose ULID it has made when it came."""

_parents = instances.alias("parents")
_roots = instances.alias("roots")


@dataclass(frozen=True, slots=True)
class Filter:
    """Which instances a list shows, the newest first unless it says so; what isn't given lets all pass.

    `before` is the ULID after which it goes on.
    """

    owner_scope: str | None
    statuses: Sequence[str] = ()
    definitions: Sequence[str] = ()
    business_ids: Sequence[str] = ()
    labels: Sequence[str] = ()
    parents: Sequence[str] = ()
    roots: Sequence[str] = ()
    """Those that started it, at the first and at the outermost level, by ULID; a root is of its own family."""
    times: Sequence[tuple[str, bool, datetime]] = field(default=())
    """Bounds on `created_at`, `updated_at` or `ended_at`; the flag tells whether what is later passes."""
    beyond: str | None = None
    """The ULID with which the page before ended."""
    is_oldest_first: bool = False


def get_conditions(wanted: Filter) -> Iterable[ColumnElement[bool]]:
    """What a filter asks of an instance."""
    yield or_(instances.c.closed_reason.is_(None), instances.c.closed_reason != ClosedReason.REFUSED)
    if wanted.owner_scope is not None:
        yield instances.c.owner_scope == wanted.owner_scope
    if wanted.beyond is not None:
        yield instances.c.ulid > wanted.beyond if wanted.is_oldest_first else instances.c.ulid < wanted.beyond
    if wanted.statuses:
        yield or_(*map(_has_status, wanted.statuses))
    if wanted.definitions:
        keyed = select(definitions.c.id).where(definitions.c.key.in_(wanted.definitions))
        yield instances.c.definition_id.in_(keyed)
    if wanted.business_ids:
        yield instances.c.business_id.in_(wanted.business_ids)
    yield from _get_family(wanted)
    yield from (instances.c.labels.op("@>")(cast([label], JSONB)) for label in wanted.labels)
    for name, is_lower, at in wanted.times:
        column = instances.c[name]
        yield column >= at if is_lower else column < at
        if name == "created_at":
            bound = str(ULID.from_timestamp(max(0.0, at.timestamp() - (WAITED if is_lower else 0.0))))[:10]
            yield instances.c.ulid >= bound if is_lower else instances.c.ulid <= bound + "Z" * 16


def _get_family(wanted: Filter) -> Iterable[ColumnElement[bool]]:
    if wanted.parents:
        started = select(_parents.c.id).where(_parents.c.ulid.in_(wanted.parents))
        yield instances.c.parent_instance_id.in_(started)
    if wanted.roots:
        below = select(_roots.c.id).where(_roots.c.ulid.in_(wanted.roots))
        yield or_(instances.c.root_instance_id.in_(below), instances.c.ulid.in_(wanted.roots))


def _has_status(status: str) -> ColumnElement[bool]:
    if status == PAUSED:
        return and_(instances.c.paused_at.is_not(None), instances.c.ended_at.is_(None))
    if status in (InstanceStatus.RUNNING, InstanceStatus.WAITING):
        return and_(instances.c.status == status, instances.c.paused_at.is_(None))
    return instances.c.status == status
