"""Runs under ids of the callers' own: the id is locked, then what it has is looked at."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence
from typing import Final, TypeAlias

import asyncpg

from korak.core.identity import Run, Standing
from korak.core.opening import Opening
from korak.model import InstanceStatus
from korak.store.database import Runner

Key: TypeAlias = tuple[str, int, str]
"""What an id is unique in: the owner, the definition."""

OPEN: Final = "winst_business_unique"
NUMBER: Final = "winst_run_unique"


def get_key(opening: Opening) -> Key | None:
    """The id that a start is under, if it is under one."""
    if opening.identity is None:
        return None
    return opening.owner.scope, opening.version.definition_id, opening.identity.id


async def lock(runner: Runner, openings: Iterable[Opening]) -> dict[Key, Standing]:
    """Lock the ids of starts until the end of the caller's transaction, and look at what each has.

    A run that was retried may take an id without this lock: the index that lets one run of an id be open decides then.
    """
    keys = sorted({key for opening in openings if (key := get_key(opening)) is not None})
    await runner.fetch("runs_lock", keys=sorted({_get_number(key) for key in keys}))
    found: dict[int, list[Run]] = {}
    for row in await runner.fetch("runs_find", wanted=[_get_place(place, key) for place, key in enumerate(keys)]):
        run = Run(row["id"], row["ulid"], row["version_id"], row["run_number"], InstanceStatus(row["status"]))
        found.setdefault(row["place"], []).append(run)
    return {key: _get_standing(found.get(place, ())) for place, key in enumerate(keys)}


async def keep_open(runner: Runner, run_ids: Collection[int]) -> set[int]:
    """Keep runs from ending before the caller's transaction does; which ones are open and held by nobody else."""
    rows = await runner.fetch("runs_keep", ids=sorted(run_ids)) if run_ids else []
    return {row["id"] for row in rows}


def is_taken(error: BaseException) -> bool:
    """Whether the id of a run that is to be open has an open run already."""
    return isinstance(error, asyncpg.UniqueViolationError) and error.constraint_name in (OPEN, NUMBER)


def _get_standing(runs: Sequence[Run]) -> Standing:
    """Of runs with the newest first."""
    return Standing(next(iter(runs), None), next((run for run in runs if not run.status.is_ended), None))


def _get_place(place: int, key: Key) -> tuple[int, str, int, str]:
    return place, *key


def _get_number(key: Key) -> int:
    """What stands for an id among the locks: two ids of one number only take turns."""
    digest = hashlib.blake2b("\x1f".join(map(str, key)).encode(), digest_size=8, person=b"korak id").digest()
    return int.from_bytes(digest, signed=True)
