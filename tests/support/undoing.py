"""Runs whose steps can be undone, and what of them was undone in which order."""

from __future__ import annotations

from typing import Any

from korak.core.facts import CancelAsked
from korak.model import Json, JsonObject, StepRole
from tests.support import handlers
from tests.support.bodies import document, drain, list_ready, node
from tests.support.runs import Run

CANCEL = CancelAsked("enough")
UNDO: JsonObject = {"type": "test.ok", "config": {"value": "all"}}
STATE: JsonObject = {"a": {"value": 1, "visit": 1}, "b": {"value": 2, "visit": 1}}


def undone(name: str, kind: str = "test.ok", **members: Any) -> JsonObject:
    """A node that saves its output under its name, and says so when it is undone."""
    config: JsonObject = {"value": {"template": f"undo {name}"}}
    made = node(name, kind, **members)
    return {**made, "save": {"key": name}, "compensate": {"type": "test.ok", "config": config}}


def three(**settings: Any) -> Run:
    """Two steps that can be undone, and a third that asks and waits."""
    last = node("c", "test.ask", signal="go")
    return Run(document(undone("a", value=1), undone("b", value=2), last, **settings))


def go_on(run: Run) -> Run:
    """Work off everything that is ready, and let retries become due."""
    while list_ready(run) or run.waits:
        drain(run)
        if not run.pass_time(10_000) and not list_ready(run):
            break
    return run


def list_undone(run: Run) -> list[tuple[str, str, str | None]]:
    """The attempts of hooks in the order in which they were made: role, node, status."""
    return [(step.role.value, step.node_id, step.status) for step in run.hooks]


def get_inputs(run: Run) -> list[Json]:
    return [step.input for step in run.hooks if step.role is not StepRole.CANCEL]


def one_by_one(run: Run) -> list[str]:
    """Run the hooks, and tell them in the order in which they began; never do two of the sequence live at once."""
    told = []
    while ready := list_ready(run):
        assert len([step for step in run.live if step.role is not StepRole.CANCEL]) <= 1
        told.append(f"{ready[0].role}:{ready[0].node_id}")
        run.claim(ready[0])
        run.finish(handlers.run(run.get_grant()), step=run.family.steps[ready[0].id])
    return told
