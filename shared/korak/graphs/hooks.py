"""What a graph does to clean up, as nodes of their own: compensations of its nodes, and the hooks of its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from korak.graphs.document import Graph, Node
from korak.model import JsonObject

ON_CANCEL: Final = "$on_cancel"
ON_DEADLINE: Final = "$on_deadline"

SETTINGS: Final[Mapping[str, str]] = {"on_cancel": ON_CANCEL, "on_deadline": ON_DEADLINE}
"""The settings that are hooks, and the ids that their steps have: no node can be called so."""


def list_hooks(graph: Graph) -> Iterator[Node]:
    """Every hook. A compensation has the id and the place of the node that it undoes."""
    for node in graph.nodes.values():
        raw = node.raw.get("compensate")
        if raw is not None:
            yield _read(cast("JsonObject", raw), node.id, f"{node.pointer}/compensate", node)
    for member, name in SETTINGS.items():
        raw = graph.settings.get(member)
        if raw is not None:
            yield _read(cast("JsonObject", raw), name, f"/settings/{member}", None)


def _read(raw: JsonObject, name: str, pointer: str, undone: Node | None) -> Node:
    return Node(
        id=name,
        type=cast("str", raw["type"]),
        type_version=cast("int | None", raw.get("type_version")),
        config=cast("JsonObject", raw.get("config") or {}),
        raw=raw,
        pointer=pointer,
        container=None if undone is None else undone.container,
        branch=None if undone is None else undone.branch,
        is_hook=True,
    )
