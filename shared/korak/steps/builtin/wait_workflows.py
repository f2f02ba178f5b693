"""wait_workflows: waits until all, any or so many of other runs have completed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from korak.errors import Issue
from korak.graphs.contracts import Scope
from korak.model import Json, JsonObject, SignalKind
from korak.steps.builtin import shapes
from korak.steps.builtin.start_workflow import read_timeout
from korak.steps.children import Awaiting, Collecting, Mode, read_ulids
from korak.steps.context import StepContext
from korak.steps.contract import StepType, resume_default
from korak.steps.results import NEXT, Fail, Outcome, Returned
from korak.steps.waits import TIMED_OUT, Signal


class WaitWorkflows(StepType):
    """Waits for the runs of these ids, or for those that this run has started under a group.

    Where it can't come true any more the step fails with `wait_impossible`, which names the run that is to blame; a
    retry looks at all of them anew.
    """

    key = "wait_workflows"
    label = "Wait for workflows"
    description: str | None = "Waits for other runs."
    category = "flow"
    has_side_effects = False
    max_output: int | None = 2 << 20
    config_schema: JsonObject = shapes.shape(
        {
            "ids": shapes.titled(shapes.VALUE, "Runs"),
            "group": {"title": "Group", "type": "string", "minLength": 1, "maxLength": 191},
            "mode": {"title": "Wait for", "enum": ["all", "any", "quorum"], "default": "all"},
            "quorum": {"title": "How many must complete", "type": "integer", "minimum": 1},
            "merge": {"title": "Put the results together", "type": "boolean", "default": False},
            "timeout": shapes.titled(shapes.VALUE, "No longer than"),
        }
    )

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """`timed_out` only where there is a time limit."""
        limit = (Outcome(TIMED_OUT, label="Timed out"),) if "timeout" in config else ()
        return (Outcome(NEXT, label="Then"), *limit)

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """Ids or a group; a quorum goes with its mode and no other, and ids that are written out are enough for it."""
        issues = shapes.exactly_one(config, ("ids", "group"))
        if (config.get("mode") == "quorum") != ("quorum" in config):
            issues.append(shapes.wrong("/quorum", "A quorum goes with the mode quorum, which needs one."))
        ids, quorum = shapes.get_written(config.get("ids")), config.get("quorum")
        count = _count_written(ids)
        if count is not None and isinstance(quorum, int) and quorum > count:
            issues.append(shapes.wrong("/quorum", f"{quorum} of {count} runs can't complete."))
        return issues

    async def handle(self, ctx: StepContext) -> Returned:
        """Say who is waited for."""
        config = ctx.config
        group = cast("str | None", config.get("group"))
        return Awaiting(
            ulids=read_ulids(config.get("ids")) if group is None else (),
            group=group,
            mode=_get_mode(config),
            quorum=cast("int", config.get("quorum", 1)),
            timeout=read_timeout(ctx),
        )

    async def resume(self, ctx: StepContext, signal: Signal) -> Returned:
        """Enough have completed, or can't any more."""
        if signal.kind is not SignalKind.ENDED:
            return resume_default(self.key, signal, {})
        told = signal.payload if isinstance(signal.payload, dict) else {}
        if told.get("impossible") is not None:
            pointer = "/group" if "group" in ctx.config else "/ids"
            return Fail("wait_impossible", params={"pointer": pointer, "detail": told["impossible"]})
        ids = (ctx.output() or {}).get("ids")
        return Collecting(read_ulids(ids), _get_mode(ctx.config), ctx.config.get("merge") is True)


def _count_written(ids: Json) -> int | None:
    """How many runs are named, where they are written out: one that is named twice is one."""
    if isinstance(ids, str):
        return 1
    is_known = isinstance(ids, list) and all(isinstance(each, str) for each in ids)
    return len({str(each) for each in ids}) if is_known and isinstance(ids, list) else None


def _get_mode(config: JsonObject) -> Mode:
    return cast("Mode", config.get("mode", "all"))
