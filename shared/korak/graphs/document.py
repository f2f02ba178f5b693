"""The typed view of a graph document: nodes, edges and bodies, each with its pointer into the document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from korak.graphs import paths
from korak.model import Json, JsonObject

SCHEMA = "korak.graph/v1"
TRIGGER = "trigger"
NEXT = "next"
ERROR = "error"
END = "$end"
REDUCER, REDUCED = "reducer", "$reducer"
"""The member of a for_each's config that describes its reducer, and the branch in which the node of it stands."""

RUN_LIMITS: Mapping[str, int | None] = {
    "max_steps": 200,
    "max_transitions": 10_000,
    "max_for_each_items": 10_000,
    "max_state_bytes": 1 << 20,
    "max_started_workflows": 10_000,
    "max_cost_units": None,
    "max_starts_per_minute": None,
}


@dataclass(frozen=True, slots=True)
class GraphLimits:
    """What a document may at most hold (LM-4, LM-5, RT-3); `run` is what its `settings.limits` may only lower."""

    max_nodes: int = 500
    max_edges: int = 1000
    max_bytes: int = 256 * 1024
    max_depth: int = 64
    max_attempts: int = 10
    max_loop_iterations: int = 1000
    run: Mapping[str, int | None] = field(default_factory=lambda: RUN_LIMITS)


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from one node to another; `index` counts the edges of the whole document."""

    source: str
    outcome: str
    target: str
    pointer: str
    index: int


@dataclass(frozen=True, slots=True)
class Node:
    """A node as written. `container` is the node whose body it stands in, None at the outermost level.

    `is_hook`: what cleans up after the node of that id, or after the whole run (`korak.graphs.hooks`).
    """

    id: str
    type: str
    type_version: int | None
    config: JsonObject
    raw: JsonObject
    pointer: str
    container: str | None
    branch: str | None
    is_hook: bool = False

    @property
    def is_trigger(self) -> bool:
        """Whether it is the node that starts the graph rather than one that runs."""
        return self.type == TRIGGER

    @property
    def jumps(self) -> frozenset[str] | None:
        """The declared targets of a returned `_next_step`; None where there are none, `{"*"}` for "any"."""
        declared = self.raw.get("jumps")
        if declared is None:
            return None
        return frozenset({"*"}) if declared == "any" else frozenset(cast("list[str]", declared))

    @property
    def branches(self) -> tuple[str, ...]:
        """The names of a `parallel`'s branches, in the order in which they are merged."""
        return tuple(cast("JsonObject", self.raw.get("branches") or {}))


@dataclass(frozen=True, slots=True)
class Body:
    """One scope of the graph: its outermost level, or what a container holds (`branch` names it in a `parallel`)."""

    container: str | None
    branch: str | None
    start: str | None
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    pointer: str

    @property
    def ids(self) -> frozenset[str]:
        """The ids of its own nodes, without those of bodies inside."""
        return frozenset(node.id for node in self.nodes)


@dataclass(frozen=True, slots=True)
class Graph:
    """A document, flattened: `nodes` holds those of all bodies, the first one of an id that is used twice."""

    key: str
    nodes: Mapping[str, Node]
    bodies: tuple[Body, ...]
    settings: JsonObject

    @property
    def root(self) -> Body:
        """The outermost level."""
        return self.bodies[0]

    @property
    def trigger(self) -> Node | None:
        """The first trigger, if there is one."""
        return next((node for node in self.root.nodes if node.is_trigger), None)

    def list_nodes(self) -> Iterator[Node]:
        """Every node of every body, those with a used id too."""
        for body in self.bodies:
            yield from body.nodes

    def list_edges(self) -> Iterator[Edge]:
        """Every edge of every body."""
        for body in self.bodies:
            yield from body.edges


def read_graph(document: Json) -> Graph:
    """The typed view of a document whose shape has been checked (`korak.graphs.schema`). Anything else raises."""
    root = cast("JsonObject", document)
    bodies: list[Body] = []
    nodes: dict[str, Node] = {}
    edges = 0
    pending: list[tuple[JsonObject, str, str | None, str | None]] = [(root, "", None, None)]
    while pending:
        raw, pointer, container, branch = pending.pop(0)
        body = _read_body(raw, pointer, container=container, branch=branch, first_edge=edges)
        edges += len(body.edges)
        bodies.append(body)
        for node in body.nodes:
            nodes.setdefault(node.id, node)
            pending.extend(_list_inner(node))
    return Graph(cast("str", root["key"]), nodes, tuple(bodies), cast("JsonObject", root.get("settings") or {}))


def _read_body(raw: JsonObject, pointer: str, *, container: str | None, branch: str | None, first_edge: int) -> Body:
    is_reducer = branch == REDUCED
    nodes = tuple(
        _read_node(cast("JsonObject", node), pointer if is_reducer else f"{pointer}/nodes/{index}", container, branch)
        for index, node in enumerate(cast("list[Json]", raw["nodes"]))
    )
    edges = tuple(
        _read_edge(cast("JsonObject", edge), f"{pointer}/edges/{index}", first_edge + index)
        for index, edge in enumerate(cast("list[Json]", raw.get("edges") or []))
    )
    start = cast("str | None", raw.get("start"))
    if container is None:
        start = next((node.id for node in nodes if node.is_trigger), None)
    return Body(container, branch, start, nodes, edges, pointer)


def _read_node(raw: JsonObject, pointer: str, container: str | None, branch: str | None) -> Node:
    return Node(
        id=cast("str", raw["id"]),
        type=cast("str", raw["type"]),
        type_version=cast("int | None", raw.get("type_version")),
        config=cast("JsonObject", raw.get("config") or {}),
        raw=raw,
        pointer=pointer,
        container=container,
        branch=branch,
    )


def _read_edge(raw: JsonObject, pointer: str, index: int) -> Edge:
    source, target = cast("str", raw["from"]), cast("str", raw["to"])
    return Edge(source, cast("str", raw.get("outcome", NEXT)), target, pointer, index)


def _list_inner(node: Node) -> Iterator[tuple[JsonObject, str, str | None, str | None]]:
    """The bodies a node holds, as `read_graph` queues them."""
    body = cast("JsonObject | None", node.raw.get("body"))
    if body is not None:
        yield body, f"{node.pointer}/body", node.id, None
    reducer = node.config.get(REDUCER)
    if node.type == "for_each" and isinstance(reducer, dict) and isinstance(reducer.get("type"), str):
        yield _make_reducer(node, reducer), f"{node.pointer}/config/{REDUCER}", node.id, REDUCED
    branches = cast("JsonObject", node.raw.get("branches") or {})
    for name, branch in branches.items():
        yield cast("JsonObject", branch), node.pointer + paths.pointer(["branches", name]), node.id, name


def _make_reducer(node: Node, reducer: JsonObject) -> JsonObject:
    """A body with one node: what runs over the results of a for_each."""
    made = f"{node.id[: 63 - len(REDUCER)]}_{REDUCER}"
    return {"start": made, "nodes": [{**reducer, "id": made}], "edges": []}
