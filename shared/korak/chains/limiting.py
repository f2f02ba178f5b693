"""Limits by key in a chain: how many steps, or runs, of a key there are at once, and how many begin in a span."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

from korak.chains.given import misuse, show, take
from korak.chains.governing import Governed
from korak.chains.numbers import read_count, read_limit
from korak.chains.steps import Each, Parallel, Step, Work
from korak.graphs.limiting import check_flow
from korak.graphs.paths import Malformed
from korak.graphs.schema import MOST_LIMITED, MOST_LIMITS
from korak.graphs.values import compile_value
from korak.model import JsonObject


class Limiting(Governed):
    """The part of a chain that shares what there is little of with other steps and runs of its owner."""

    _steps: list[Step]

    def flow(
        self,
        key: Any,
        *,
        concurrency: int | None = None,
        rate: tuple[int, Any] | None = None,
        weight: int | None = None,
    ) -> Self:
        """A limit on the handlers of the step added last, for each key: `concurrency` of them run at once.

        `key` is a text, a number, or a value such as `ref("state.customer")`; what has the same one shares the limit,
        in all of the owner's workflows. `weight` is what one counts, `rate` how many may begin in a span of time:
        `(100, "PT1M")`. May be said several times.
        """
        last = self._steps[-1] if self._steps else None
        if not isinstance(last, (Work, Parallel, Each)):
            raise misuse("flow() means the handlers of the step added last, and there are none.")
        what = f"flow() of {last.name!r}"
        _check_count(last.flow, what)
        self._steps[-1] = replace(last, flow=(*last.flow, _read(key, concurrency, rate, weight, what)))
        return self

    def flow_of_runs(
        self,
        key: Any,
        *,
        concurrency: int | None = None,
        rate: tuple[int, Any] | None = None,
        weight: int | None = None,
    ) -> Self:
        """The same for whole runs: each has room before its first step begins, and keeps it until its end.

        The key is found as a run starts: it may read `input`, not yet the state.
        """
        before = cast("list[JsonObject]", self._settings.get("flow", []))
        _check_count(before, "flow_of_runs()")
        return self._set("flow", [*before, _read(key, concurrency, rate, weight, "flow_of_runs()")])


def _read(key: Any, concurrency: int | None, rate: Any, weight: int | None, what: str) -> JsonObject:
    if concurrency is None and rate is None:
        raise misuse(f"{what} limits nothing: it takes concurrency, rate, or both.")
    rule: JsonObject = {"key": take(key, f"{what}: the key")}
    for member, given in (("concurrency", concurrency), ("weight", weight)):
        if given is not None:
            rule[member] = _read_number(given, f"{what}: {member}")
    if rate is not None:
        rule["rate"] = _read_rate(rate, f"{what}: rate")
    try:
        compile_value(rule["key"])
    except Malformed as error:
        raise misuse(f"{what}: the key can't be used: {error.message}") from error
    for issue in check_flow([rule], ""):
        raise misuse(f"{what}: {issue.message}")
    return rule


def _read_rate(given: Any, what: str) -> JsonObject:
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise misuse(f"{what} is how many and in which span, such as (100, 'PT1M'): {show(given)} isn't.")
    return {"limit": _read_number(given[0], what), "per": read_limit(given[1], what)}


def _read_number(given: Any, what: str) -> int:
    count = read_count(given, what)
    if count > MOST_LIMITED:
        raise misuse(f"{what} is {MOST_LIMITED} at most: {count} is too much.")
    return count


def _check_count(before: Any, what: str) -> None:
    if len(before) == MOST_LIMITS:
        raise misuse(f"{what} is said more than {MOST_LIMITS} times.")
