"""Random small graphs, all of which pass publish: forks, loops, waits, retries, containers, children, undoing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from random import Random
from typing import Any

from korak.graphs.builder import GraphBuilder, graph, ref
from korak.model import JsonObject

SIGNALS = ("go", "stop")
EVENTS = ("paid", "sent")
NESTED = (1.0, 0.25, 0.1, 0.0)
"""How likely there are containers in a graph, in a container, in a container of a container."""

ORDERS = 3
"""How many different orders the events are about."""


class Author:
    """Writes one graph, segment by segment. `ends` are the ways out that lead to what comes next.

    `startable` are the keys of workflows that its steps may start.
    """

    def __init__(
        self,
        random: Random,
        startable: Sequence[str] = (),
        *,
        undoes: bool = False,
        key: str = "simulated",
        depth: int = 0,
    ) -> None:
        self._random = random
        self._built: GraphBuilder = graph(key).trigger("manual")
        self._ends: list[tuple[str, str]] = [("start", "next")]
        self._names: Iterator[int] = count(1)
        self._depth = depth
        self._undoes = undoes
        self._startable = startable
        self._bodies: dict[str, JsonObject] = {}

    def _make_inner(self) -> Author:
        inner = Author(self._random, self._startable, undoes=self._undoes, depth=self._depth + 1)
        inner._names = self._names
        return inner

    def write(self) -> JsonObject:
        """A graph of a few segments and an end."""
        for _ in range(self._random.randint(1, 4)):
            self._write_segment(depth=0)
        self._node("end", result=ref("state")) if self._random.random() < 0.5 else self._node("end")
        if self._random.random() < 0.2:
            self._built.settings(execution_timeout=self._random.choice([300, 3_000, 30_000]))
        if self._undoes:
            self._built.settings(**self._make_hooks())
        if self._random.random() < 0.2:
            self._built.settings(prune_state_after=self._random.choice([1, 2, 5]))
        if self._random.random() < 0.1:
            self._built.settings(flow=[{"key": "runs", "concurrency": 3}])
        return self._finish()

    def _make_hooks(self) -> dict[str, Any]:
        """What the settings say of cleaning up."""
        hook = {"type": "test.ok", "config": {"value": ref("state")}}
        hooks: dict[str, Any] = {name: hook for name in ("on_cancel", "on_deadline") if self._random.random() < 0.5}
        return hooks if self._random.random() < 0.6 else {**hooks, "compensate_on_failure": True}

    def _finish(self) -> JsonObject:
        """The document, with the bodies of its containers."""
        document: Any = self._built.document()
        document["nodes"] = [{**node, **self._bodies.get(node["id"], {})} for node in document["nodes"]]
        whole: JsonObject = document
        return whole

    def write_body(self) -> JsonObject:
        """What a container runs: a segment and an end."""
        self._write_segment(depth=1 if self._random.random() < 0.5 else 2)
        return self._finish_body()

    def _finish_body(self) -> JsonObject:
        if self._random.random() < 0.5:
            self._node("end", result=ref("state"))
        elif self._random.random() < 0.1:
            self._node("end", terminate=True)
        else:
            self._node("end")
        document: Any = self._finish()
        [first] = [edge["to"] for edge in document["edges"] if edge["from"] == "start"]
        edges = [edge for edge in document["edges"] if edge["from"] != "start"]
        return {"start": first, "nodes": document["nodes"][1:], "edges": edges}

    def _make_body(self) -> JsonObject:
        return self._make_inner().write_body()

    def _write_parallel(self, depth: int) -> None:
        name = self._node("parallel")
        branches: JsonObject = {
            f"b{number}": self._make_body() for number in range(self._random.randint(1, max(1, 3 - self._depth)))
        }
        self._bodies[name] = {"branches": branches}
        self._save(name)
        self._maybe_exit(name)

    def _write_scope(self, depth: int) -> None:
        config: dict[str, Any] = {}
        if self._random.random() < 0.7:
            match = {"order": ref("input.order")}
            config["events"] = [{"event": self._random.choice(EVENTS), "match": match, "outcome": "left"}]
        if self._random.random() < 0.6:
            config["timeout"] = {"after": self._random.choice([30, 600])}
        name = self._node("scope", **config)
        self._bodies[name] = {"body": self._make_body()}
        self._save(name)
        self._ends += [(name, "left")] if "events" in config else []
        self._ends += [(name, "timed_out")] if "timeout" in config else []
        self._maybe_exit(name)

    def _write_for_each(self, depth: int) -> None:
        mode = self._random.choice(["all", "first_success", "quorum"])
        is_large = self._depth == 0 and self._random.random() < 0.04
        most = self._random.choice([51, 70]) if is_large else self._random.randint(0, max(1, 6 - 3 * self._depth))
        config: dict[str, Any] = {"items": ref("input.items", list(range(most))), "mode": mode}
        if mode == "quorum":
            config["quorum"] = 2
        if is_large or self._random.random() < 0.5:
            config["concurrency"] = self._random.randint(1, 9 if is_large else 2)
        name = self._node("for_each", **config)
        self._bodies[name] = {"body": self._make_small_body() if is_large else self._make_body()}
        self._save(name)
        self._maybe_exit(name)

    def _make_small_body(self) -> JsonObject:
        inner = self._make_inner()
        inner._random.choice([inner._write_steps, inner._write_failing])(2)
        return inner._finish_body()

    def _write_child(self, depth: int) -> None:
        """Run another workflow as a step, or start it and go on."""
        config: dict[str, Any] = {"definition": self._random.choice(self._startable)}
        config["inputs"] = {"order": ref("input.order")}
        waits = self._random.random() < 0.7
        if waits:
            config["wait"] = True
            if self._random.random() < 0.4:
                config["timeout"] = self._random.choice([60, 2_000])
        name = self._node("start_workflow", **config)
        if self._random.random() < 0.5:
            self._built.retry(self._random.randint(1, 3), [5, 60])
        self._save(name)
        self._ends += [(name, "timed_out")] if "timeout" in config else []
        self._maybe_exit(name)

    def _write_children(self, depth: int) -> None:
        """Start several, and wait for them, by their group or by their ids."""
        order = {"order": ref("input.order")}
        group = self._random.random() < 0.5
        config: dict[str, Any] = {"definition": self._random.choice(self._startable), "inputs": order}
        config["items"] = {"literal": list(range(self._random.randint(0, 3)))}
        name = self._node("start_workflows", **config, **({"group": "all"} if group else {}))
        self._built.save("started")
        if self._random.random() < 0.3:
            return
        mode = self._random.choice(["all", "any", "quorum"])
        more: dict[str, Any] = {"quorum": 2} if mode == "quorum" else {}
        if self._random.random() < 0.5:
            more["timeout"] = self._random.choice([100, 5_000])
        who = {"group": "all"} if group else {"ids": ref("state.started.ids")}
        name = self._node("wait_workflows", **who, mode=mode, **more)
        self._save(name)
        self._ends += [(name, "timed_out")] if "timeout" in more else []
        self._maybe_exit(name)

    def _limit(self) -> None:
        """Limits for the node added last, now and then; all graphs share their keys."""
        for _ in range(self._random.choice([0, 0, 0, 0, 0, 0, 1, 2])):
            if self._random.random() < 0.3:
                self._built.flow("rate", rate=(4, 40))
            elif self._random.random() < 0.5:
                self._built.flow("heavy", concurrency=5, weight=self._random.randint(1, 4))
            else:
                self._built.flow({"template": "order ${input.order}"}, concurrency=1)

    def _write_segment(self, *, depth: int) -> None:
        kinds: list[Callable[[int], None]] = [self._write_steps, self._write_wait, self._write_own, self._write_failing]
        if depth < 2:
            kinds += [self._write_fork, self._write_loop]
        if self._startable and self._random.random() < 0.5:
            kinds += [self._write_child, self._write_child, self._write_children]
        if self._random.random() < NESTED[self._depth]:
            kinds += [self._write_parallel, self._write_for_each, self._write_scope]
        self._random.choice(kinds)(depth)

    def _node(self, kind: str, **config: Any) -> str:
        """A node that all open ends lead to, and whose `next` is the one open end then."""
        name = f"n{next(self._names)}"
        self._built.node(name, kind, config)
        if self._undoes and kind != "end" and self._random.random() < 0.5:
            self._undo()
        for source, outcome in self._ends:
            self._built.edge(source, name, outcome)
        self._ends = [(name, "next")]
        return name

    def _undo(self) -> None:
        if self._random.random() < 0.6:
            self._built.compensate("test.ok", value=ref("input.order"))
        else:
            self._built.compensate("test.flaky", times=self._random.choice([1, 5]))

    def _save(self, name: str) -> None:
        if self._random.random() < 0.4:
            self._built.save(name if self._random.random() < 0.7 else None)

    def _write_steps(self, depth: int) -> None:
        for _ in range(self._random.randint(1, 3)):
            if self._random.random() < 0.2:
                self._node("set_field", field="state.mark", value=ref("input.order"))
            else:
                self._save(self._node("test.ok", value=ref("input.order")))
                self._limit()

    def _write_wait(self, depth: int) -> None:
        form = self._random.choice(["signal", "event", "signals", "delay", "for"])
        limit = {"timeout": self._random.choice([30, 600])} if self._random.random() < 0.6 else {}
        if form == "delay":
            self._node("delay", **{"for": self._random.choice([0, 20, 300])})
            return
        config: dict[str, Any] = {"for": 45} if form == "for" else {"signals": list(SIGNALS)}
        if form == "signal":
            config = {"signal": self._random.choice(SIGNALS)}
        elif form == "event":
            config = {"event": self._random.choice(EVENTS), "match": {"order": ref("input.order")}}
        name = self._node("wait", **config, **(limit if form != "for" else {}))
        self._save(name)
        if limit and form != "for":
            self._ends.append((name, "timed_out"))

    def _write_own(self, depth: int) -> None:
        config: dict[str, Any] = {"probe": self._random.random() < 0.4, "fails": self._random.choice([0, 0, 1])}
        if self._random.random() < 0.5:
            config |= {"event": self._random.choice(EVENTS), "match": {"order": ref("input.order")}}
        else:
            config |= {"signal": self._random.choice(SIGNALS)}
        if self._random.random() < 0.7:
            config["timeout"] = self._random.choice([40, 900])
        if self._random.random() < 0.2:
            self._node("test.nap", seconds=self._random.choice([5, 100]))
            return
        name = self._node("test.ask", **config)
        self._built.retry(3, [5, 30])
        self._save(name)
        self._limit()
        if "timeout" in config and self._random.random() < 0.7:
            self._ends.append((name, "timed_out"))
        self._maybe_exit(name)

    def _write_failing(self, depth: int) -> None:
        times, for_good = self._random.choice([0, 1, 1, 2, 5]), self._random.random() < 0.15
        name = self._node("test.flaky", times=times, for_good=for_good)
        if self._random.random() < 0.7:
            self._built.retry(self._random.randint(1, 4), self._random.choice([[1], [5, 60], [0]]))
        self._limit()
        self._maybe_exit(name)

    def _maybe_exit(self, name: str) -> None:
        if self._random.random() < 0.6:
            self._ends.append((name, "error"))

    def _write_fork(self, depth: int) -> None:
        if self._random.random() < 0.5:
            name = self._node("condition", **{"if": {"ref": "input.order", "op": "gt", "value": 1}})
            ways = ["true", "false"]
        else:
            name, ways = self._node("test.fork", way=self._random.choice(["yes", "no"])), ["yes", "no"]
        ends: list[tuple[str, str]] = []
        for way in ways:
            self._ends = [(name, way)]
            if self._random.random() < 0.7:
                self._write_segment(depth=depth + 1)
            ends += self._ends
        self._ends = ends

    def _write_loop(self, depth: int) -> None:
        name = self._node("loop", over={"literal": [1, 2, 3][: self._random.randint(0, 3)]}, max_iterations=5)
        self._ends = [(name, "body")]
        self._write_segment(depth=depth + 1)
        for source, outcome in self._ends:
            self._built.edge(source, name, outcome)
        self._ends = [(name, "done")]


def write_graph(random: Random, key: str, startable: Sequence[str]) -> JsonObject:
    """A random graph."""
    return Author(random, startable, undoes=random.random() < 0.5, key=key).write()
