"""What a compensation and a hook of the settings call, see and ask for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from korak.core.rows import Compensation
from korak.model import JsonObject, StepRole
from korak.owners.authorizer import AuthorizationRequest, Denial
from korak.steps.contract import Complete
from korak.steps.function import step
from tests.support.attempts import NOW, Bench, benched

HOOK: JsonObject = {"type": "undoing.see", "timeout": 7}


@step("undoing.see")
async def see(ctx: Any) -> dict[str, Any]:
    """Tell what is to be seen."""
    return {"state": ctx.state, "other": ctx.resolve({"ref": "state.x"})}


@step("undoing.refund", ability="refund")
async def refund(ctx: Any) -> dict[str, Any]:
    """Pay back."""
    return {}


@dataclass
class Refusing:
    """An authorizer that remembers what it was asked, and denies it."""

    asked: list[AuthorizationRequest] = field(default_factory=list)

    async def authorize(self, request: AuthorizationRequest) -> Denial | None:
        self.asked.append(request)
        return Denial("no")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with benched() as made:
        yield made


async def test_t_comp_2_an_undo_sees_the_state_that_was_kept_for_it(bench: Bench) -> None:
    work = bench.make(see, role=StepRole.COMPENSATE, node={"compensate": HOOK}, state={"x": "last", "y": 1})
    work.step.hook_order = 5
    work.snapshot.compensations[5] = Compensation(1, 5, 1, "n", 1, NOW, state={"x": "kept"})
    assert bench.handlers.get_timeout(work) == 7
    assert await bench.start(work) == Complete("next", {"state": {"x": "kept"}, "other": "kept"})


@pytest.mark.parametrize("role", [StepRole.ON_CANCEL, StepRole.ON_DEADLINE])
async def test_t_cancel_3_a_hook_of_the_settings_sees_the_last_state(bench: Bench, role: StepRole) -> None:
    work = bench.make(see, role=role, settings={role.value: HOOK}, state={"x": "last"})
    assert await bench.start(work) == Complete("next", {"state": {"x": "last"}, "other": "last"})


async def test_au_4_what_undoes_asks_for_its_own_ability() -> None:
    """It calls a handler that does something, as any step does; a step's own clean-up asks nobody (CN-5)."""
    authorizer = Refusing()
    async with benched(authorizer=authorizer) as bench:
        hook = {"type": "undoing.refund"}
        result: Any = await bench.run(refund, role=StepRole.COMPENSATE, node={"compensate": hook})
    assert result.code == "authorization_denied"
    assert [request.ability for request in authorizer.asked] == ["refund"]
