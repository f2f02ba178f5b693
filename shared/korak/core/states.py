"""What completed steps wrote into the state: told by the graph and their outputs, or kept with their event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from korak.core.rows import StepRun
from korak.errors import KorakError
from korak.graphs.plans import PlannedNode
from korak.model import Json, JsonObject
from korak.steps.builtin.set_field import read_field

WROTE, REMOVED = "wrote", "removed"
"""Members of a completed step's event: keys that its output doesn't tell, and keys that were pruned after it."""


def list_saved(node: PlannedNode, output: JsonObject) -> JsonObject:
    """What of an output enters the state, as the node's `save` says; keys with a leading _ never do."""
    if node.save is None:
        return {}
    if node.save.key is not None:
        return {node.save.key: output}
    return {key: value for key, value in output.items() if not key.startswith("_")}


def keep(node: PlannedNode, patch: JsonObject | None, removed: Mapping[str, Json] | None = None) -> JsonObject:
    """What the event of a completed step must keep so that `list_written` and `list_removed` can tell it later.

    `patch` are keys that it wrote besides those of its `save`. Nothing for a step that only saves its output.
    """
    kept: JsonObject = {}
    if patch and _read_patch(node, {"new": None}) is None:
        kept[WROTE] = patch
    if removed:
        kept[REMOVED] = list(removed)
    return kept


def list_written(node: PlannedNode | None, output: JsonObject | None, told: Mapping[str, Any]) -> JsonObject:
    """The keys of the state, with their values, that a completed step wrote; `told` is its event's data."""
    if node is None:
        return {}
    patch = told.get(WROTE)
    if patch is None:
        patch = _read_patch(node, output or {}) or {}
    return {**patch, **list_saved(node, output or {})}


def list_removed(told: Mapping[str, Any]) -> list[str]:
    """The keys that were pruned from the state after a completed step."""
    return list(told.get(REMOVED) or ())


def _read_patch(node: PlannedNode, output: Mapping[str, Any]) -> JsonObject | None:
    """What a set_field wrote, where its output tells it: not where it wrote into an object that was there before."""
    if node.type != "set_field" or "new" not in output:
        return None
    try:
        names = read_field(node.raw.get("field"))
    except KorakError:
        return None
    new: Json = output["new"]
    if not names:
        return new if isinstance(new, dict) else {}
    return {names[0]: new} if len(names) == 1 else None


def apply_written(state: JsonObject, written: JsonObject, removed: list[str]) -> JsonObject:
    """The state after a step."""
    if not written and not removed:
        return state
    return {key: value for key, value in {**state, **written}.items() if key not in removed}


def is_outermost(step: StepRun) -> bool:
    """Whether the attempt stands in no body of a container."""
    return step.scope_id is None
