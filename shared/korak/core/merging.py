"""What the bodies of a container come to together: its outcome, its output, and what of it enters the state."""

from __future__ import annotations

from collections.abc import Sequence

from korak.core.counters import Counters
from korak.core.rows import Scope
from korak.graphs.plans import PlannedNode
from korak.model import Json, JsonObject, ScopeStatus
from korak.steps.results import NEXT


def merge(node: PlannedNode, counters: Counters, ended: Sequence[Scope]) -> tuple[str, JsonObject, JsonObject]:
    """Outcome, output and written state of bodies that have ended, in the order of their declaration.

    The result doesn't depend on which body was faster: of two branches that write one key the later declared wins.
    """
    if node.type == "for_each":
        return NEXT, gather(counters, ended), {}
    written: JsonObject = {}
    for scope in ended:
        written |= scope.state or {}
    if node.type == "scope":
        [body] = ended
        output: JsonObject = body.output if isinstance(body.output, dict) else {"result": body.output}
        return NEXT, output, written
    return NEXT, {str(scope.name): scope.output for scope in ended}, written


def gather(counters: Counters, ended: Sequence[Scope]) -> JsonObject:
    """The results of a for_each, by index; the winner is the item that succeeded first."""
    done = [scope for scope in ended if scope.status is ScopeStatus.COMPLETED]
    first = min(done, key=lambda scope: scope.finish_order or 0, default=None)
    results: list[Json] = [{"index": scope.item_index, "item": scope.item, "output": scope.output} for scope in done]
    failures: list[Json] = [
        {"index": scope.item_index, "item": scope.item, "error": _get_told(scope)}
        for scope in ended
        if scope.status is ScopeStatus.FAILED
    ]
    return {
        "mode": counters.mode,
        "quorum": counters.quorum if counters.mode == "quorum" else None,
        "total": counters.total,
        "succeeded": counters.succeeded,
        "failed": counters.failed,
        "settled": counters.settled,
        "winner": None if first is None else first.item_index,
        "results": results,
        "failures": failures,
    }


def _get_told(scope: Scope) -> JsonObject:
    """What values read of an item's failure."""
    return {name: (scope.error or {}).get(name) for name in ("code", "message", "attempts", "node")}
