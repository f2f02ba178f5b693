"""A graph under examination: what the rules of publish share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from korak.graphs.ancestry import Ancestry
from korak.graphs.contracts import TypeContract
from korak.graphs.document import ERROR, Graph, GraphLimits, Node
from korak.model import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Examined:
    """A document whose form is right, with the contracts of its nodes that are known.

    `outcomes` has a node's own and those of its `on_error`, name to whether it must be connected; a node whose type or
    config leaves that open isn't in it. `inputs` is the schema of a start's input, None where any object is taken.
    """

    graph: Graph
    limits: GraphLimits
    contracts: Mapping[str, TypeContract]
    outcomes: Mapping[str, Mapping[str, bool]]
    inputs: JsonObject | None
    ancestry: Ancestry

    def get_limit(self, name: str) -> int | None:
        """The limit in force for its runs: the engine's, or its own where that is lower; None where there is none."""
        own = self.graph.settings.get("limits")
        given = (own.get(name) if isinstance(own, dict) else None, self.limits.run.get(name))
        return min((most for most in given if isinstance(most, int)), default=None)

    def get_outcome(self, node: str, outcome: str) -> bool | None:
        """Whether a node has a way out of that name; None where its ways out aren't known."""
        known = self.outcomes.get(node)
        if known is None:
            return None
        return outcome in known or (outcome == ERROR and self.contracts[node].can_fail)


@dataclass(frozen=True, slots=True)
class NodeScope:
    """What a type's own checks may read of the graph around its node (`korak.graphs.contracts.Scope`)."""

    node: str
    inputs: Mapping[str, Json]
    ancestry: Ancestry

    def is_ancestor(self, node: str) -> bool:
        """Whether `node` runs before this one on every path."""
        return node in self.ancestry.reachable and self.ancestry.is_ancestor(node, self.node)


def list_mapped(node: Node) -> Sequence[str]:
    """The outcomes that a node's `on_error` names."""
    rules = node.raw.get("on_error")
    return [str(rule["outcome"]) for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []
