"""The plan of a published graph: made once from the document and the frozen contracts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import cast

from korak.errors import Invalid
from korak.graphs.configs import compile_config, list_reads
from korak.graphs.document import REDUCED, Body, Graph, Node, read_graph
from korak.graphs.durations import compile_duration
from korak.graphs.flow import get_line, get_repeating, get_successors
from korak.graphs.hooks import ON_CANCEL, ON_DEADLINE, list_hooks
from korak.graphs.inputs import begins_with_input, get_input_schema
from korak.graphs.limiting import read_flow
from korak.graphs.paths import Reference
from korak.graphs.plans import ANY, Plan, PlannedNode, PlanSettings, Save
from korak.graphs.policies import read_priority, read_retry, read_seconds
from korak.graphs.references import find_node_ids, list_node_references
from korak.graphs.schemas import Schema, compile_schema
from korak.graphs.values import Value, compile_value
from korak.graphs.waking import get_signals
from korak.model import Json, JsonObject


def build(document: Json, frozen: Json) -> Plan:
    """The plan of a published document. Raises Invalid("invalid_graph") where what is stored can't be read."""
    try:
        return _Planner(read_graph(document), cast("JsonObject", frozen)).plan()
    except Exception as error:  # a row edited by hand may be wrong in any way: it fails its instances, never the engine
        detail = str(error) or type(error).__name__
        raise Invalid("invalid_graph", detail=f"{type(error).__name__}: {detail}"[:500]) from error


class _Planner:
    def __init__(self, graph: Graph, frozen: JsonObject) -> None:
        self._graph = graph
        self._types = cast("dict[str, JsonObject]", frozen["types"])
        self._frozen = cast("dict[str, JsonObject]", frozen["nodes"])
        self._hooks = cast("dict[str, JsonObject]", frozen.get("hooks") or {})
        self._settings = graph.settings
        self._schemas = {name: _compile_config_schema(entry) for name, entry in self._types.items()}
        self._targets: dict[str, dict[str, str]] = {}
        self._repeating: set[str] = set()
        self._names: dict[str, Mapping[str, str]] = {}

    def plan(self) -> Plan:
        graph = self._graph
        trigger = graph.trigger
        if trigger is None:
            raise Invalid("trigger_missing")
        self._read_flow()
        nodes = {
            node.id: self._plan_node(node, self._frozen[node.id])
            for node in graph.nodes.values()
            if not node.is_trigger
        }
        hooks = {hook.id: self._plan_node(hook, self._hooks[hook.id]) for hook in list_hooks(graph)}
        for node in nodes.values():
            node.compensate = hooks.get(node.id)
        inputs = get_input_schema(trigger.config)
        start = next(iter(self._targets[trigger.id].values()))
        line, places = self._draw_line(start, nodes)
        return Plan(
            key=graph.key,
            trigger=trigger.id,
            start=start,
            nodes=nodes,
            line=line,
            places=places,
            settings=self._plan_settings(hooks),
            referenced=self._get_referenced(nodes, hooks.values()),
            signals=get_signals((graph.nodes[node.id], node.waits) for node in nodes.values()),
            inputs=inputs,
            input_schema=None if inputs is None else compile_schema(inputs),
            has_containers=any(node.bodies for node in nodes.values()),
            has_compensations=any(node.compensate for node in nodes.values()),
            cleans_up=bool(hooks),
            has_flow="flow" in self._settings or any(node.flow for node in nodes.values()),
            begins_with_input=begins_with_input(graph, self._targets[trigger.id]),
        )

    def _read_flow(self) -> None:
        for body in self._graph.bodies:
            self._repeating |= get_repeating(get_successors(body))
            self._names.update(dict.fromkeys(body.ids, _list_names(body)))
            for edge in body.edges:
                if edge.target not in self._graph.nodes:
                    raise Invalid("edge_unknown_node", id=edge.target)
                self._targets.setdefault(edge.source, {})[edge.outcome] = edge.target

    def _draw_line(self, start: str, nodes: Mapping[str, PlannedNode]) -> tuple[tuple[str, ...], dict[str, int]]:
        outermost = next(body for body in self._graph.bodies if body.container is None)
        line: list[str] = []
        places: dict[str, int] = {}
        for name in get_line(start, get_successors(outermost, with_jumps=False)):
            is_step = nodes[name].counts and nodes[name].type != "end"
            line += [name] if is_step else []
            places[name] = len(line) if nodes[name].type == "end" else max(0, len(line) - 1)
        return tuple(line), places

    def _plan_node(self, node: Node, frozen: JsonObject) -> PlannedNode:
        name = cast("str", frozen["type"])
        entry, raw = self._types[name], node.raw
        config = self._compile_config(node, entry)
        settings = self._settings
        return PlannedNode(
            id=node.id,
            type=node.type,
            type_version=cast("int", entry["version"]),
            label=cast("str | None", raw.get("label")),
            is_pure=bool(entry["is_pure"]),
            config=config,
            raw=node.config,
            targets={} if node.is_hook else self._targets.get(node.id, {}),
            outcomes=cast("dict[str, bool]", frozen.get("outcomes") or {}),
            on_error=_read_on_error(raw.get("on_error")),
            save=_read_save(raw.get("save")),
            retry=read_retry(raw.get("retry") or settings.get("retry") or entry["retry"]),
            timeout=read_seconds(raw.get("timeout") or entry["timeout"]),
            has_own_retry=raw.get("retry") is not None,
            queue=cast("str | None", raw.get("queue") or entry["queue"] or settings.get("queue")),
            priority=read_priority(raw.get("priority") or settings.get("priority")),
            max_output=cast("int | None", entry["max_output"]),
            cost=0 if entry["is_pure"] else cast("int", raw.get("cost", entry.get("cost", 1))),
            counts=raw.get("counts") is not False,
            has_cancel_hook=bool(entry["has_cancel_hook"]),
            waits=bool(entry["waits"]),
            streams=bool(entry.get("streams")),
            has_side_effects=bool(entry["has_side_effects"]),
            ability=cast("str | None", entry["ability"]),
            input_schema=None if config.is_literal else self._schemas[name],
            repeats=node.id in self._repeating or node.container is not None,
            jumps=ANY if raw.get("jumps") == "any" else node.jumps,
            names=self._names[node.id] if "jumps" in raw else {},
            comes_round=node.id in self._repeating,
            container=node.container,
            branch=node.branch,
            body=self._get_start(node, None),
            branches={name: start for name in node.branches if (start := self._get_start(node, name))},
            reducer=self._get_start(node, REDUCED) if node.type == "for_each" else None,
            escalations=tuple(cast("list[JsonObject]", raw.get("escalations") or [])),
            digest=cast("str", entry["digest"]),
            flow=read_flow(raw.get("flow")),
        )

    def _get_start(self, node: Node, branch: str | None) -> str | None:
        if node.is_hook:
            return None
        bodies = (body for body in self._graph.bodies if body.container == node.id and body.branch == branch)
        return next((body.start for body in bodies), None)

    def _compile_config(self, node: Node, entry: JsonObject) -> Value:
        schema, secret_members = cast("JsonObject", entry["config_schema"]), cast("list[str]", entry["secret_members"])
        return compile_config(schema, node.config, secret_members)

    def _plan_settings(self, hooks: Mapping[str, PlannedNode]) -> PlanSettings:
        written = self._settings
        label, execution, run = (written.get(name) for name in ("label", "execution_timeout", "run_timeout"))
        return PlanSettings(
            timezone=cast("str", written.get("timezone") or "UTC"),
            actor=cast("str", written.get("actor") or "system"),
            queue=cast("str | None", written.get("queue")),
            priority=read_priority(written.get("priority")),
            label=None if label is None else compile_value(label),
            execution_timeout=None if execution is None else compile_duration(execution),
            run_timeout=None if run is None else compile_duration(run),
            retry=read_retry(written.get("retry")),
            limits=cast("dict[str, int]", written.get("limits") or {}),
            compensate_on_failure=bool(written.get("compensate_on_failure")),
            on_cancel=hooks.get(ON_CANCEL),
            on_deadline=hooks.get(ON_DEADLINE),
            flow=read_flow(written.get("flow")),
            prune_after=cast("int | None", written.get("prune_state_after")),
        )

    def _get_referenced(self, nodes: Mapping[str, PlannedNode], hooks: Iterable[PlannedNode]) -> frozenset[str]:
        named = {name for node in (*nodes.values(), *hooks) for name in self._list_read(node)}
        label = self._settings.get("label")
        if label is not None:
            named.update(list_node_references(compile_value(label).references()))
        for rule in read_flow(self._settings.get("flow")):
            named.update(list_node_references(rule.key.references()))
        return frozenset(nodes) if None in named else frozenset(nodes) & named

    def _list_read(self, node: PlannedNode) -> Iterator[str | None]:
        schema = cast("JsonObject", self._types[f"{node.type}@{node.type_version}"]["config_schema"])
        reads = list_reads(schema, node.raw, node.raw)
        yield from list_node_references(read for read in reads if isinstance(read, Reference))
        for rule in node.flow:
            yield from list_node_references(rule.key.references())
        for place in find_node_ids(schema, node.raw):
            yield cast("str", place.value)


def _list_names(body: Body) -> Mapping[str, str]:
    labels = Counter(node.raw.get("label") for node in body.nodes)
    taken, named = body.ids, ((node.raw.get("label"), node.id) for node in body.nodes)
    return {label: id_ for label, id_ in named if isinstance(label, str) and labels[label] == 1 and label not in taken}


def _compile_config_schema(entry: JsonObject) -> Schema | None:
    schema = compile_schema(cast("JsonObject", entry["config_schema"]))
    return None if schema.fits_objects else schema


def _read_on_error(raw: Json) -> tuple[tuple[tuple[str, ...], str], ...]:
    rules = cast("list[JsonObject]", raw or [])
    return tuple((tuple(cast("list[str]", rule["codes"])), cast("str", rule["outcome"])) for rule in rules)


def _read_save(raw: Json) -> Save | None:
    if raw is None:
        return None
    return Save(cast("str | None", cast("JsonObject", raw).get("key")))
