"""Heartbeats: when a running step was last known to be alive, and how far it said it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from korak.core.rows import StepRun
from korak.model import JsonObject
from korak.store.database import Connection, Session


async def keep(connection: Connection, beats: Sequence[tuple[int, str, JsonObject]]) -> set[int]:
    """Write heartbeats, (step, token, {at, progress?}); whose were. The other steps are lost, or somebody has them."""
    rows = await Session(connection).fetch("heartbeats_keep", beat=beats)
    return {row["id"] for row in rows}


async def get_beats(connection: Connection, steps: Iterable[StepRun]) -> dict[int, JsonObject]:
    """The last heartbeat of each of these attempts that has had one, {at, progress?}."""
    ids = [step.id for step in steps]
    rows = await Session(connection).fetch("heartbeats_list", ids=ids) if ids else []
    return {row["id"]: row["heartbeat"] for row in rows}
