"""Instances with their graphs, which say of the nodes that they wait at what is asked, of whom, and where it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from korak.store import instances
from korak.store.database import Connection, Session
from korak.store.instances import View
from korak_api.operations import Call


async def get_view(call: Call, connection: Connection, ulid: str) -> View | None:
    """The instance of that ULID with what its waits ask; None where there is none for the caller."""
    view = await instances.get(connection, call.owner_scope, ulid)
    return None if view is None else (await add_plans(call, connection, [view]))[0]


async def add_plans(call: Call, connection: Connection, views: Sequence[View]) -> list[View]:
    """The same views; graphs are read only where one waits."""
    asked = {view.instance.version_id for view in views if view.waits}
    plans = await call.resources.plans.get(Session(connection), asked) if asked else {}
    return [replace(view, plan=plans.get(view.instance.version_id)) for view in views]
