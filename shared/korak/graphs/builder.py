"""The fluent way to write a graph in Python: `graph("order").trigger("manual").node("erp", "acme.sync_erp")...`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypeAlias, cast

from korak.errors import Invalid
from korak.graphs import hygiene
from korak.graphs.document import NEXT, SCHEMA, TRIGGER
from korak.graphs.paths import MISSING
from korak.graphs.shape import check_values
from korak.model import Json, JsonObject

Duration: TypeAlias = "float | str | timedelta | JsonObject"
"""Seconds, ISO 8601, a timedelta, or one of the object forms."""

START = "start"
MAX_BYTES = 16 << 20
"""A bound on what is built, whatever the server's own: it keeps a value that holds itself from running for ever."""


def graph(key: str, name: str | None = None) -> GraphBuilder:
    """Begin a graph."""
    return GraphBuilder(key, name)


def ref(path: str, default: Any = MISSING) -> JsonObject:
    """The value form that reads a path: `ref("input.order_id")`, `ref("state.total", default=0)`."""
    return {"ref": path} if default is MISSING else {"ref": path, "default": default}


class GraphBuilder:
    """Collects nodes, edges and settings; `document()` gives the document.

    A method that says how a node runs (`retry`, `timeout`, `save`, ...) means the node added last. Misuse raises
    Invalid("invalid_document"); whether the graph may be published is `korak.graphs.validation`'s to say.
    """

    def __init__(self, key: str, name: str | None = None) -> None:
        self._head: JsonObject = {"schema": SCHEMA, "key": key}
        if name is not None:
            self._head["name"] = name
        self._nodes: list[JsonObject] = []
        self._edges: list[JsonObject] = []
        self._settings: JsonObject = {}

    def trigger(self, *on: str | Mapping[str, Any], inputs: Mapping[str, Any] | None = None) -> GraphBuilder:
        """What starts the workflow ("manual" if nothing is said) and what a start must bring; its id is "start"."""
        config: JsonObject = {"on": cast("Json", on[0] if len(on) == 1 else list(on) or "manual")}
        if inputs is not None:
            config["inputs"] = cast("Json", inputs)
        return self._add({"id": START, "type": TRIGGER, "config": config})

    def node(self, name: str, kind: str, /, config: Mapping[str, Any] | None = None, **members: Any) -> GraphBuilder:
        """Add a node by its id and its type; its config is a mapping, or keyword arguments, or both."""
        if not isinstance(name, str) or not isinstance(kind, str):
            raise _misuse("A node has an id and a type: node('price', 'shop.price', order=...).")
        node: JsonObject = {"id": name, "type": kind}
        if whole := {**(config or {}), **members}:
            node["config"] = whole
        return self._add(node)

    def edge(self, source: str, target: str, outcome: str = NEXT) -> GraphBuilder:
        """Lead from one node to another, by an outcome; the nodes may be added later."""
        edge: JsonObject = {"from": source, "to": target}
        if outcome != NEXT:
            edge["outcome"] = outcome
        if any((other["from"], other.get("outcome", NEXT)) == (source, outcome) for other in self._edges):
            raise _misuse(f"Two edges leave {source} by {outcome}.")
        self._edges.append(edge)
        return self

    def retry(
        self, max_attempts: int, backoff: Sequence[Duration] = (), *, jitter: float | None = None
    ) -> GraphBuilder:
        """How often the node is tried, the first attempt counted, and the waits in between."""
        retry: JsonObject = {"max_attempts": max_attempts}
        if backoff:
            retry["backoff"] = [_write(duration) for duration in backoff]
        if jitter is not None:
            retry["jitter"] = jitter
        return self._set("retry", retry)

    def timeout(self, limit: Duration) -> GraphBuilder:
        """The limit of one attempt of the node's handler."""
        return self._set("timeout", _write(limit))

    def save(self, key: str | None = None) -> GraphBuilder:
        """Keep the node's output in the state: under a key, or merged into it."""
        return self._set("save", {"merge": True} if key is None else {"key": key})

    def queue(self, name: str) -> GraphBuilder:
        """The queue whose engines run the node."""
        return self._set("queue", name)

    def priority(self, level: Literal["low", "normal", "high", "urgent"]) -> GraphBuilder:
        """Which of a queue's ready steps goes first."""
        return self._set("priority", level)

    def flow(
        self,
        key: Any,
        *,
        concurrency: int | None = None,
        rate: tuple[int, Duration] | None = None,
        weight: int | None = None,
    ) -> GraphBuilder:
        """A limit on the node's visits with this key: how many at once, how many begun in a span (limit, per)."""
        rule: JsonObject = {"key": _write(key)}
        for member, number in (("concurrency", concurrency), ("weight", weight)):
            if number is not None:
                rule[member] = number
        if rate is not None:
            rule["rate"] = {"limit": rate[0], "per": _write(rate[1])}
        cast("list[Json]", self._last("flow").setdefault("flow", [])).append(rule)
        return self

    def cost(self, units: int) -> GraphBuilder:
        """The units that each completed visit of the node counts for in `limits.max_cost_units`."""
        return self._set("cost", units)

    def on_error(self, *codes: str, outcome: str) -> GraphBuilder:
        """The outcome by which failures with these codes leave; * in a code stands for any text."""
        if not codes:
            raise _misuse("on_error names the codes that it maps: on_error('acme.*', outcome='declined').")
        rules = cast("list[Json]", self._last("on_error").setdefault("on_error", []))
        rules.append({"codes": list(codes), "outcome": outcome})
        return self

    def jumps(self, *targets: str) -> GraphBuilder:
        """The nodes that a returned `_next_step` may name; without any, all beside it."""
        return self._set("jumps", list(targets) if targets else "any")

    def compensate(self, kind: str, /, config: Mapping[str, Any] | None = None, **members: Any) -> GraphBuilder:
        """What undoes the node once it has completed: a step type and its config."""
        hook: JsonObject = {"type": kind}
        if whole := {**(config or {}), **members}:
            hook["config"] = cast("Json", whole)
        return self._set("compensate", hook)

    def label(self, text: str) -> GraphBuilder:
        """What people see of the node."""
        return self._set("label", text)

    def version(self, number: int) -> GraphBuilder:
        """The version of the node's type."""
        return self._set("type_version", number)

    def position(self, x: float, y: float) -> GraphBuilder:
        """Where an editor draws the node."""
        return self._set("position", {"x": x, "y": y})

    def settings(self, **members: Any) -> GraphBuilder:
        """What holds for the whole workflow; later calls add to earlier ones."""
        self._settings |= {name: _write(member) for name, member in members.items()}
        return self

    def document(self) -> JsonObject:
        """The document, a copy of its own. Raises Invalid where something in it isn't JSON or an edge leads nowhere."""
        document: JsonObject = {**self._head, "nodes": cast("Json", self._nodes), "edges": cast("Json", self._edges)}
        if self._settings:
            document["settings"] = self._settings
        if issue := check_values(cast("Json", document), MAX_BYTES) or hygiene.check_json(document):
            raise Invalid("invalid_document", issue.message, issues=[issue], count=1)
        self._check_edges()
        return cast("JsonObject", hygiene.loads(hygiene.dumps(document)))

    def to_json(self) -> bytes:
        """The document as JSON, ready for a file or a request."""
        return hygiene.dumps(self.document())

    def _add(self, node: JsonObject) -> GraphBuilder:
        if any(other["id"] == node["id"] for other in self._nodes):
            raise _misuse(f"The id {node['id']} is used twice.")
        self._nodes.append(node)
        return self

    def _last(self, member: str) -> JsonObject:
        if not self._nodes or self._nodes[-1]["type"] == TRIGGER:
            raise _misuse(f"{member}() means the node added last, and there is none: call node() first.")
        return self._nodes[-1]

    def _set(self, member: str, value: Json) -> GraphBuilder:
        node = self._last(member)
        if member in node:
            raise _misuse(f"{member}() is said twice of {node['id']}.")
        node[member] = value
        return self

    def _check_edges(self) -> None:
        known = {node["id"] for node in self._nodes}
        for edge in self._edges:
            for end in ("from", "to"):
                if edge[end] not in known:
                    raise _misuse(f"The edge from {edge['from']} to {edge['to']} names {edge[end]}, which isn't there.")


def _write(value: Any) -> Json:
    """A timedelta as seconds, anything else as it is."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    return cast("Json", value)


def _misuse(detail: str) -> Invalid:
    return Invalid("invalid_document", detail, count=1)
