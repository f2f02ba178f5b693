"""Reachability, dominators and cycles, against definitions that are obviously right and slow."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from korak.graphs.flow import count_shortest, get_dominators, get_reachable, get_repeating, list_cycles

Successors = dict[int, list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Successors:
    size = draw(st.integers(1, 7))
    node = st.integers(0, size - 1)
    return {each: draw(st.lists(node, max_size=3, unique=True)) for each in range(size)}


def list_paths(successors: Successors, start: int, end: int) -> list[list[int]]:
    """Every way from start to end that passes no node twice."""
    found, pending = [], [[start]]
    while pending:
        path = pending.pop()
        if path[-1] == end:
            found.append(path)
            continue
        pending.extend([*path, target] for target in successors[path[-1]] if target not in path)
    return found


@given(graphs())
def test_dominators_stand_on_every_path(successors: Successors) -> None:
    dominators = get_dominators(0, successors)
    for node in get_reachable(0, successors):
        paths = list_paths(successors, 0, node)
        expected = set.intersection(*(set(path) for path in paths))
        assert {other for other in successors if dominators.dominates(other, node)} == expected


@given(graphs(), st.lists(st.integers(0, 6), max_size=3))
def test_no_way_is_shorter_than_the_shortest(successors: Successors, ends: list[int]) -> None:
    ways = [path for end in ends if end in successors for path in list_paths(successors, 0, end)]
    assert count_shortest(0, successors, ends) == min(map(len, ways), default=None)


@given(graphs())
def test_what_is_unreachable_dominates_nothing(successors: Successors) -> None:
    dominators, reachable = get_dominators(0, successors), get_reachable(0, successors)
    lost = set(successors) - reachable
    assert not any(dominators.dominates(node, other) for node in lost for other in successors)


@given(graphs())
def test_reachable_is_what_a_path_leads_to(successors: Successors) -> None:
    assert get_reachable(0, successors) == {node for node in successors if list_paths(successors, 0, node)}


@given(graphs())
def test_a_node_repeats_when_a_way_leads_back_to_it(successors: Successors) -> None:
    expected = {node for node, targets in successors.items() if any(list_paths(successors, t, node) for t in targets)}
    assert get_repeating(successors) == expected


@given(graphs(), st.sets(st.integers(0, 6), max_size=3))
def test_cycles_without_some_nodes(successors: Successors, without: set[int]) -> None:
    """Each is a real cycle that avoids them, and one is found whenever there is any."""
    cycles = list_cycles(successors, without=without)
    for cycle in cycles:
        assert not without & set(cycle)
        assert all(target in successors[node] for node, target in pairwise([*cycle, cycle[0]]))
    kept = {n: [t for t in targets if t not in without] for n, targets in successors.items() if n not in without}
    assert bool(cycles) == bool(get_repeating(kept))


def test_a_long_chain_needs_no_recursion() -> None:
    chain = {node: [node + 1] for node in range(5000)} | {5000: [0]}
    assert len(list_cycles(chain)[0]) == 5001
    assert get_dominators(0, chain).dominates(2500, 5000)
