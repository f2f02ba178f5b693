"""Chains driven through the real core, handlers and all, with their rows in memory."""

from __future__ import annotations

from typing import Any

from korak.chains import Chain
from korak.core.snapshot import Policy
from korak.model import JsonObject, StepStatus
from tests.support.bodies import list_ready, work
from tests.support.plans import plan_of, registry
from tests.support.runs import Run


def run(built: Chain, payload: JsonObject | None = None, *, policy: Policy | None = None) -> Run:
    """The chain's run, until it waits or has ended."""
    for made in built.step_types:
        if registry().get(made.key) is None:
            registry().add(made)
    begun = Run(plan_of(built.document()), given=payload or {}, policy=policy)
    return go_on(begun)


def go_on(begun: Run) -> Run:
    """The same run, as far as its handlers can take it; the pauses between attempts pass by themselves."""
    while begun.live:
        if ready := list_ready(begun):
            work(begun, ready[0])
        elif any(step.status is StepStatus.QUEUED for step in begun.live):
            begun.pass_time(10_000)
        else:
            break
    return begun


def get_state(begun: Run) -> Any:
    """The public state."""
    return begun.instance.state


def count_visits(begun: Run, node: str) -> int:
    """How often a node was entered."""
    return len({step.visit for step in begun.list_steps(node)})
