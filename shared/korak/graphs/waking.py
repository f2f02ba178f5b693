"""The names by which a signal can wake a graph: what its wait nodes take."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from korak.graphs.document import Node
from korak.model import Json, JsonObject

WAIT, SCOPE = "wait", "scope"


def get_signals(nodes: Iterable[tuple[Node, bool]]) -> frozenset[str] | None:
    """The names that the nodes (each with whether its type waits) can take; None: any, or computed at run time.

    A signal also fires an event wait of its name (WT-2). Of the built-in types `wait` takes signals, and a
    scope for its exits.
    """
    names: set[str] = set()
    for node, waits in nodes:
        if node.type in (WAIT, SCOPE):
            for name in _list_names(node):
                if name is None:
                    return None
                names.add(name)
        elif waits and "." in node.type:
            return None
    return frozenset(names)


def _list_names(node: Node) -> Iterator[str | None]:
    config: JsonObject = node.config
    events = config.get("events") if node.type == SCOPE else None
    for exit_ in events if isinstance(events, list) else ():
        yield _get_name(exit_.get("event")) if isinstance(exit_, dict) else None
    for member in ("signal", "event"):
        if member in config:
            yield _get_name(config[member])
    signals = config.get("signals")
    if isinstance(signals, list):
        yield from (_get_name(name) for name in signals)
    elif signals is not None:
        yield None


def _get_name(value: Json) -> str | None:
    if isinstance(value, dict) and value.keys() == {"literal"}:
        value = value["literal"]
    return value if isinstance(value, str) else None
