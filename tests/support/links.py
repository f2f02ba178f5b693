"""Handlers of chains for tests, as an author has them in a module."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from korak import Condition, Outcome, Retry, Secret, StepFailed, StepRetry, StepType, step
from korak.model import JsonObject


def fetch(ctx: Any, order: str) -> dict[str, Any]:
    """Fetch an order."""
    return {"fetched": order}


def price(ctx: Any, fetched: str, currency: str = "EUR") -> dict[str, Any]:
    """Price what was fetched."""
    return {"price": f"{len(fetched)} {currency}"}


def publish(ctx: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Publish all that is known."""
    return {"published": sorted(state)}


@step("test.links.dear", cost=2)
def dear(ctx: Any, rounds: int = 0) -> dict[str, Any]:
    """Count the rounds, at a cost."""
    return {"rounds": rounds + 1}


def count(ctx: Any, rounds: int = 0) -> dict[str, Any]:
    """Count the rounds."""
    return {"rounds": rounds + 1}


def secretive(ctx: Any) -> dict[str, Any]:
    """Return a key that isn't for the state."""
    return {"_secret": 1, "ok": 2}


def profile(ctx: Any, nested: dict[str, Any]) -> dict[str, Any]:
    """Return a nested object."""
    return {"profile": nested}


def leap(ctx: Any, to: str | None = None) -> dict[str, Any]:
    """Jump where it is told."""
    return {"leapt": True, "_next_step": to}


def wander(ctx: Any) -> dict[str, Any]:
    """Jump astray at the first attempt."""
    return {"at": ctx.attempt, "_next_step": "nowhere" if ctx.attempt == 1 else "c"}


def score(ctx: Any, item: Any, index: int) -> dict[str, Any]:
    """Score one item."""
    return {"score": index}


def gather(ctx: Any, results: list[Any]) -> dict[str, Any]:
    """Gather what the items came to."""
    return {"gathered": len(results)}


def pick(ctx: Any, results: list[Any]) -> dict[str, Any]:
    """Jump to the end where there is nothing."""
    return {"picked": len(results), "_next_step": None if results else "last"}


def refuse_even(ctx: Any, item: int) -> dict[str, Any]:
    """Score an odd item."""
    if item % 2 == 0:
        raise StepFailed("links.even", "not odd")
    return {"odd": item}


def greet(ctx: Any, name: str) -> dict[str, Any]:
    """Greet by a name."""
    return {"greeting": f"hello {name}"}


def careless(state: dict[str, Any]) -> dict[str, Any]:
    """Forget the context."""
    return state


def flaky(ctx: Any, times: int) -> dict[str, Any]:
    """Fail so often, then succeed."""
    if ctx.attempt <= times:
        raise StepRetry("links.flaky", "not yet")
    return {"attempt": ctx.attempt}


@step("links.twice", retry=Retry(2))
def twice(ctx: Any, times: int = 9) -> dict[str, Any]:
    """Fail so often; tried twice."""
    return flaky(ctx, times)


@step("links.slow", queue="slow", version=3)
def slow(ctx: Any) -> dict[str, Any]:
    """Run where slow things run."""
    return {}


@step("links.fork", outcomes=("left", "right"))
def fork(ctx: Any) -> Outcome:
    """Leave by one of two ways."""
    return Outcome("right", {"way": "right"})


@step("links.charge")
def charge(ctx: Any, token: Secret, only: Condition = None) -> dict[str, Any]:
    """Charge with a secret."""
    return {"charged": bool(token)}


def private(ctx: Any, _own: str = "mine") -> dict[str, Any]:
    """Take what never stands in the state."""
    return {"own": _own}


def demanding(ctx: Any, _own: str) -> dict[str, Any]:
    """Need what never stands in the state."""
    return {"own": _own}


def endless(ctx: Any, limit: float = float("inf")) -> dict[str, Any]:
    """Have a default that no document can hold."""
    return {"limit": limit}


@step("links.strange")
def strange(ctx: Any, kind: str, **others: Any) -> dict[str, Any]:
    """Take anything."""
    return {"kind": kind, **others}


ORDER: JsonObject = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "note": {"type": "string"}},
    "required": ["order"],
    "additionalProperties": False,
}


class Ship(StepType):
    """A handler as a class."""

    key = "links.ship"
    config_schema: JsonObject = ORDER

    def outcomes(self, config: Any) -> Sequence[Outcome]:
        return (Outcome("next"),)

    def handle(self, ctx: Any) -> dict[str, Any]:
        return {"shipped": ctx.config["order"]}


class Await(StepType):
    """A handler that waits."""

    key = "links.await"

    def handle(self, ctx: Any) -> dict[str, Any]:
        return {}

    def resume(self, ctx: Any, signal: Any) -> dict[str, Any]:
        return {}


def make_closure(text: str) -> Any:
    """A function that only this process has."""

    def inner(ctx: Any) -> dict[str, Any]:
        return {"text": text}

    return inner


NAMELESS: list[Any] = [lambda ctx: {}]


async def tell(ctx: Any, name: str) -> AsyncIterator[str]:
    """Stream a greeting."""
    yield "Hello "
    yield name


def count_words(ctx: Any, text: str) -> dict[str, int]:
    """Count what was streamed."""
    return {"words": len(text.split())}
