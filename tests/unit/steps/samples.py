"""Step functions and classes as an author writes them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from pydantic import BaseModel, Field

from korak.steps.contract import Outcome, Retry, Signal, StepContext, StepResult, StepType, WaitSpec
from korak.steps.function import step
from korak.steps.markers import Condition, Duration, NodeId, Parties, Party, Secret

if TYPE_CHECKING:
    from korak.steps.contract import BlockingContext


class Currency(Enum):
    EUR = "EUR"
    USD = "USD"


@dataclass
class Customer:
    name: str
    since: datetime | None = None


class Line(TypedDict):
    sku: str
    count: int


class Address(BaseModel):
    street: str = Field(max_length=20)
    zip: int


@dataclass
class Quote:
    total: Decimal
    at: datetime


@step("shop.price", retry=Retry(5, [10, 60, 300]))
async def price(ctx: StepContext, order: str, currency: str = "EUR") -> dict[str, Any]:
    """Price an order.

    Looks it up in the list.
    """
    return {"order": order, "currency": currency, "key": ctx.idempotency_key}


@step("shop.everything")
def everything(  # type: ignore[no-untyped-def]  # a parameter without an annotation takes any JSON
    ctx: BlockingContext,
    kind: Literal["a", "b"],
    currency: Currency,
    customer: Customer,
    lines: list[Line],
    address: Address,
    at: datetime,
    wait: timedelta,
    amount: Decimal,
    number: uuid.UUID,
    pair: tuple[int, str],
    tags: set[str],
    anything,
    note: str | None = None,
) -> Quote:
    everything.seen = locals()  # type: ignore[attr-defined]  # for the test to look at
    return Quote(amount, at)


@step("shop.marked")
def marked(
    ctx: BlockingContext,
    who: Party,
    others: Parties,
    when: Condition,
    wait: Duration,
    node: NodeId,
    token: Secret,
    other: Secret | None = None,
) -> None: ...


@step(
    "shop.ship",
    version=2,
    outcomes=("shipped", Outcome("later", required=False, label="Later")),
    side_effects=False,
    ability="orders.ship",
    timeout=timedelta(minutes=2),
    queue="slow",
    escalations=True,
    max_output=1024,
    isolation="process",
)
def ship(ctx: BlockingContext, /, *, order: int) -> Outcome:
    return Outcome("shipped", {"order": order})


async def signed(ctx: StepContext, signal: Signal, document: str) -> StepResult:
    return StepResult.complete("next", {"document": document, "by": signal.payload})


async def withdraw(ctx: StepContext) -> None:
    ctx.state["withdrawn"] = True


async def preview(ctx: StepContext, **config: Any) -> dict[str, Any]:
    return {"would": config}


@step("shop.sign", resume=signed, on_cancel=withdraw, simulate=preview)
async def sign(ctx: StepContext, document: str, copies: int = 1) -> StepResult:
    return StepResult.wait(WaitSpec.signal("signed"), {"copies": copies})


@step("shop.open")
async def open_ended(ctx: StepContext, first: int, **rest: Any) -> None:
    assert rest == {"second": 2}


class AskSignature(StepType):
    key = "acme.ask_signature"

    async def handle(self, ctx: StepContext) -> StepResult:
        return StepResult.wait(WaitSpec.signal("signed"))

    async def resume(self, ctx: StepContext, signal: Signal) -> StepResult:
        return StepResult.complete("signed")

    def outcomes(self, config: dict[str, Any]) -> list[Outcome]:
        return [Outcome("signed"), Outcome("timed_out")]


class Base(StepType):
    """Has no key, and so is nobody's type."""
