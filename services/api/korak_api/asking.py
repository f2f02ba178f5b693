"""Which waits ask something of a person: what the graph of a run says of the nodes that it waits at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from korak.core.rows import Wait
from korak.graphs.plans import Plan
from korak.model import WaitKind
from korak.store import instances
from korak.store.database import Connection, Session
from korak.store.instances import View
from korak_api.operations import Call


async def get_view(call: Call, connection: Connection, ulid: str) -> View | None:
    """The instance of that ULID with what its waits ask; None where there is none for the caller."""
    view = await instances.get(connection, call.owner_scope, ulid)
    return None if view is None else (await add_humans(call, connection, [view]))[0]


async def add_humans(call: Call, connection: Connection, views: Sequence[View]) -> list[View]:
    """The same views; graphs are read only where one waits for a signal."""
    asked = {view.instance.version_id for view in views if any(map(_is_signal, view.waits))}
    plans = await call.resources.plans.get(Session(connection), asked) if asked else {}
    return [replace(view, humans=list_humans(view, plans.get(view.instance.version_id))) for view in views]


def list_humans(view: View, plan: Plan | None) -> Mapping[str, str]:
    """What is asked at each node that the instance waits at, by the node's id."""
    if plan is None:
        return {}
    nodes = (plan.nodes.get(step.node_id) for step in view.steps)
    return {node.id: str(node.raw["human"]) for node in nodes if node is not None and "human" in node.raw}


def _is_signal(wait: Wait) -> bool:
    return wait.kind is WaitKind.SIGNAL
