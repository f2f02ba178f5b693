"""How many instances a filter lets pass, by what they have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import asyncpg
from sqlalchemy import ColumnElement, and_, case, func, select

from korak.store.database import Connection
from korak.store.filters import PAUSED, Filter, get_conditions
from korak.store.querying import fetch
from korak.store.tables import workflow_definitions as definitions
from korak.store.tables import workflow_instances as instances

MOST: Final = 100_000
"""Instances that are counted at most."""

_parents = instances.alias("parents")

COUNTED: Final[Mapping[str, ColumnElement[Any]]] = {
    "status": case(
        (and_(instances.c.paused_at.is_not(None), instances.c.ended_at.is_(None)), PAUSED), else_=instances.c.status
    ),
    "definition": select(definitions.c.key).where(definitions.c.id == instances.c.definition_id).scalar_subquery(),
    "parent": select(_parents.c.ulid).where(_parents.c.id == instances.c.parent_instance_id).scalar_subquery(),
}
"""By what instances may be counted."""


async def count_instances(connection: Connection, wanted: Filter, by: Sequence[str]) -> list[asyncpg.Record]:
    """Rows of the values of `by`, which is of COUNTED, and `count`; of MOST instances, and one that tells of more."""
    found = (
        select(*(COUNTED[name].label(name) for name in by)).where(*get_conditions(wanted)).limit(MOST + 1).subquery()
    )
    columns = [found.c[name] for name in by]
    return await fetch(connection, select(*columns, func.count().label("count")).group_by(*columns).order_by(*columns))
