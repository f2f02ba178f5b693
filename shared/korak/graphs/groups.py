"""Groups of runs: whoever waits for one needs somebody who starts it."""

from __future__ import annotations

from collections.abc import Iterator

from korak.errors import Issue
from korak.graphs.document import Graph

STARTS, AWAITS = "start_workflows", "wait_workflows"


def check_groups(graph: Graph) -> Iterator[Issue]:
    """A group counts only what the run itself has started: one that no step starts is misspelt, and always empty."""
    started = [node.config.get("group") for node in graph.nodes.values() if node.type == STARTS]
    if any(isinstance(group, dict) for group in started):
        return
    for node in graph.nodes.values():
        group = node.config.get("group")
        if node.type == AWAITS and isinstance(group, str) and group not in started:
            yield Issue("unknown_group", f"{node.pointer}/config/group", {"group": group}, node.id)
