"""The shop's own step types. A type is a function: its parameters are the node's config, what it returns the output."""

from __future__ import annotations

import secrets
from typing import Any, TypedDict

import httpx

from korak import BlockingContext, Retry, StepContext, StepFailed, StepRetry, step

PRICES = {"mug": 12.5, "lamp": 49.0, "desk": 480.0}
SLOW_SHELF = "lamp"
"""Lies in a warehouse that answers at the third attempt only, so that one can watch it being asked again."""


class Quote(TypedDict):
    """What an order costs."""

    unit: float
    total: float


class Reservation(TypedDict):
    """Goods that are set aside."""

    number: str


class Parcel(TypedDict):
    """What is on its way."""

    tracking: str


@step("shop.price", side_effects=False)
def price(ctx: BlockingContext, sku: str, quantity: int) -> Quote:
    """Price an order"""
    if sku not in PRICES:
        raise StepFailed("unknown_article", f"There is no {sku} in this shop.")
    return {"unit": PRICES[sku], "total": round(PRICES[sku] * quantity, 2)}


@step("shop.reserve", retry=Retry(4, [1, 2, 5]))
async def reserve(ctx: StepContext, sku: str, quantity: int) -> Reservation:
    """Reserve the goods"""
    if quantity > 100:
        raise StepFailed("out_of_stock", f"Nobody has {quantity} of {sku}.")
    # Drawn once a visit: every attempt that follows finds the number that the first one drew.
    number = await ctx.once("number", draw_number)
    if sku == SLOW_SHELF and ctx.attempt < 3:
        raise StepRetry("warehouse_busy", "The warehouse doesn't answer.")
    return {"number": str(number)}


async def draw_number(connection: Any) -> str:
    """A new reservation's number. What is written on this connection would commit together with it."""
    return f"R-{secrets.token_hex(3).upper()}"


@step("shop.ship", retry=Retry(5, [1, 5, 30]), timeout=60)
async def ship(ctx: StepContext, carrier: str, reservation: str, service: str = "post") -> Parcel:
    """Hand the goods to the carrier"""
    parcel = {"reservation": reservation, "service": service}
    try:
        async with httpx.AsyncClient(timeout=30) as client:
            # The same key at every attempt: the carrier makes one parcel of it, however often it is asked.
            answer = await client.post(carrier, json=parcel, headers={"Idempotency-Key": ctx.idempotency_key})
    except httpx.TransportError as error:
        raise StepRetry("carrier_unavailable", f"The carrier can't be reached: {error!r}.") from error
    if answer.status_code >= 500:
        raise StepRetry("carrier_unavailable", f"The carrier answered {answer.status_code}.")
    if answer.status_code >= 400:
        raise StepFailed("carrier_refused", f"The carrier answered {answer.status_code}.")
    return {"tracking": answer.json()["tracking"]}


@step("shop.release")
def release(ctx: BlockingContext, reservation: str) -> None:
    """Put the goods back"""
