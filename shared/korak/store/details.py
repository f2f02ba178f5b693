"""What stands below one instance, page by page: its attempts, its history, its waits and its failures."""

from __future__ import annotations

from collections.abc import Sequence

import asyncpg
from sqlalchemy import ARRAY, BigInteger, String, any_, case, or_, select, tuple_

from korak.core.rows import StepRun, get_columns
from korak.model import EventType
from korak.store.database import Connection
from korak.store.querying import Query, parameter
from korak.store.rows import read
from korak.store.tables import workflow_events as events
from korak.store.tables import workflow_failures as failures
from korak.store.tables import workflow_step_runs as steps
from korak.store.tables import workflow_waits as waits

_instance_id = parameter("instance_id", BigInteger())
_page = parameter("page", BigInteger())
_skip = parameter("skip", BigInteger())
_place = steps.alias("place")

_STEPS = select(*(steps.c[name] for name in get_columns(StepRun))).where(steps.c.instance_id == _instance_id)
_SHOWN = _STEPS.where(or_(steps.c.scope_id.is_(None), steps.c.scope_id == any_(parameter("scopes", ARRAY(BigInteger)))))
_is_after = (
    select(_place.c.id)
    .where(
        _place.c.instance_id == _instance_id,
        _place.c.ulid == parameter("after", String()),
        tuple_(steps.c.created_at, steps.c.id) > tuple_(_place.c.created_at, _place.c.id),
    )
    .exists()
)
_PAGES = {
    (is_whole, is_first): Query(
        (wanted if is_first else wanted.where(_is_after)).order_by(steps.c.created_at, steps.c.id).limit(_page)
    )
    for is_whole, wanted in ((True, _STEPS), (False, _SHOWN))
    for is_first in (True, False)
}
_EVENTS = Query(
    select(
        events,
        steps.c.ulid.label("step"),
        case((events.c.type == EventType.STEP_COMPLETED, steps.c.output)).label("output"),
    )
    .outerjoin(steps, steps.c.id == events.c.step_run_id)
    .where(events.c.instance_id == _instance_id, events.c.seq > parameter("after", BigInteger()))
    .order_by(events.c.seq)
    .limit(_page)
)
_WAITS = Query(
    select(waits, steps.c.ulid.label("step"), steps.c.node_id)
    .join(steps, steps.c.id == waits.c.step_run_id)
    .where(waits.c.instance_id == _instance_id)
    .order_by(waits.c.created_at, waits.c.id)
    .offset(_skip)
    .limit(_page)
)
_FAILURES = Query(
    select(failures, steps.c.ulid.label("step"))
    .outerjoin(steps, steps.c.id == failures.c.step_run_id)
    .where(failures.c.instance_id == _instance_id)
    .order_by(failures.c.id)
    .offset(_skip)
    .limit(_page)
)


async def list_steps(
    connection: Connection,
    instance_id: int,
    *,
    after: str | None = None,
    limit: int = 50,
    scopes: Sequence[int] | None = None,
) -> list[StepRun]:
    """The attempts of an instance in the order in which they were made, after the one of that ULID.

    With `scopes`, of those inside containers only the ones in these.
    """
    query = _PAGES[scopes is None, after is None]
    rows = await query.fetch(connection, instance_id=instance_id, after=after, page=limit, scopes=scopes)
    return [read(StepRun, row) for row in rows]


async def list_events(
    connection: Connection, instance_id: int, *, after: int = 0, limit: int = 50
) -> list[asyncpg.Record]:
    """An instance's history after a number, each line with its attempt's ULID."""
    return await _EVENTS.fetch(connection, instance_id=instance_id, after=after, page=limit)


async def list_waits(
    connection: Connection, instance_id: int, *, skip: int = 0, limit: int = 50
) -> list[asyncpg.Record]:
    """An instance's waits, open and closed, oldest first, each with its attempt's ULID and node."""
    return await _WAITS.fetch(connection, instance_id=instance_id, skip=skip, page=limit)


async def list_failures(
    connection: Connection, instance_id: int, *, skip: int = 0, limit: int = 50
) -> list[asyncpg.Record]:
    """An instance's failures, oldest first, each with its attempt's ULID."""
    return await _FAILURES.fetch(connection, instance_id=instance_id, skip=skip, page=limit)
