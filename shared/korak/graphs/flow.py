"""The shape of one scope's edges: what is reachable, what runs before what, and what can come round again."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Generic, TypeVar

from korak.graphs.document import Body

N = TypeVar("N", bound=Hashable)
Successors = Mapping[N, Sequence[N]]


def get_successors(body: Body, *, with_jumps: bool = True) -> dict[str, list[str]]:
    """Where each node of the body may lead, by its edges (error exits too) and, unless told otherwise, its jumps."""
    ids = body.ids
    successors: dict[str, dict[str, None]] = {node.id: {} for node in body.nodes}
    for edge in body.edges:
        if edge.source in ids and edge.target in ids:
            successors[edge.source][edge.target] = None
    for node in body.nodes if with_jumps else ():
        targets = node.jumps or frozenset()
        for other in body.nodes:
            if not other.is_trigger and ("*" in targets or other.id in targets):
                successors[node.id][other.id] = None
    return {node: list(targets) for node, targets in successors.items()}


def get_reachable(start: N, successors: Successors[N]) -> set[N]:
    """Every node that a way from `start` leads to, itself included."""
    seen = {start}
    pending = [start]
    while pending:
        for target in successors.get(pending.pop(), ()):
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return seen


def count_shortest(start: N, successors: Successors[N], ends: Collection[N]) -> int | None:
    """How many nodes the shortest way from `start` to one of `ends` has, both counted; None where there is no way."""
    seen, front, count = {start}, [start], 1
    while front and not any(node in ends for node in front):
        following = dict.fromkeys(target for node in front for target in successors.get(node, ()) if target not in seen)
        seen.update(following)
        front, count = list(following), count + 1
    return count if front else None


@dataclass(frozen=True, slots=True)
class Dominators(Generic[N]):
    """Which nodes stand on every way from the start to a node (spec 13.9), as bit masks."""

    bits: Mapping[N, int]
    masks: Mapping[N, int]

    def dominates(self, first: N, second: N) -> bool:
        """Whether every way to `second` passes `first`; a node that is reached dominates itself."""
        return bool(self.bits.get(first, 0) & self.masks.get(second, 0))


def get_dominators(start: N, successors: Successors[N]) -> Dominators[N]:
    """The dominators of every node that `start` reaches (the iterative algorithm, in reverse postorder)."""
    order = _list_postorder([start], successors)[::-1]
    bits = {node: 1 << index for index, node in enumerate(order)}
    predecessors: dict[N, list[N]] = {node: [] for node in order}
    for node in order:
        for target in successors.get(node, ()):
            predecessors[target].append(node)
    everything = (1 << len(order)) - 1
    masks = dict.fromkeys(order, everything)
    masks[start] = bits[start]
    is_changed = True
    while is_changed:
        is_changed = False
        for node in order[1:]:
            mask = everything
            for predecessor in predecessors[node]:
                mask &= masks[predecessor]
            mask |= bits[node]
            if mask != masks[node]:
                masks[node] = mask
                is_changed = True
    return Dominators(bits, masks)


def get_line(start: N, successors: Successors[N]) -> list[N]:
    """The nodes from `start` on in the one order that they can stand in, ways back aside; empty if it isn't one."""
    order = _list_postorder([start], successors)[::-1]
    follows = all(after in successors.get(before, ()) for before, after in pairwise(order))
    return order if follows else []


def list_cycles(successors: Successors[N], *, without: Collection[N] = ()) -> list[list[N]]:
    """One cycle of every knot (strongly connected part) that is left when the nodes `without` are taken out."""
    kept = {
        node: [target for target in targets if target in successors and target not in without]
        for node, targets in successors.items()
        if node not in without
    }
    return [_trace(knot, kept) for knot in _list_knots(kept)]


def get_repeating(successors: Successors[N]) -> set[N]:
    """Every node that stands in a cycle."""
    return {node for knot in _list_knots(successors) for node in knot}


def _list_knots(successors: Successors[N]) -> list[list[N]]:
    """The strongly connected parts that hold a cycle (Kosaraju, without recursion)."""
    inverse: dict[N, list[N]] = {node: [] for node in successors}
    for node, targets in successors.items():
        for target in targets:
            inverse[target].append(node)
    seen: set[N] = set()
    knots: list[list[N]] = []
    for root in reversed(_list_postorder(successors, successors)):
        if root in seen:
            continue
        knot = _collect(root, inverse, seen)
        if len(knot) > 1 or root in successors[root]:
            knots.append(knot)
    return knots


def _list_postorder(roots: Iterable[N], successors: Successors[N]) -> list[N]:
    """Every node that `roots` reach, each after all that it leads to but for ways back."""
    seen: set[N] = set()
    order: list[N] = []
    for root in roots:
        if root in seen:
            continue
        seen.add(root)
        stack = [(root, iter(successors.get(root, ())))]
        while stack:
            node, targets = stack[-1]
            target = next((found for found in targets if found not in seen), None)
            if target is None:
                order.append(node)
                stack.pop()
            else:
                seen.add(target)
                stack.append((target, iter(successors.get(target, ()))))
    return order


def _collect(root: N, successors: Successors[N], seen: set[N]) -> list[N]:
    seen.add(root)
    found = [root]
    pending = [root]
    while pending:
        for target in successors[pending.pop()]:
            if target not in seen:
                seen.add(target)
                found.append(target)
                pending.append(target)
    return found


def _trace(knot: Iterable[N], successors: Successors[N]) -> list[N]:
    """One cycle in a knot: follow ways inside it until a node comes again."""
    members = list(knot)
    inside = set(members)
    path: list[N] = []
    place: dict[N, int] = {}
    node = members[0]
    while node not in place:
        place[node] = len(path)
        path.append(node)
        node = next(target for target in successors[node] if target in inside)
    return path[place[node] :]
