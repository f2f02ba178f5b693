"""Instances with their graphs, which say how far they are and what is asked of whom, and with who could run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from korak.store import engines, instances
from korak.store.database import Connection, Session
from korak.store.instances import View
from korak_api.operations import Call

PATIENCE: Final = timedelta(seconds=10)
"""How long a ready step may find no engine before that is told: one may just be starting anew."""


async def get_view(call: Call, connection: Connection, ulid: str) -> View | None:
    """The instance of that ULID with its graph; None where there is none for the caller."""
    view = await instances.get(connection, call.owner_scope, ulid)
    return None if view is None else (await complete(call, connection, [view]))[0]


async def complete(call: Call, connection: Connection, views: Sequence[View]) -> list[View]:
    """The same views, each with its graph, with the queues that nobody serves, of those in which steps wait, and with
    the run that it has failed by, completed in turn.
    """
    since = call.now - PATIENCE
    ready = {step.queue for view in views for step in view.steps if step.ready_at is not None and step.ready_at < since}
    unserved = await engines.list_unserved(Session(connection), sorted(ready), call.now) if ready else frozenset()
    asked = {view.instance.version_id for view in views}
    plans = await call.resources.plans.get(Session(connection), asked) if asked else {}
    culprits = await instances.list_culprits(connection, views)
    if culprits:
        completed = await complete(call, connection, [*culprits.values()])
        culprits = dict(zip(culprits, completed, strict=True))
    return [
        replace(
            view,
            plan=plans.get(view.instance.version_id),
            unserved=unserved,
            culprit=culprits.get(view.instance.ulid),
        )
        for view in views
    ]
