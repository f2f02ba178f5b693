"""Which node runs before which, across bodies: what a node may read of the others (spec 13.9)."""

from __future__ import annotations

from collections.abc import Iterator

from korak.graphs.document import Body, Graph
from korak.graphs.flow import Dominators, get_dominators, get_reachable, get_successors

FOR_EACH = "for_each"


class Ancestry:
    """The dominators of every body of a graph, and the containers around each node."""

    def __init__(self, graph: Graph) -> None:
        self._nodes = graph.nodes
        self._bodies = {node.id: body for body in graph.bodies for node in body.nodes}
        self._dominators: dict[int, Dominators[str]] = {}
        self.reachable: set[str] = set()
        for body in graph.bodies:
            if body.start is not None and body.start in body.ids:
                successors = get_successors(body)
                self._dominators[id(body)] = get_dominators(body.start, successors)
                self.reachable |= get_reachable(body.start, successors)

    def is_ancestor(self, first: str, second: str) -> bool:
        """Whether `first` has run, on every path, when `second` is entered. What is unreachable is not judged."""
        if first not in self.reachable or second not in self.reachable:
            return True
        body = self._bodies[first]
        for inner in (second, *self.list_containers(second)):
            if self._bodies[inner] is body:
                return first != inner and self._dominates(body, first, inner)
        return False

    def list_containers(self, node: str) -> Iterator[str]:
        """The containers around a node, innermost first."""
        container = self._nodes[node].container
        while container is not None:
            yield container
            container = self._nodes[container].container

    def is_in_for_each(self, node: str) -> bool:
        """Whether `item` and `index` stand for something there."""
        return any(self._nodes[container].type == FOR_EACH for container in self.list_containers(node))

    def _dominates(self, body: Body, first: str, second: str) -> bool:
        dominators = self._dominators.get(id(body))
        return dominators is None or dominators.dominates(first, second)
