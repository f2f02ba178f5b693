"""Containers for tests of the core, and a run that is driven until nothing moves by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from korak.core.rows import Scope, StepRun
from korak.model import InstanceStatus, Json, JsonObject, StepRole, StepStatus
from tests.support import handlers
from tests.support.runs import Run


def node(name: str, kind: str = "test.ok", **members: Any) -> JsonObject:
    """A node; what isn't a member of a node is its config."""
    known = ("save", "retry", "branches", "body", "on_error", "jumps", "queue", "cost", "counts")
    own = {key: members.pop(key) for key in known if key in members}
    return {"id": name, "type": kind, "config": members, **own}


def body(*nodes: JsonObject, edges: Sequence[tuple[str, str, str]] = ()) -> JsonObject:
    """Nodes one after the other, unless edges are given."""
    line: list[Any] = [{"from": before["id"], "to": after["id"]} for before, after in pairwise(nodes)]
    given: list[Any] = [{"from": source, "outcome": outcome, "to": target} for source, outcome, target in edges]
    return {"start": nodes[0]["id"], "nodes": list(nodes), "edges": given or line}


def parallel(name: str = "both", /, save: Json = None, **branches: JsonObject) -> JsonObject:
    """A parallel of these branches."""
    return node(name, "parallel", branches=branches, **({} if save is None else {"save": save}))


def for_each(items: Json, inner: JsonObject, name: str = "each", **members: Any) -> JsonObject:
    """A for_each of this body."""
    return node(name, "for_each", items=items, body=inner, **members)


def document(*nodes: JsonObject, edges: Sequence[tuple[str, str, str]] = (), **settings: Any) -> JsonObject:
    """A whole graph: the nodes one after the other unless edges are given, and an end."""
    start: JsonObject = {"id": "start", "type": "trigger", "config": {"on": "manual"}}
    inner = body(start, *nodes, {"id": "done", "type": "end", "config": {"result": {"ref": "state"}}}, edges=edges)
    head: JsonObject = {"schema": "korak.graph/v1", "key": "g", "settings": settings}
    return {**head, "nodes": inner["nodes"], "edges": inner["edges"]}


def list_scopes(run: Run) -> list[Scope]:
    """In the order in which they were made."""
    return sorted(run.family.scopes.values(), key=lambda scope: scope.id)


def list_ready(run: Run) -> list[StepRun]:
    """What an engine may claim."""
    return sorted((step for step in run.live if step.ready_at is not None), key=lambda step: step.id)


def find(run: Run, name: str, index: int | None = None) -> StepRun:
    """The one live step of a node, of an item where several live."""
    scopes = run.family.scopes
    [found] = [
        step
        for step in run.live
        if step.node_id == name
        and step.role is StepRole.STEP
        and (index is None or (step.scope_id is not None and scopes[step.scope_id].item_index == index))
    ]
    return found


def work(run: Run, step: StepRun, *, inline: bool = False) -> None:
    """Claim a step and run its handler to its record; with `inline` what that grants goes on likewise."""
    if step.status is not StepStatus.RUNNING:
        run.claim(step)
    while run.last.claimed:
        grant = run.get_grant()
        run.finish(handlers.run(grant), inline=inline, step=run.family.steps[grant.step.id])


def get_first(ready: list[StepRun]) -> StepRun:
    """The oldest."""
    return ready[0]


def drain(run: Run, *, choose: Callable[[list[StepRun]], StepRun] = get_first, inline: bool = False) -> None:
    """Work off all that is ready, one at a time."""
    while ready := list_ready(run):
        work(run, choose(ready), inline=inline)


def get_status(run: Run) -> InstanceStatus | None:
    """Where the run stands now."""
    return run.instance.status


def get_state(run: Run) -> Any:
    """The state, whatever stands in it."""
    return run.instance.state
