"""Holds put and released through the store, and engines that claim by what they know of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

from ulid import ULID

from korak.core.changes import Changes
from korak.core.decide import decide
from korak.core.facts import Claimed
from korak.core.holds import Holds
from korak.core.snapshot import Claimant
from korak.model import HoldKind
from korak.store import holds
from korak.store.applying import apply
from korak.store.database import Database, Session
from korak.store.holds import Hold
from korak.store.loading import Loader, lock
from korak.store.plans import Plans
from korak.store.sealing import Ids, seal
from tests.support.flows import NOW, Flows

PARKED = "select count(*) from workflow_step_runs where parked_for = 'hold'"
VERSION = "select version from hold_state"


async def hold(
    flows: Flows, kind: HoldKind, name: str, *, scope: str = "*", now: datetime = NOW, until: datetime | None = None
) -> None:
    """Put it."""
    async with flows.database.transaction() as connection:
        await holds.put(Session(connection), Hold(scope, kind, name, now, until=until))


async def release(flows: Flows, kind: HoldKind, name: str, now: datetime = NOW, *, scope: str = "*") -> None:
    """Release it."""
    async with flows.database.transaction() as connection:
        assert await holds.release(Session(connection), scope, kind, name, now)


async def look(flows: Flows, now: datetime = NOW) -> Holds:
    """What an engine sees that looks now."""
    async with flows.database.acquire() as connection:
        return await holds.load(Session(connection), now)


async def make_claimant(flows: Flows, engine: int, now: datetime = NOW) -> Claimant:
    """An engine that has just looked for holds."""
    known = await look(flows, now)
    return Claimant(engine, str(ULID()), frozenset({"default"}), lambda key, version: True, known)


@asynccontextmanager
async def claiming(flows: Flows, url: str, instance_id: int, claimant: Claimant) -> AsyncIterator[Changes]:
    """An engine's claim of the instance's newest step, written and not committed before the block ends."""
    step = await flows.get_step(instance_id)
    async with Database(url, "korak", name="korak engine") as database, database.transaction() as connection:
        runner, ids = Session(connection), Ids()
        locked = await lock(runner, [instance_id])
        snapshots = await Loader(Plans(), flows.policy).load(runner, locked, NOW)
        changes = decide(snapshots[instance_id], Claimed(step["id"], claimant), NOW)
        await ids.reserve(runner, [changes])
        seal(changes, ids)
        assert await apply(runner, [changes]) == {instance_id}
        yield changes
