"""The branches and items that attempts belong to, by name, for whoever looks at a run."""

from __future__ import annotations

from collections.abc import Iterable

from korak.core.rows import StepRun
from korak.store.database import Connection, Session


async def list_branches(connection: Connection, steps: Iterable[StepRun]) -> dict[int, str]:
    """What the scopes of these attempts are called, by id: `a`, `3`, or `a/3` for one that lies inside another."""
    ids = sorted({step.scope_id for step in steps if step.scope_id is not None})
    if not ids:
        return {}
    return {row["id"]: row["name"] for row in await Session(connection).fetch("scopes_name", ids=ids)}
