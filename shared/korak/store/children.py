"""What the engine looks up for steps that start other runs or wait for them: definitions, groups, results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from korak.core.opening import Version
from korak.model import DefinitionStatus, InstanceStatus, Json
from korak.store.database import Connection, Session
from korak.store.plans import Plans

SHOWN = 200
"""How many of the runs that a wait is for are shown."""


@dataclass(frozen=True, slots=True)
class Named:
    """A version as a step names it: of the owner's own definition, else of the application's; the current one if it
    doesn't say.
    """

    owner_scope: str
    key: str
    number: int | None = None
    checksum: str | None = None


async def resolve(connection: Connection, plans: Plans, named: Named) -> Version | str:
    """The version, or why there is none to start."""
    runner = Session(connection)
    rows = await runner.fetch(
        "children_resolve",
        owner_scope=named.owner_scope,
        key=named.key,
        checksum=named.checksum,
        number=named.number,
    )
    if not rows:
        return "there is no such definition"
    [row] = rows
    if row["status"] == DefinitionStatus.ARCHIVED:
        return "it is archived"
    if row["version_id"] is None:
        return "it has no such version" if named.number or named.checksum else "it has no published version"
    compiled = await plans.get(runner, [row["version_id"]])
    return Version(row["definition_id"], row["version_id"], row["checksum"], compiled[row["version_id"]])


async def list_group(connection: Connection, instance_id: int, group: str) -> list[str]:
    """The ULIDs of the runs that were started for an instance under a group, in the order of their items.

    Where none of them is there any more, those that may have been: a wait for them can't come true.
    """
    rows = await Session(connection).fetch("children_group", instance=instance_id, group=group)
    return [row["ulid"] for row in rows if row["is_there"]] or [row["ulid"] for row in rows]


async def list_known(connection: Connection, ulids: Sequence[str], owner_scope: str) -> set[str]:
    """Which of these runs the owner has."""
    rows = await Session(connection).fetch("dependencies_find", ulids=list(ulids), owner_scope=owner_scope)
    return {row["ulid"] for row in rows}


async def get_results(connection: Connection, ulids: Sequence[str], owner_scope: str) -> dict[str, Json]:
    """The results of those that have completed, by ULID."""
    rows = await Session(connection).fetch("dependencies_collect", ulids=list(ulids), owner_scope=owner_scope)
    return {row["ulid"]: row["result"] for row in rows if row["status"] == InstanceStatus.COMPLETED}


async def list_awaited(connection: Connection, waits: Sequence[int]) -> dict[int, list[tuple[str, str]]]:
    """The runs that waits are for, by the wait's id: each one's ULID and status, SHOWN of a wait at most."""
    found: dict[int, list[tuple[str, str]]] = {}
    for row in await Session(connection).fetch("dependencies_show", waits=list(waits), most=SHOWN) if waits else ():
        found.setdefault(row["wait_id"], []).append((row["ulid"], row["status"]))
    return found
