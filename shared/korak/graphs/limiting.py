"""`flow`: how many steps of a key run at once, and how many begin in a span of time, as a graph writes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from korak.errors import Issue
from korak.graphs import durations
from korak.graphs.configs import Read, read_value
from korak.graphs.paths import Malformed
from korak.graphs.values import Value, compile_value, get_form
from korak.model import Json, JsonObject

LONGEST = 366 * 86_400.0
"""Seconds that a rate counts over at most."""


@dataclass(frozen=True, slots=True)
class FlowRule:
    """One entry of `flow`: of a key at most `concurrency` in all at once, this one counting `weight`, and at most
    `rate` begun in any `per` seconds. What is None isn't limited. `text` is what the key is read from, as written.
    """

    key: Value
    text: str
    concurrency: int | None
    weight: int
    rate: int | None
    per: float


def read_flow(raw: Json) -> tuple[FlowRule, ...]:
    """A written `flow`, checked before; empty where nothing is written."""
    return tuple(_read_rule(cast("JsonObject", rule)) for rule in cast("list[Json]", raw or []))


def _tell(key: Json) -> str:
    """`input.customer` of `{"cel": "input.customer"}`, and of a reference likewise."""
    form = get_form(key)
    return str(key[form]) if isinstance(key, dict) and form is not None else str(key)


def _read_rule(rule: JsonObject) -> FlowRule:
    rate = cast("JsonObject", rule.get("rate") or {})
    return FlowRule(
        key=compile_value(rule["key"]),
        text=_tell(rule["key"]),
        concurrency=cast("int | None", rule.get("concurrency")),
        weight=cast("int", rule.get("weight", 1)),
        rate=cast("int | None", rate.get("limit")),
        per=(durations.compile_duration(rate["per"]).seconds or 0.0) if rate else 0.0,
    )


def check_flow(raw: Json, pointer: str, node: str | None = None) -> Iterator[Issue]:
    """What is wrong with a `flow` beyond its form: keys that are nothing, weights that never fit, spans that vary."""
    for index, rule in enumerate(cast("list[JsonObject]", raw or [])):
        for member, detail in _list_faults(rule):
            yield Issue("invalid_config", f"{pointer}/{index}/{member}", {"detail": detail}, node)
        if "rate" in rule:
            yield from _check_per(cast("JsonObject", rule["rate"])["per"], f"{pointer}/{index}/rate/per", node)


def _list_faults(rule: JsonObject) -> Iterator[tuple[str, str]]:
    concurrency, weight = rule.get("concurrency"), rule.get("weight")
    if weight is not None and concurrency is None:
        yield "weight", "A weight counts against `concurrency`, and there is none."
    elif weight is not None and cast("int", weight) > cast("int", concurrency):
        yield "weight", f"It would never run: concurrency is {concurrency}."
    key = rule["key"]
    if key is None or isinstance(key, list) or key == {} or (isinstance(key, str) and not key):
        yield "key", "A key is a text or a number, or a value that gives one."


def _check_per(raw: Json, pointer: str, node: str | None) -> Iterator[Issue]:
    try:
        seconds = durations.compile_duration(raw).seconds
    except Malformed as error:
        yield error.issue.at(pointer, node=node)
        return
    if seconds is None or not 0 < seconds <= LONGEST:
        detail = "A rate counts over a plain span, such as 60 or PT1H: no months, no days on the clock, a year at most."
        yield Issue("invalid_duration", pointer, {"detail": detail}, node)


def list_flow_reads(raw: Json, pointer: str) -> Iterator[Read]:
    """All that the keys read, and what keeps one from being compiled."""
    for index, rule in enumerate(cast("list[JsonObject]", raw or [])):
        yield from read_value(rule["key"], f"{pointer}/{index}/key")
