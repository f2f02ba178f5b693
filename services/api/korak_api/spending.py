"""What a run may use and has used, as an instance shows it."""

from __future__ import annotations

from collections.abc import Mapping

from korak.core.budgets import UNITS
from korak.core.rows import Instance
from korak.core.telling import CHILDREN
from korak.graphs.hygiene import size
from korak.store.instances import View
from korak_api.rendering import Shown

SHOWN = (
    "max_steps",
    "max_transitions",
    "max_for_each_items",
    "max_started_workflows",
    "max_state_bytes",
    "max_cost_units",
)


def show_budget(view: View, ceilings: Mapping[str, int | None]) -> Shown:
    """The limits in force, and the counts that they bound. Units are counted where they have a limit."""
    instance = view.instance
    limits = {name: _get_limit(name, view.limits, ceilings) for name in SHOWN}
    return {
        "limits": limits,
        "steps": instance.steps_count,
        "transitions": instance.transitions_count,
        "started_workflows": _get_count(instance, CHILDREN),
        "state_bytes": size(instance.state),
        "cost_units": None if limits["max_cost_units"] is None else _get_count(instance, UNITS),
    }


def _get_limit(name: str, given: Mapping[str, int], ceilings: Mapping[str, int | None]) -> int | None:
    return min((most for most in (given.get(name), ceilings.get(name)) if most is not None), default=None)


def _get_count(instance: Instance, part: str) -> int:
    kept = (instance.walk or {}).get(part)
    count = kept.get("count") if isinstance(kept, dict) else None
    return count if isinstance(count, int) else 0
