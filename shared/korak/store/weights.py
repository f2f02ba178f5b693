"""The weights of owners: how many steps each has in a turn of the release."""

from __future__ import annotations

from typing import Final

from korak.store.database import Runner

USUAL: Final = 1
"""The weight of an owner of whom nothing is said."""

MOST: Final = 1_000


async def get(runner: Runner, owner_scope: str) -> int:
    """An owner's weight."""
    rows = await runner.fetch("weights_get", scope=owner_scope)
    return rows[0]["weight"] if rows else USUAL


async def put(runner: Runner, owner_scope: str, weight: int) -> int:
    """Give an owner a weight, 1 to `MOST`: the next release goes by it."""
    [row] = await runner.fetch("weights_put", scope=owner_scope, weight=weight)
    return int(row["weight"])
