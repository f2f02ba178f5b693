"""What completing a step costs a run (transitions, units, bytes of its state), and what is pruned after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from korak.core import failing
from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.core.rows import Instance
from korak.core.states import list_saved, note_writers
from korak.graphs.hygiene import size
from korak.graphs.paths import pointer
from korak.graphs.plans import Plan, PlannedNode
from korak.model import JsonObject

UNITS, WRITERS = "units", "writers"
"""Parts of a run's bookkeeping: what its steps have cost, and which step wrote each key of the state."""

COUNTED: Mapping[str, str] = {
    "budget_transitions": "max_transitions",
    "budget_cost": "max_cost_units",
    "budget_items": "max_for_each_items",
    "budget_children": "max_started_workflows",
    "nesting_depth_exceeded": "max_depth",
}
"""The limits on what is no less when it is tried again, by the codes of those who pass them."""


@dataclass(slots=True)
class Bill:
    """What one completed step comes to. `written` enters the state; what is None isn't counted, or not pruned."""

    written: JsonObject
    transitions: int
    units: int | None = None
    writers: JsonObject | None = None
    removed: JsonObject | None = None


def make_bill(draft: Draft, node: PlannedNode, patch: JsonObject, output: JsonObject, scope_id: int | None) -> Bill:
    """What completing the node comes to. `patch` are keys of the state that it writes besides what its node saves."""
    saved = list_saved(node, output)
    written = {**patch, **saved}
    made = _count_transitions(draft, node, scope_id)
    units = _count_units(draft, node)
    kept = draft.plan.settings.prune_after
    if kept is None or scope_id is not None:
        return Bill(written, made, units)
    writers = note_writers(draft.get_walk(WRITERS), node, patch, saved, made, draft.instance.state)
    removed: JsonObject = {key: number for key, number in writers.items() if _is_old(number, made, kept)}
    for key in removed:
        del writers[key]
    return Bill(written, made, units, writers, removed)


def find_breach(draft: Draft, bill: Bill, scope_id: int | None) -> Raised | None:
    """The limit that would be passed, if any. The state is measured as it stands after pruning."""
    given, policy = draft.plan.settings.limits, draft.policy
    limit = policy.get_limit("max_transitions", given)
    if bill.transitions > limit:
        return failing.limit_breach("budget_transitions", _tell("max_transitions", limit, bill.transitions))
    if bill.units is not None and bill.units > (most := policy.find_limit("max_cost_units", given) or 0):
        return failing.limit_breach("budget_cost", _tell("max_cost_units", most, bill.units))
    if bill.written:
        limit = policy.get_limit("max_state_bytes", given)
        state = {**draft.get_state(scope_id), **bill.written}
        actual = size({key: state[key] for key in state if key not in bill.removed} if bill.removed else state)
        if actual > limit:
            largest = max(bill.written, key=lambda key: size(bill.written[key]))
            told: JsonObject = {"pointer": pointer([largest]), "limit": limit, "actual": actual}
            return failing.limit_breach("budget_state_bytes", told)
    return None


def _tell(name: str, limit: int, actual: int) -> JsonObject:
    """What was passed, and where a user changes it."""
    return {"pointer": f"/settings/limits/{name}", "limit": limit, "actual": actual}


def find_used_up(instance: Instance, plan: Plan, ceilings: Mapping[str, int | None]) -> str | None:
    """What a failed run has used up: its counts stay, so that a retry would only fail again (spec 6); as a sentence.

    `ceilings` are the engine's limits. A limit that was raised meanwhile isn't used up.
    """
    params = instance.failure_params or {}
    limit = COUNTED.get(instance.failure_code or "")
    actual = params.get("actual")
    if limit is None or not isinstance(actual, int):
        return None
    own, ceiling = plan.settings.limits.get(limit), ceilings.get(limit)
    if own is not None and actual > own:
        return f"limits.{limit} of its version is used up; start it under one that allows more"
    return f"limits.{limit} is used up; raise it first" if ceiling is not None and actual > ceiling else None


def book(draft: Draft, bill: Bill, scope_id: int | None) -> None:
    """Count the step, and take what it wrote into the state."""
    if scope_id is None:
        draft.instance.transitions_count = bill.transitions
    elif bill.transitions:
        draft.set_walk("transitions", {"count": bill.transitions}, scope_id)
    if bill.units is not None and bill.units != get_units(draft):
        draft.set_walk(UNITS, {"count": bill.units})
    draft.write_state(scope_id, bill.written)
    if bill.writers is not None and bill.writers != draft.get_walk(WRITERS):
        draft.set_walk(WRITERS, bill.writers)
    if bill.removed:
        state = draft.instance.state
        draft.instance.state = {key: state[key] for key in state if key not in bill.removed}


def get_units(draft: Draft) -> int:
    """What the run's completed steps have cost until now, as far as somebody counts."""
    count = draft.get_walk(UNITS).get("count")
    return count if isinstance(count, int) else 0


def _count_units(draft: Draft, node: PlannedNode) -> int | None:
    """The units with this step; None where neither graph nor engine has a limit, so that nobody pays for counting."""
    if draft.policy.find_limit("max_cost_units", draft.plan.settings.limits) is None:
        return None
    return get_units(draft) + node.cost


def _count_transitions(draft: Draft, node: PlannedNode, scope_id: int | None) -> int:
    """The transitions with this one. In a body only those that may come round again count, for that body."""
    if scope_id is None:
        return draft.instance.transitions_count + node.counts
    if not node.comes_round:
        return 0
    count = draft.get_walk("transitions", scope_id).get("count")
    return (count if isinstance(count, int) else 0) + node.counts


def _is_old(number: object, made: int, kept: int) -> bool:
    return isinstance(number, int) and made - number >= kept
