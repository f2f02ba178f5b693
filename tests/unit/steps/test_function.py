"""The @step decorator: a signature is a config schema, a function stays a function."""

from __future__ import annotations

import inspect
import pickle
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from korak.errors import InvalidStepType, StepFailed
from korak.graphs.contracts import OutcomeSpec, RetryPolicy
from korak.graphs.schemas import check_schema, compile_schema
from korak.model import JsonObject, SignalKind
from korak.steps.contract import Complete, Fail, Signal, StepContext
from korak.steps.function import FunctionStep, get_step_type, step
from korak.steps.markers import Secret
from korak.steps.results import read_result
from korak.steps.secrets import Secrets
from tests.support.entries import Context
from tests.unit.steps import samples


def made(function: object) -> FunctionStep:
    found = get_step_type(function)
    assert found is not None
    return found


async def run(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


async def test_a_decorated_function_stays_a_function() -> None:
    context: Any = Context()
    assert await samples.price(context, "7") == {"order": "7", "currency": "EUR", "key": "01J:n:1"}


async def test_the_config_is_handed_over_by_name() -> None:
    assert await run(made(samples.price).handle(Context(config={"order": "7"}))) == {
        "order": "7",
        "currency": "EUR",
        "key": "01J:n:1",
    }


def test_the_signature_is_the_config_schema() -> None:
    contract = made(samples.price).contract()
    assert contract.config_schema == {
        "type": "object",
        "properties": {
            "order": {"title": "Order", "type": "string"},
            "currency": {"title": "Currency", "type": "string", "default": "EUR"},
        },
        "additionalProperties": False,
        "required": ["order"],
    }
    assert contract.output_schema is None
    assert (contract.label, contract.description) == ("Price an order", "Looks it up in the list.")
    assert contract.retry == RetryPolicy(5, (10, 60, 300), 0.1)


def test_every_member_of_the_decorator_is_in_the_contract() -> None:
    contract = made(samples.ship).contract()
    assert (contract.key, contract.version, contract.label) == ("shop.ship", 2, "Ship")
    assert contract.outcomes({}) == (OutcomeSpec("shipped"), OutcomeSpec("later", False, "Later"))
    assert (contract.has_side_effects, contract.supports_escalations) == (False, True)
    assert (contract.ability, contract.timeout, contract.queue, contract.max_output) == (
        "orders.ship",
        120,
        "slow",
        1024,
    )
    assert made(samples.ship).runs_in == "process"
    assert made(samples.everything).runs_in == "thread"
    assert made(samples.price).runs_in == "async"


@pytest.mark.parametrize("function", [samples.price, samples.everything, samples.marked, samples.ship, samples.sign])
def test_what_comes_of_a_signature_is_in_the_subset(function: Callable[..., Any]) -> None:
    contract = made(function).contract()
    assert check_schema(contract.config_schema) == []
    if contract.output_schema is not None:
        assert check_schema(contract.output_schema) == []


EVERYTHING: JsonObject = {
    "kind": "a",
    "currency": "USD",
    "customer": {"name": "Ana", "since": "2026-03-02T12:00:00Z"},
    "lines": [{"sku": "x", "count": 2}],
    "address": {"street": "Main", "zip": 1000},
    "at": "2026-03-02T12:00:00Z",
    "wait": "PT5M",
    "amount": "1.10",
    "number": "12345678-1234-5678-1234-567812345678",
    "pair": [1, "x"],
    "tags": ["a", "b"],
    "anything": {"x": [None]},
}


async def test_values_become_the_annotated_types_and_come_back_as_json() -> None:
    returned = await run(made(samples.everything).handle(Context(config=EVERYTHING)))
    seen = samples.everything.seen  # type: ignore[attr-defined]  # set by the sample
    assert seen["currency"] is samples.Currency.USD
    assert seen["customer"] == samples.Customer("Ana", datetime(2026, 3, 2, 12, tzinfo=UTC))
    assert seen["address"] == samples.Address(street="Main", zip=1000)
    assert (seen["wait"], seen["amount"]) == (timedelta(minutes=5), Decimal("1.10"))
    assert seen["number"] == uuid.UUID("12345678-1234-5678-1234-567812345678")
    assert (seen["pair"], seen["tags"]) == ((1, "x"), {"a", "b"})
    assert (seen["lines"], seen["anything"], seen["note"]) == ([{"sku": "x", "count": 2}], {"x": [None]}, None)
    assert returned == {"total": "1.10", "at": "2026-03-02T12:00:00Z"}
    assert read_result(returned) == Complete(output=returned)


@pytest.mark.parametrize(
    ("member", "wrong", "pointer"),
    [
        ("kind", "c", "/kind"),
        ("currency", "GBP", "/currency"),
        ("customer", {"since": None}, "/customer/name"),
        ("lines", [{"sku": "x", "count": 1}, {"sku": "x"}], "/lines/1/count"),
        ("address", {"street": "x" * 21, "zip": 1}, "/address/street"),
        ("at", "soon", "/at"),
        ("amount", "much", "/amount"),
        ("pair", ["x", "x"], "/pair/0"),
    ],
)
async def test_a_mismatch_is_invalid_input_with_its_place(member: str, wrong: Any, pointer: str) -> None:
    config = {**EVERYTHING, member: wrong}
    with pytest.raises(StepFailed) as caught:
        await run(made(samples.everything).handle(Context(config=config)))
    assert (caught.value.code, caught.value.params["pointer"]) == ("invalid_input", pointer)
    assert (
        compile_schema(made(samples.everything).config_schema).check(config) or member == "pair" or member == "amount"
    )


def test_the_schema_takes_what_the_types_take() -> None:
    assert compile_schema(made(samples.everything).config_schema).check(EVERYTHING) == []


def test_markers_refer_to_the_shared_definitions() -> None:
    properties: Any = made(samples.marked).config_schema["properties"]
    assert {name: properties[name].get("$ref") for name in ("who", "others", "when", "wait")} == {
        "who": "#/$defs/party",
        "others": "#/$defs/parties",
        "when": "#/$defs/condition",
        "wait": "#/$defs/duration",
    }
    assert properties["node"]["format"] == "node-id"
    assert made(samples.marked).contract().secret_members == {"token", "other"}


async def test_a_secret_reaches_the_function_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "pay").write_text("s3cret")
    seen = []

    @step("shop.pay")
    async def pay(ctx: StepContext, token: Secret) -> None:
        seen.append((token, ctx.config))

    context = Context.of({"token": {"template": "Bearer ${secret.pay}"}}, secrets=Secrets(tmp_path))
    await run(made(pay).handle(context))
    assert seen == [("Bearer s3cret", context.config)]
    assert "s3cret" not in str(context.config)


async def test_hooks_take_what_they_name() -> None:
    sign = made(samples.sign)
    context = Context(config={"document": "d", "copies": 2})
    parked = read_result(await run(sign.handle(context)))
    assert parked.is_wait
    assert await run(sign.resume(context, Signal(SignalKind.SIGNAL, "signed", "Ana"))) == Complete(
        "next", {"document": "d", "by": "Ana"}
    )
    await run(sign.cancel(context))
    assert context.state == {"withdrawn": True}
    assert await run(sign.simulate(context)) == {"would": {"document": "d", "copies": 2}}
    contract = sign.contract()
    assert (contract.has_cancel_hook, contract.waits) == (True, True)


async def test_without_hooks_the_defaults_hold() -> None:
    price = made(samples.price)
    assert await run(price.resume(Context(parked={"a": 1}), Signal(SignalKind.TIMER))) == Complete("next", {"a": 1})
    assert await run(price.resume(Context(), Signal(SignalKind.EVENT))) == Fail(
        "resume_unsupported", params={"type": "shop.price", "kind": "event"}
    )
    assert await run(price.cancel(Context())) is None
    assert await run(price.simulate(Context())) is None
    assert (price.contract().has_cancel_hook, price.contract().waits) == (False, False)


async def test_a_function_may_take_the_whole_config() -> None:
    assert made(samples.open_ended).config_schema["additionalProperties"] is True
    await run(made(samples.open_ended).handle(Context(config={"first": 1, "second": 2})))


def test_a_type_travels_to_a_process_by_name() -> None:
    assert pickle.loads(pickle.dumps(made(samples.ship))) is made(samples.ship)
    handle = pickle.loads(pickle.dumps(made(samples.ship).handle))
    assert handle(Context(config={"order": 7})).output == {"order": 7}


@dataclass
class Numbers:
    values: list[int]


async def test_an_output_that_is_not_what_was_annotated_is_invalid_output() -> None:
    @step("shop.odd")
    async def odd(ctx: StepContext) -> Numbers:
        return {"values": "no"}  # type: ignore[return-value]  # what is tested

    with pytest.raises(StepFailed) as caught:
        await run(made(odd).handle(Context()))
    assert caught.value.code == "invalid_output"


def test_the_return_annotation_is_the_output_schema() -> None:
    @step("shop.either")
    async def either(ctx: StepContext) -> Numbers | None:
        return None

    @step("shop.nothing")
    async def nothing(ctx: StepContext) -> None: ...

    schema = made(either).contract().output_schema
    assert schema is not None
    assert (schema["properties"], schema.get("required")) == (
        {"values": {"title": "Values", "type": "array", "items": {"type": "integer"}}},
        None,
    )
    assert made(nothing).contract().output_schema == {"type": "object", "additionalProperties": False}
    assert made(samples.sign).contract().output_schema is None


def no_context() -> None: ...
def by_place(ctx: Any, a: int, /) -> None: ...
def star(ctx: Any, *rest: int) -> None: ...
def unknown(ctx: Any, a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # what is tested
def no_json(ctx: Any, a: Callable[[], int]) -> None: ...
def no_object(ctx: Any) -> list[int]:
    return []


@pytest.mark.parametrize("function", [no_context, by_place, star, unknown, no_json, no_object])
def test_a_signature_that_no_config_can_fill_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(InvalidStepType, match=function.__name__):
        step("shop.bad")(function)


async def stray(ctx: Any, signal: Signal, other: int) -> None: ...
def blocking(ctx: Any, signal: Signal) -> None: ...


@pytest.mark.parametrize("hook", [stray, blocking])
def test_a_hook_fits_its_function(hook: Callable[..., Any]) -> None:
    async def work(ctx: Any, a: int) -> None: ...

    with pytest.raises(InvalidStepType, match=hook.__name__):
        step("shop.bad", resume=hook)(work)
