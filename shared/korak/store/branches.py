"""The branches and items that attempts belong to, by name, for whoever looks at a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from korak.core.rows import Scope, StepRun
from korak.store.database import Connection, Session


async def list_branches(connection: Connection, steps: Iterable[StepRun]) -> dict[int, str]:
    """What the scopes of these attempts are called, by id: `a`, `3`, or `a/3` for one that lies inside another."""
    ids = sorted({step.scope_id for step in steps if step.scope_id is not None})
    if not ids:
        return {}
    return {row["id"]: row["name"] for row in await Session(connection).fetch("scopes_name", ids=ids)}


def name_branches(scopes: Mapping[int, Scope]) -> dict[int, str]:
    """What scopes are called, by id, where those around them are at hand too."""
    return {scope_id: "/".join(_list_names(scopes, scope_id)) for scope_id in scopes}


def _list_names(scopes: Mapping[int, Scope], scope_id: int | None) -> Iterable[str]:
    scope = None if scope_id is None else scopes.get(scope_id)
    if scope is not None:
        yield from _list_names(scopes, scope.parent_scope_id)
        yield str(scope.item_index) if scope.name is None else scope.name
