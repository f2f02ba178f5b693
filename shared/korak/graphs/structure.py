"""The rules of publish about nodes and edges: one trigger, all ways out connected, no cycle without a loop."""

from __future__ import annotations

from collections.abc import Iterator

from korak.errors import Issue
from korak.graphs.document import Body, Edge
from korak.graphs.examining import Examined, list_mapped
from korak.graphs.flow import count_shortest, get_successors, list_cycles

LOOP = "loop"


def check_structure(examined: Examined) -> Iterator[Issue]:
    """Everything about how the nodes hang together."""
    yield from _check_ids(examined)
    yield from _check_triggers(examined)
    yield from _check_length(examined)
    for body in examined.graph.bodies:
        yield from _check_start(body)
        yield from _check_edges(examined, body)
        yield from _check_jumps(body)
        yield from _check_outcomes(examined, body)
        yield from _check_reachable(examined, body)
        yield from _check_cycles(body)


def _check_ids(examined: Examined) -> Iterator[Issue]:
    seen: set[str] = set()
    for node in examined.graph.list_nodes():
        if node.id in seen:
            yield Issue("duplicate_node", f"{node.pointer}/id", {"id": node.id}, node.id)
        seen.add(node.id)


def _check_triggers(examined: Examined) -> Iterator[Issue]:
    first = examined.graph.trigger
    if first is None:
        yield Issue("trigger_missing", "/nodes")
        return
    for node in examined.graph.list_nodes():
        if node.is_trigger and node is not first:
            yield Issue("trigger_multiple", node.pointer, node=node.id)
    if all(edge.source != first.id for edge in examined.graph.root.edges):
        yield Issue("nothing_follows", first.pointer, node=first.id)


def _check_length(examined: Examined) -> Iterator[Issue]:
    """The shortest way through has room in what a run may visit; the trigger is no visit."""
    trigger, root = examined.graph.trigger, examined.graph.root
    limit = examined.get_limit("max_steps")
    if trigger is None or limit is None:
        return
    successors = get_successors(root)
    ends = [node.id for node in root.nodes if not successors[node.id] or {"$end", "*"} & (node.jumps or frozenset())]
    count = count_shortest(trigger.id, successors, ends)
    if count is not None and count - 1 > limit:
        yield Issue("graph_too_long", "/nodes", {"actual": count - 1, "limit": limit})


def _check_start(body: Body) -> Iterator[Issue]:
    if body.container is not None and body.start not in body.ids:
        yield Issue("edge_unknown_node", f"{body.pointer}/start", {"id": body.start}, body.container)


def _check_edges(examined: Examined, body: Body) -> Iterator[Issue]:
    nodes = {node.id: node for node in body.nodes}
    seen: set[tuple[str, str]] = set()
    for edge in body.edges:
        if (edge.source, edge.outcome) in seen:
            yield _about(edge, "edge_duplicate", "", id=edge.source, outcome=edge.outcome)
        seen.add((edge.source, edge.outcome))
        if edge.source not in nodes:
            yield _about(edge, "edge_unknown_node", "/from", id=edge.source)
        elif examined.get_outcome(edge.source, edge.outcome) is False:
            yield _about(edge, "edge_unknown_outcome", "/outcome", type=nodes[edge.source].type, outcome=edge.outcome)
        if edge.target not in nodes:
            yield _about(edge, "edge_unknown_node", "/to", id=edge.target)
        elif nodes[edge.target].is_trigger:
            yield _about(edge, "edge_into_trigger", "/to")


def _about(edge: Edge, code: str, member: str, **params: str) -> Issue:
    return Issue(code, edge.pointer + member, dict(params), edge.source, edge.index)


def _check_jumps(body: Body) -> Iterator[Issue]:
    nodes = {node.id: node for node in body.nodes}
    for node in body.nodes:
        declared = node.raw.get("jumps")
        for index, target in enumerate(declared if isinstance(declared, list) else ()):
            pointer = f"{node.pointer}/jumps/{index}"
            if target == "$end":
                continue
            if str(target) not in nodes:
                yield Issue("edge_unknown_node", pointer, {"id": target}, node.id)
            elif nodes[str(target)].is_trigger:
                yield Issue("edge_into_trigger", pointer, node=node.id)


def _check_outcomes(examined: Examined, body: Body) -> Iterator[Issue]:
    """A body ends where no edge leads on, so `next` may stay open in one."""
    connected = {(edge.source, edge.outcome) for edge in body.edges}
    for node in body.nodes:
        mapped = list_mapped(node)
        for outcome, is_required in examined.outcomes.get(node.id, {}).items():
            if not is_required or (node.id, outcome) in connected or node.is_trigger:
                continue
            if body.container is not None and outcome == "next":
                continue
            member = f"/on_error/{mapped.index(outcome)}/outcome" if outcome in mapped else ""
            yield Issue("outcome_unconnected", node.pointer + member, {"id": node.id, "outcome": outcome}, node.id)


def _check_reachable(examined: Examined, body: Body) -> Iterator[Issue]:
    if body.start is None or body.start not in body.ids:
        return
    for node in body.nodes:
        if node.id not in examined.ancestry.reachable and not node.is_trigger:
            yield Issue("unreachable_node", node.pointer, {"id": node.id}, node.id)


def _check_cycles(body: Body) -> Iterator[Issue]:
    """Every way round passes through a loop node; jumps are bounded by `max_transitions` instead."""
    loops = {node.id for node in body.nodes if node.type == LOOP}
    for cycle in list_cycles(get_successors(body, with_jumps=False), without=loops):
        first = next(node for node in body.nodes if node.id in cycle)
        turn = cycle.index(first.id)
        around = [*cycle[turn:], *cycle[:turn], first.id]
        yield Issue("cycle_without_loop", first.pointer, {"nodes": " -> ".join(around)}, first.id)
