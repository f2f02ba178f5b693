"""What starts cost: one without an id of the caller's own runs no statement that another doesn't."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ulid import ULID

from korak.core.identity import Identity
from korak.core.opening import Opening
from korak.model import OnOpen
from korak.store import rounds
from korak.store.database import Runner, Session
from korak.store.plans import Plans
from tests.support.flows import APP, NOW, Flows, chain, work

PLAIN = ["instances_start", "record", "steps_add"]
LOOKS = ["runs_lock", "runs_find"]


@dataclass
class Listening:
    """A runner that remembers the names of what it ran, ids aside: these come in blocks."""

    runner: Runner
    names: list[str] = field(default_factory=list)

    async def fetch(self, name: str, /, **given: Any) -> list[Any]:
        if name != "ids_take":
            self.names.append(name)
        return await self.runner.fetch(name, **given)


async def list_statements(flows: Flows, *identities: Identity | None) -> list[str]:
    version = await flows.publish(chain(work()), key=str(ULID()))
    openings = [Opening(str(ULID()), version, APP, {}, identity=identity) for identity in identities]
    async with flows.database.transaction() as connection:
        runner = Listening(Session(connection))
        await rounds.start(runner, flows.starter, Plans(), openings, NOW, limits={})
    return runner.names


async def test_a_start_without_an_id_costs_what_it_always_did(flows: Flows) -> None:
    assert await list_statements(flows, None, None) == PLAIN


async def test_ids_cost_two_statements_a_batch(flows: Flows) -> None:
    assert await list_statements(flows, *(Identity(f"A-{number}") for number in range(20)), None) == LOOKS + PLAIN


async def test_many_starts_of_one_id_cost_no_more_than_one(flows: Flows) -> None:
    used = Identity("A-17", OnOpen.USE_EXISTING)
    assert await list_statements(flows, *[used] * 50) == LOOKS + PLAIN
