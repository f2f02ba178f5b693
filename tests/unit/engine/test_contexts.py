"""What a handler sees and may do: 13.7, and that nothing that it does to it changes the snapshot."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, cast

import pytest

from korak.core.facts import Raised
from korak.model import JsonObject
from korak.steps.contract import BlockingContext, Complete, StepContext
from korak.steps.function import step
from korak.steps.markers import Secret
from korak_engine.contexts import AsyncContext, ThreadContext
from tests.support.attempts import NOW, ULID, Bench, benched

if TYPE_CHECKING:

    def check_faces(one: AsyncContext, other: ThreadContext) -> tuple[StepContext, BlockingContext]:
        """Both have all that the protocols ask for; mypy proves it."""
        return one, other


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with benched(secrets={"api": "api-secret"}) as made:
        yield made


def see(ctx: Any) -> JsonObject:
    return {
        "attempt": ctx.attempt,
        "visit": ctx.visit,
        "key": ctx.idempotency_key,
        "node": ctx.node,
        "instance": ctx.instance,
        "definition": ctx.definition,
        "version": ctx.version,
        "owner": ctx.owner,
        "subject": ctx.subject,
        "config": ctx.config,
        "input": ctx.input,
        "state": ctx.state,
        "trigger": ctx.trigger,
        "now": ctx.now.isoformat(),
        "timezone": ctx.timezone,
        "signal": ctx.signal,
        "simulating": ctx.simulating,
        "cancelled": ctx.cancelled,
        "parked": ctx.output(),
        "price": ctx.output("price"),
        "lost": ctx.output("lost"),
        "resolved": ctx.resolve({"total": {"ref": "state.total"}, "on": {"template": "${trigger.on}"}}),
    }


@step("test.sees")
async def sees(ctx: StepContext, **config: Any) -> dict[str, Any]:
    return see(ctx)


@step("test.sees_from_a_thread")
def sees_from_a_thread(ctx: BlockingContext, **config: Any) -> dict[str, Any]:
    return see(ctx)


@pytest.mark.parametrize("given", [sees, sees_from_a_thread])
async def test_13_7_what_a_handler_sees(bench: Bench, given: Any) -> None:
    result = await bench.run(
        given,
        config={"order": {"ref": "input.order"}, "fixed": [1]},
        input={"order": "7"},
        state={"total": 12},
        ended={(None, "price"): {"output": {"net": 10}, "outcome": "next", "error": None}},
        attempt=2,
        visit=4,
    )

    assert isinstance(result, Complete), result
    assert result.output == {
        "attempt": 2,
        "visit": 4,
        "key": f"wf:{ULID}:n:4",
        "node": "n",
        "instance": ULID,
        "definition": "order",
        "version": 3,
        "owner": "team:42",
        "subject": None,
        "config": {"order": "7", "fixed": [1]},
        "input": {"order": "7"},
        "state": {"total": 12},
        "trigger": {"on": "manual", "key": None, "payload": {"by": "hand"}},
        "now": NOW.isoformat(),
        "timezone": "UTC",
        "signal": None,
        "simulating": False,
        "cancelled": False,
        "parked": None,
        "price": {"net": 10},
        "lost": None,
        "resolved": {"total": 12, "on": "manual"},
    }


async def test_an_app_wide_instance_has_no_owner(bench: Bench) -> None:
    result = await bench.run(sees, owner=None)

    assert isinstance(result, Complete)
    assert result.output["owner"] is None


@step("test.spoils")
async def spoils(ctx: StepContext, nested: dict[str, Any]) -> dict[str, Any]:
    for seen in (nested, ctx.config, ctx.input, ctx.state, ctx.trigger):
        cast("Any", seen)["by"] = object()
    for found in (ctx.output("price"), ctx.output(), ctx.resolve({"ref": "state.list"})):
        cast("Any", found).clear()
    return {}


async def test_changing_what_it_sees_changes_nothing(bench: Bench) -> None:
    work = bench.make(
        spoils,
        config={"nested": {"a": 1}},
        input={"order": "7"},
        state={"list": [1]},
        ended={(None, "price"): {"output": {"net": 10}, "outcome": "next", "error": None}},
        parked={"asked": 1},
    )
    assert await bench.handlers.run(work) == Complete("next", {})

    snapshot = work.snapshot
    assert work.input == {"nested": {"a": 1}}
    assert snapshot.plan.nodes["n"].config.resolve({}) == {"nested": {"a": 1}}
    assert (snapshot.instance.input, snapshot.instance.state) == ({"order": "7"}, {"list": [1]})
    assert snapshot.instance.trigger_payload == {"by": "hand"}
    assert snapshot.ended[None, "price"]["output"] == {"net": 10}
    assert work.step.output == {"asked": 1}


@step("test.reveals")
async def reveals(ctx: StepContext, key: Secret, member: str = "key") -> dict[str, Any]:
    revealed = ctx.reveal(member)
    return {"length": len(str(revealed)), "shown": ctx.config["key"], "is_none": revealed is None}


async def test_a_secret_is_revealed_from_the_document_and_stands_as_a_reference_elsewhere(bench: Bench) -> None:
    key: JsonObject = {"template": "${input.kind} ${secret.api}"}
    result = await bench.run(reveals, config={"key": key}, input={"kind": "Bearer"})

    assert isinstance(result, Complete)
    assert result.output == {"length": len("Bearer api-secret"), "shown": "Bearer ${secret.api}", "is_none": False}


async def test_data_that_looks_like_a_secret_names_none(bench: Bench) -> None:
    given: JsonObject = {"ref": "input.smuggled"}
    result = await bench.run(reveals, config={"key": given}, input={"smuggled": "${secret.api}"})

    assert isinstance(result, Complete)
    assert result.output == {"length": len("${secret.api}"), "shown": "${secret.api}", "is_none": False}


async def test_what_the_node_has_not_got_reveals_nothing(bench: Bench) -> None:
    result = await bench.run(reveals, config={"key": "plain", "member": "other"})

    assert isinstance(result, Complete)
    assert result.output["is_none"] is True


@step("test.resolves")
async def resolves(ctx: StepContext, value: dict[str, Any]) -> dict[str, Any]:
    return {"value": ctx.resolve(value)}


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({"ref": "nowhere.at"}, "invalid_value"),
        ({"cel": "1 +"}, "invalid_expression"),
        ({"secret": "api"}, "secret_not_allowed"),
        ({"cel": "input.nothing"}, "missing_value"),
    ],
)
async def test_rt_8_a_value_that_can_not_be_resolved_fails_for_good(bench: Bench, value: Any, code: str) -> None:
    result = await bench.run(resolves, config={"value": {"literal": value}})

    assert isinstance(result, Raised)
    assert (result.code, result.is_retryable) == (code, False)
