"""A row that can't be read or written takes no other with it, whatever can be made of it."""

from __future__ import annotations

import asyncpg
import pytest

from korak.core.changes import Changes
from korak.core.facts import Claimed
from korak.errors import KorakError
from korak.store.database import is_data_fault
from korak.store.transacting import Ask
from tests.support.bodies import body, for_each, node
from tests.support.flows import NOW, chain, make_claimant, open_flows

READY = "select id from workflow_step_runs where instance_id = $1 and ready_at is not null"
SPOIL = (
    "update workflow_step_runs set counters = jsonb_set(counters, '{next_index}', '1099511627776')"
    " where instance_id = $1 and counters is not null"
)


async def test_one_that_can_t_even_be_failed_stands_alone(database_url: str) -> None:
    async with open_flows(database_url) as flows:
        version = await flows.publish(chain(for_each([1, 2], body(node("x", "test.work")), concurrency=1)))
        first, spoilt, last = await flows.start(version, 3)
        engine = await flows.register()
        await flows.fetch(SPOIL, spoilt)
        asks = [
            Ask(instance, Claimed(await flows.get(READY, instance), make_claimant(engine)))
            for instance in (first, spoilt, last)
        ]
        answers = await flows.transactor.answer(asks, NOW)
        assert [isinstance(answer, Changes) and len(answer.claimed) for answer in answers] == [1, False, 1]
        assert isinstance(answers[1], KorakError)
        assert answers[1].code == "internal"


@pytest.mark.parametrize(
    ("error", "is_fault"),
    [
        (asyncpg.NumericValueOutOfRangeError("22003"), True),
        (asyncpg.UniqueViolationError("23505"), True),
        (asyncpg.ProgramLimitExceededError("54000"), True),
        (asyncpg.StatementTooComplexError("54001"), False),
        (asyncpg.UndefinedTableError("42P01"), False),
        (ValueError("none of the database's"), False),
    ],
)
def test_what_is_the_fault_of_a_row(error: Exception, *, is_fault: bool) -> None:
    assert is_data_fault(error) is is_fault
