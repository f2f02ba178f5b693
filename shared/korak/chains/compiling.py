"""How steps become the nodes and edges of a graph document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never, cast

from korak.chains.binding import ITEM, PUBLIC, bind
from korak.chains.given import misuse
from korak.chains.handlers import Handler
from korak.chains.naming import BEGIN, LAST, START, find_target, get_id, get_part, get_path
from korak.chains.steps import Each, Listen, Parallel, Pause, Repeat, Start, Step, Work
from korak.graphs.document import END, NEXT, TRIGGER
from korak.model import Json, JsonObject
from korak.steps.waits import TIMED_OUT

MERGE: JsonObject = {"merge": True}


@dataclass(frozen=True, slots=True)
class Options:
    """What a chain says of all its handlers that say nothing themselves."""

    max_attempts: int | None = None
    queue: str | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """The nodes of one step, the first of which is its own, and its ways out besides those to what follows."""

    nodes: tuple[JsonObject, ...]
    onward: tuple[str, ...] = (NEXT,)
    edges: tuple[JsonObject, ...] = ()


def compile_steps(
    steps: Sequence[Step], options: Options, undo: Mapping[str, JsonObject] | None = None
) -> tuple[list[Json], list[Json]]:
    """The nodes and the edges: the trigger, the payload into the state, every step, the end with the whole state.

    What undoes a step, by its name, stands at its last node: with that the step has settled.
    """
    nodes: list[Json] = [
        {"id": START, "type": TRIGGER, "config": {"on": "manual"}},
        {"id": BEGIN, "type": "set_field", "config": {"field": "state", "value": {"ref": "input"}}, "counts": False},
    ]
    edges: list[Json] = [_edge(START, BEGIN)]
    ways: list[tuple[str, str]] = [(BEGIN, NEXT)]
    compiler = _Compiler(steps, options)
    makers: dict[str, str] = {}
    for number, step in enumerate(steps):
        made = compiler.compile(step, number)
        for node in _list_ids(made.nodes):
            other = makers.setdefault(node, step.name)
            if other != step.name:
                raise misuse(
                    f"The steps {other!r} and {step.name!r} would both make the node {node}: name one otherwise."
                )
        if undo and step.name in undo:
            made.nodes[-1]["compensate"] = undo[step.name]
        edges.extend(_edge(source, get_id(step.name), outcome) for source, outcome in ways)
        nodes.extend(made.nodes)
        edges.extend(made.edges)
        ways = [(str(made.nodes[-1]["id"]), outcome) for outcome in made.onward]
    nodes.append({"id": LAST, "type": "end", "config": {"result": {"ref": "state"}}})
    edges.extend(_edge(source, LAST, outcome) for source, outcome in ways)
    return nodes, edges


class _Compiler:
    def __init__(self, steps: Sequence[Step], options: Options) -> None:
        self._names = [step.name for step in steps]
        self._options = options

    def compile(self, step: Step, number: int) -> Made:
        match step:
            case Work():
                return self._compile_work(step)
            case Parallel():
                return self._compile_parallel(step)
            case Each():
                return self._compile_each(step)
            case Repeat():
                config: JsonObject = {
                    "while": step.condition,
                    "max_iterations": step.max_iterations,
                    "on_max": "fail",
                }
                back = _edge(get_id(step.name), get_id(step.target), "body")
                return Made((_node(step.name, "loop", config),), ("done",), (back,))
            case Pause():
                return Made((_node(step.name, "delay", step.config),))
            case Listen():
                return self._compile_listen(step, number)
            case Start():
                return self._compile_start(step)
            case _:
                assert_never(step)

    def _compile_work(self, step: Work) -> Made:
        what = f"The step {step.name!r}"
        node = _node(step.name, step.handler.key, bind(step.handler, step.parameters, what))
        node |= self._run(step.handler) | _limit(step.flow) | {"save": MERGE}
        if step.jumps is None:
            node["jumps"] = "any"
        elif step.jumps:
            node["jumps"] = [self._find_jump(name, what) for name in step.jumps]
        return Made((node,), _list_outcomes(step.handler, node, what))

    def _find_jump(self, name: str, what: str) -> str:
        own = name in (END, LAST) and name not in self._names
        return name if own else find_target(name, self._names, f"{what} jumps: it")

    def _compile_parallel(self, step: Parallel) -> Made:
        branches: JsonObject = {}
        for number, handler in enumerate(step.handlers):
            members = _limit(step.flow) | {"save": MERGE}
            body = self._compile_body(get_part(step.name, str(number)), handler, {}, members=members)
            branches[f"branch_{number}"] = body
        return Made((_node(step.name, "parallel", {}) | {"branches": branches},))

    def _compile_each(self, step: Each) -> Made:
        config: JsonObject = {"items": {"ref": get_path(step.items), "default": []}, "mode": step.mode}
        if step.quorum is not None:
            config["quorum"] = step.quorum
        if step.concurrency is not None:
            config["concurrency"] = step.concurrency
        members = _limit(step.flow)
        body = self._compile_body(get_part(step.name, "item"), step.handler, step.parameters, ITEM, members=members)
        node = _node(step.name, "for_each", config) | {"body": body, "save": {"key": step.result_key}}
        if step.reducer is None:
            return Made((node,))
        return self._reduce(step, node, step.reducer)

    def _reduce(self, step: Each, each: JsonObject, reducer: Handler) -> Made:
        what = f"The reducer of {step.name!r}"
        results: JsonObject = {"ref": f"{get_path(step.result_key)}.results"}
        config = bind(reducer, {}, what, {**PUBLIC, "results": results})
        node = _node(get_part(step.name, "reducer"), reducer.key, config) | self._run(reducer)
        node |= {"save": MERGE, "jumps": "any", "counts": False}
        onward = _list_outcomes(reducer, node, what)
        return Made((each, node), onward, (_edge(str(each["id"]), str(node["id"])),))

    def _compile_body(
        self,
        name: str,
        handler: Handler,
        given: Mapping[str, Any],
        around: Mapping[str, JsonObject] = PUBLIC,
        *,
        members: JsonObject,
    ) -> JsonObject:
        what = f"The handler {handler.key}"
        node = _node(name, handler.key, bind(handler, given, what, around)) | self._run(handler)
        node |= {"jumps": []} | members
        others = [outcome for outcome in _list_outcomes(handler, node, what) if outcome != NEXT]
        end = get_part(name, "end")
        ends: list[Json] = [_node(end, "end", {})] if others else []
        edges: list[Json] = [_edge(name, end, outcome) for outcome in others]
        return {"start": name, "nodes": [node, *ends], "edges": edges}

    def _compile_listen(self, step: Listen, number: int) -> Made:
        save: JsonObject = MERGE if step.result_key is None else {"key": step.result_key}
        node = _node(step.name, step.kind, step.config) | {"save": save}
        if step.timed_out is None:
            return Made((node,))
        later = self._names[number + 1 :]
        target = find_target(step.timed_out, later, f"timed_out of {step.name!r}", "among those after it")
        return Made((node,), edges=(_edge(get_id(step.name), target, TIMED_OUT),))

    def _compile_start(self, step: Start) -> Made:
        node = _node(step.name, step.kind, step.config) | {"save": MERGE}
        return Made((node if step.label is None else node | {"label": step.label},))

    def _run(self, handler: Handler) -> JsonObject:
        return run(handler, self._options)


def run(handler: Handler, options: Options) -> JsonObject:
    """How a handler runs: what the chain says, where the handler doesn't say it itself."""
    made = handler.type
    members: JsonObject = {} if made is None else {"type_version": made.version}
    if options.max_attempts is not None and (made is None or made.retry is None):
        members["retry"] = {"max_attempts": options.max_attempts}
    if options.queue is not None and (made is None or made.queue is None):
        members["queue"] = options.queue
    return members


def _limit(flow: Sequence[JsonObject]) -> JsonObject:
    return {"flow": [*flow]} if flow else {}


def _list_ids(nodes: Iterable[Any]) -> Iterator[str]:
    """Of all nodes, those of bodies too."""
    for node in nodes:
        yield node["id"]
        for body in (*node.get("branches", {}).values(), node.get("body")):
            yield from _list_ids(body["nodes"] if body else ())


def _node(name: str, kind: str, config: JsonObject) -> JsonObject:
    """A node with the id that its name gives; the name stays as its label where the two differ."""
    node: JsonObject = {"id": get_id(name), "type": kind}
    if node["id"] != name:
        node["label"] = name
    if config:
        node["config"] = config
    return node


def _edge(source: str, target: str, outcome: str = NEXT) -> JsonObject:
    edge: JsonObject = {"from": source, "to": target}
    return edge if outcome == NEXT else {**edge, "outcome": outcome}


def _list_outcomes(handler: Handler, node: JsonObject, what: str) -> tuple[str, ...]:
    """Every way out: in a chain all of them lead on."""
    if handler.type is None:
        return (NEXT,)
    config = cast("JsonObject", node.get("config") or {})
    try:
        found: Iterable[str] = [outcome.key for outcome in handler.type.outcomes(config)]
    except Exception as error:  # the type's own code, which depends on a config
        raise misuse(f"{what}: {handler.key} can't tell its outcomes: {type(error).__name__}.") from error
    if not found:
        raise misuse(f"{what}: {handler.key} has no way out, so nothing could follow.")
    return tuple(found)
