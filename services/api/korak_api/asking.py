"""Instances with their graphs, which say how far they are, and what is asked, of whom, where they wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from korak.store import instances
from korak.store.database import Connection, Session
from korak.store.instances import View
from korak_api.operations import Call


async def get_view(call: Call, connection: Connection, ulid: str) -> View | None:
    """The instance of that ULID with its graph; None where there is none for the caller."""
    view = await instances.get(connection, call.owner_scope, ulid)
    return None if view is None else (await add_plans(call, connection, [view]))[0]


async def add_plans(call: Call, connection: Connection, views: Sequence[View]) -> list[View]:
    """The same views, each with its graph."""
    asked = {view.instance.version_id for view in views}
    plans = await call.resources.plans.get(Session(connection), asked) if asked else {}
    return [replace(view, plan=plans.get(view.instance.version_id)) for view in views]
