"""The bodies of containers, for whoever looks at a run: how many there are, and which are shown where they are many."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from korak.core.counters import Counters
from korak.core.rows import StepRun
from korak.model import ScopeStatus, StepStatus
from korak.store.database import Connection, Session

FEW: Final = 5
"""Settled bodies that are shown of a container that has more bodies than are."""


async def list_shown(connection: Connection, instance_id: int, most: int) -> list[int]:
    """The scopes of an instance whose steps are shown, where `most` bodies of a container are.

    Of more bodies these are the failed ones, those that live, and FEW of the settled ones; of those inside a body that
    isn't shown none is.
    """
    rows = await Session(connection).fetch("scopes_shown", instance=instance_id, most=most, few=min(FEW, most))
    return [row["id"] for row in rows]


async def count_bodies(connection: Connection, steps: Iterable[StepRun]) -> dict[int, dict[str, int]]:
    """The bodies of these attempts by status, by the attempt; of what is no container there is nothing.

    Those that a container will yet make are pending, too.
    """
    found: dict[int, dict[str, int]] = {step.id: _count_unmade(step) for step in steps if step.counters is not None}
    for row in await Session(connection).fetch("scopes_count", steps=list(found)) if found else ():
        counts = found[row["step_run_id"]]
        counts[row["status"]] = counts.get(row["status"], 0) + row["count"]
    return found


def _count_unmade(step: StepRun) -> dict[str, int]:
    counters = Counters.from_json(step.counters or {})
    unmade = counters.total - counters.created
    is_open = step.status is StepStatus.WAITING and counters.verdict is None
    return {str(ScopeStatus.PENDING): unmade} if unmade > 0 and is_open else {}
