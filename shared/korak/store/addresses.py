"""Runs by the id that their caller gave them."""

from __future__ import annotations

from sqlalchemy import String, select

from korak.model import APP_WIDE
from korak.store.database import Connection
from korak.store.querying import Query, parameter
from korak.store.tables import workflow_definitions as definitions
from korak.store.tables import workflow_instances as instances

_RUNS = (
    select(instances.c.ulid)
    .join(definitions, definitions.c.id == instances.c.definition_id)
    .where(
        instances.c.owner_scope == parameter("owner", String()),
        instances.c.business_id == parameter("business_id", String()),
        definitions.c.key == parameter("definition", String()),
    )
)
_NEWEST = Query(
    _RUNS.order_by(
        definitions.c.deleted_at.is_not(None),
        definitions.c.owner_scope == APP_WIDE,
        definitions.c.id.desc(),
        instances.c.run_number.desc(),
    ).limit(1)
)
_OPEN = Query(_RUNS.where(instances.c.ended_at.is_(None)).limit(1))


async def find_newest(connection: Connection, owner_scope: str, definition: str, business_id: str) -> str | None:
    """The ULID of the newest run that the owner has under its own id, of the definition that a start would mean."""
    row = await _NEWEST.fetch_one(connection, owner=owner_scope, definition=definition, business_id=business_id)
    return None if row is None else str(row["ulid"])


async def find_open(connection: Connection, owner_scope: str, definition: str, business_id: str) -> str | None:
    """The ULID of the open run of an id."""
    row = await _OPEN.fetch_one(connection, owner=owner_scope, definition=definition, business_id=business_id)
    return None if row is None else str(row["ulid"])
