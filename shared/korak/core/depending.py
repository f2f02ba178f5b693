"""A step that waits for other runs: who they are is written with the wait, what has become of them is told later."""

from __future__ import annotations

from korak.core import failing, tallying, walking
from korak.core.changes import Dependency
from korak.core.draft import Draft
from korak.core.facts import Depend, Raised
from korak.core.rows import StepRun
from korak.graphs.plans import PlannedNode
from korak.model import JsonObject, WaitKind
from korak.steps.results import NEXT
from korak.steps.waits import WaitItem, WaitSpec


def depend(draft: Draft, node: PlannedNode, step: StepRun, wanted: Depend) -> str | None:
    """Let the step wait for the runs; the node that follows where there is nothing to wait for.

    Both sides write, commit and look afterwards: the rows of the runs stay until both have.
    """
    tally = tallying.Tally(len(wanted.ulids), wanted.mode, wanted.quorum)
    if tally.is_satisfied:
        return walking.complete(draft, node, step, NEXT, {})
    tally = tally.judge()
    if tally.impossible is not None:
        pointer = "/quorum" if wanted.mode == "quorum" else "/mode"
        return failing.fail_step(draft, node, step, make_impossible(pointer, tally.impossible))
    output: JsonObject = {"ids": list(wanted.ulids)}
    spec = WaitSpec((WaitItem(WaitKind.WORKFLOWS),))
    target = walking.park(draft, node, step, spec if wanted.timeout is None else spec.timeout(wanted.timeout), output)
    wait = next((wait for wait in draft.list_waits(step) if wait.kind is WaitKind.WORKFLOWS), None)
    if wait is not None:
        wait.payload = tally.to_json()
        is_needed = tally.needed == tally.total
        rows = [Dependency(wait, place, ulid, is_needed) for place, ulid in enumerate(wanted.ulids)]
        draft.reach().dependencies.extend(rows)
    return target


def make_impossible(pointer: str, detail: str) -> Raised:
    """What a wait for runs that can't come true fails with, for good; the pointer is into the step's config."""
    return Raised("wait_impossible", None, {"pointer": pointer, "detail": detail}, is_retryable=False)
