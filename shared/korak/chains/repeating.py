"""When a chain goes back to an earlier step: its own comparison, or a condition as graphs write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from korak.chains.given import misuse, show, take
from korak.chains.naming import get_path, read_source
from korak.graphs.conditions import compile_condition
from korak.graphs.document import GraphLimits
from korak.graphs.paths import Malformed
from korak.model import Json, JsonObject

MAX_ITERATIONS = GraphLimits().max_loop_iterations
"""The rounds of a repeat that names none: the most that an engine allows unless it is set otherwise."""


def read_condition(state_key: str | None, expected: Any, condition: Mapping[str, Any] | None) -> JsonObject:
    """What is looked at: a key of the state (missing is null) against a value, or a condition."""
    if (state_key is None) is (condition is None):
        raise misuse("A repeat takes exactly one of state_key and condition.")
    if state_key is not None:
        return _compare(read_source(state_key, "state_key"), expected)
    if not isinstance(condition, Mapping):
        raise misuse(
            f"condition is written as in a graph, such as {{'cel': 'state.round < 3'}}: {show(condition)} isn't."
        )
    written = take(dict(condition), "condition")
    assert isinstance(written, dict), "it was one"
    try:
        compile_condition(written)
    except Malformed as error:
        raise misuse(f"condition can't be used: {error.message}") from error
    return written


def _compare(key: str, expected: Any) -> JsonObject:
    path, taken = get_path(key), take(expected, "expected")
    value: Json = {"literal": taken} if isinstance(taken, (dict, list)) else taken
    return {"ref": path, "default": None, "op": "eq", "value": value}
