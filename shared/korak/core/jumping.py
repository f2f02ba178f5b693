"""Jumps: an output that names the node to go on with, instead of an edge."""

from __future__ import annotations

from korak.core.draft import Draft
from korak.core.facts import Raised
from korak.graphs.document import REDUCED
from korak.graphs.plans import ANY, PlannedNode
from korak.model import Json, JsonObject
from korak.steps.builtin import RESERVED

JUMP = "_next_step"
"""The key of an output that names the node to go on with; null is no jump."""

END = "$end"
"""The target of a jump that ends the run; in a container's body, the body."""


def get_jump(node: PlannedNode, output: JsonObject) -> Json:
    """The id of the node that an output names, by id or by its step's name, or whatever stands there instead.

    What a reducer names is its for_each's jump. What a node that is decided here gives may come from outside, so
    without `jumps` of its own it names none: who sends a signal doesn't choose. Nor does a node with empty `jumps`.
    """
    is_mute = node.branch == REDUCED or (node.is_pure if node.jumps is None else not node.jumps)
    target = None if is_mute else output.get(JUMP)
    return node.names.get(target, target) if isinstance(target, str) else target


def check_jump(draft: Draft, node: PlannedNode, output: JsonObject) -> Raised | None:
    """What is wrong with the jump that an output asks for: its node's `jumps` must name it.

    A handler that names another is tried again, like one that raises: it may well answer otherwise (spec 4).
    """
    target, allowed = get_jump(node, output), node.jumps or frozenset()
    if target is None or (isinstance(target, str) and target in allowed):
        return None
    if allowed == ANY and isinstance(target, str) and (target == END or _is_beside(draft, node, target)):
        return None
    told: JsonObject = {"pointer": f"/{JUMP}", "target": output.get(JUMP), "allowed": _list_allowed(node, allowed)}
    return Raised("unknown_jump", None, told, is_retryable=node.type not in RESERVED)


def _list_allowed(node: PlannedNode, allowed: frozenset[str]) -> str:
    """The targets as a person reads them, by their steps' names where they have some."""
    if allowed == ANY:
        return "any node beside it"
    names = {target: name for name, target in node.names.items()}
    return ", ".join(sorted(names.get(target, target) for target in allowed)) or "none"


def _is_beside(draft: Draft, node: PlannedNode, target: str) -> bool:
    other = draft.plan.nodes.get(target)
    return other is not None and (other.container, other.branch) == (node.container, node.branch)
