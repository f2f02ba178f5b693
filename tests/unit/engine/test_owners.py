"""Whose context a handler runs in: its instance's owner's, whoever's call led to it (OW-1, OW-3, OW-6, CN-10)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from korak.core.facts import Raised
from korak.model import StepRole
from korak.owners.context import get_owner, has_owner, within
from korak.owners.scopes import Owner
from korak.steps.contract import BlockingContext, Complete, Returned, Signal, StepContext, StepType
from korak.steps.function import step
from tests.support.attempts import NOW, Bench, benched
from tests.unit.engine import hostile

B = Owner("team", "b")
SEEN: list[str] = []


class Looking(StepType):
    """Notes in whose context each of its methods runs."""

    key = "test.looking"

    async def handle(self, ctx: StepContext) -> Returned:
        SEEN.append(get_owner().scope)
        return {}

    async def resume(self, ctx: StepContext, signal: Signal) -> Returned:
        SEEN.append(get_owner().scope)
        return {}

    async def cancel(self, ctx: StepContext) -> None:
        SEEN.append(get_owner().scope)


@step("test.breaking")
def breaking(ctx: BlockingContext) -> dict[str, Any]:
    raise ValueError(get_owner().scope)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    SEEN.clear()
    async with benched(threads=2) as made:
        yield made


async def test_ow_3_a_step_of_one_owner_that_another_led_to_runs_as_its_own(bench: Bench) -> None:
    with within(B):
        for given in (hostile.fine, hostile.threaded):
            result = await bench.run(given)
            assert isinstance(result, Complete)
            assert result.output["owner"] == "team:42"
            assert get_owner() == B
    assert not has_owner()


@pytest.mark.parametrize("given", [hostile.exits, breaking])
async def test_ow_6_an_exception_leaves_nobody_s_context_behind(bench: Bench, given: Any) -> None:
    with within(B):
        assert isinstance(await bench.run(given), Raised)
        assert get_owner() == B
        result = await bench.run(hostile.threaded, owner=("team", "7"))
    assert isinstance(result, Complete)
    assert result.output["owner"] == "team:7"
    assert not has_owner()


async def test_ow_1_and_cn_10_a_resume_and_a_cancel_hook_run_in_the_owner_s_context_too(bench: Bench) -> None:
    await bench.run(Looking)
    await bench.run(Looking, signal=Signal.from_json(TIMER), parked={})
    await bench.run(Looking, role=StepRole.CANCEL)
    assert SEEN == ["team:42"] * 3


TIMER: Any = {"kind": "timer", "at": NOW.isoformat()}
