"""start_workflow and start_workflows: start one run of another workflow, or one for each item of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from korak.errors import Issue, StepFailed
from korak.graphs.contracts import Scope
from korak.model import Json, JsonObject, SignalKind
from korak.steps import moments
from korak.steps.builtin import shapes
from korak.steps.children import PAGE, Starting, add_item, make_input
from korak.steps.context import StepContext
from korak.steps.contract import StepType, resume_default
from korak.steps.results import NEXT, Outcome, Returned
from korak.steps.waits import TIMED_OUT, Due, Signal

KEY: JsonObject = {"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_-]{0,63}$"}
WHICH: JsonObject = {
    "definition": shapes.titled(shapes.VALUE, "Workflow"),
    "version": {"title": "Version", "type": "integer", "minimum": 1},
    "checksum": {"title": "Checksum", "type": "string", "pattern": "^[0-9a-f]{64}$"},
    "inputs": shapes.titled(shapes.VALUE, "Input"),
    "without": {"title": "Without these keys", "type": "array", "items": {"type": "string"}},
}

STARTED: JsonObject = {"type": "object", "properties": {"instance": {"type": "string"}}}
LISTED: JsonObject = {"type": "object", "properties": {"ids": {"type": "array", "items": {"type": "string"}}}}


class StartWorkflow(StepType):
    """Starts one run; with `wait` its result is the output, and its failure the step's.

    A run that fails makes the step fail with `child_failed`, one that is cancelled with `child_cancelled`. A retry of
    the step lets the failed run go on where it failed. A time limit ends the wait, not the run.
    """

    key = "start_workflow"
    label = "Start a workflow"
    description: str | None = "Starts a run of another workflow, and may wait for it."
    category = "flow"
    config_schema: JsonObject = shapes.shape(
        {
            **WHICH,
            "wait": {"title": "Wait for its end", "type": "boolean", "default": False},
            "timeout": shapes.titled(shapes.VALUE, "No longer than"),
        },
        required=["definition"],
    )
    output_schema: JsonObject | None = STARTED

    def outcomes(self, config: JsonObject) -> Sequence[Outcome]:
        """`timed_out` only where there is a time limit."""
        limit = (Outcome(TIMED_OUT, label="Timed out"),) if "timeout" in config else ()
        return (Outcome(NEXT, label="Then"), *limit)

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """A time limit goes with a wait; a version is told by its number or by its checksum."""
        issues = check_which(config)
        if "timeout" in config and config.get("wait") is not True:
            issues.append(shapes.wrong("/timeout", "A time limit goes with wait: true."))
        return issues

    async def handle(self, ctx: StepContext) -> Returned:
        """Start it."""
        config = ctx.config
        return Starting(
            definition=read_definition(config),
            inputs=(read_base(config),),
            result_key="instance",
            number=cast("int | None", config.get("version")),
            checksum=cast("str | None", config.get("checksum")),
            is_single=True,
            awaits=config.get("wait") is True,
            timeout=read_timeout(ctx),
        )

    async def resume(self, ctx: StepContext, signal: Signal) -> Returned:
        """Only a time limit comes here: the end of a child is settled where it is told."""
        return resume_default(self.key, signal, ctx.output())


class StartWorkflows(StepType):
    """Starts a run for each item, in order, and goes on: they live on their own. Their ids are the output.

    Each is given `inputs`, but for the keys `without`, with an object's own keys on top; any other item stands under
    `payload_key`. Under `index_key` is its place.
    """

    key = "start_workflows"
    label = "Start workflows"
    description: str | None = "Starts a run of another workflow for each item of a list."
    category = "flow"
    max_output: int | None = 1 << 20
    config_schema: JsonObject = shapes.shape(
        {
            **WHICH,
            "items": shapes.titled(shapes.VALUE, "Items"),
            "payload_key": {"title": "Key of an item", **KEY, "default": "item"},
            "index_key": {"title": "Key of its place", **KEY},
            "result_key": {"title": "Key of the ids", **KEY, "default": "ids"},
            "group": {"title": "Group", "type": "string", "minLength": 1, "maxLength": 191},
        },
        required=["definition", "items"],
    )
    output_schema: JsonObject | None = LISTED

    def validate_config(self, config: JsonObject, scope: Scope) -> Sequence[Issue]:
        """What is written out as the items is a list."""
        issues = check_which(config)
        if not shapes.may_be_list(config.get("items")):
            issues.append(shapes.wrong("/items", "A list or a value form is expected."))
        return issues

    async def handle(self, ctx: StepContext) -> Returned:
        """Start the first page."""
        return _start_page(ctx.config, ())

    async def resume(self, ctx: StepContext, signal: Signal) -> Returned:
        """Start the next page, behind what this visit has started."""
        if signal.kind not in (SignalKind.PROBE, SignalKind.TIMER):
            return resume_default(self.key, signal, ctx.output())
        config = ctx.config
        started = (ctx.output() or {}).get(_get_result_key(config))
        return _start_page(config, tuple(str(ulid) for ulid in started) if isinstance(started, list) else ())


def _start_page(config: JsonObject, before: tuple[str, ...]) -> Starting:
    items, base = _read_items(config), read_base(config)
    payload_key, index_key = str(config.get("payload_key", "item")), cast("str | None", config.get("index_key"))
    first = len(before)
    page = items[first : first + PAGE]
    return Starting(
        definition=read_definition(config),
        inputs=tuple(
            add_item(base, item, index, payload_key=payload_key, index_key=index_key)
            for index, item in enumerate(page, first)
        ),
        result_key=_get_result_key(config),
        number=cast("int | None", config.get("version")),
        checksum=cast("str | None", config.get("checksum")),
        before=before,
        rest=max(0, len(items) - first - len(page)),
        group=cast("str | None", config.get("group")),
    )


def _get_result_key(config: JsonObject) -> str:
    return str(config.get("result_key", "ids"))


def _read_items(config: JsonObject) -> list[Json]:
    items = config.get("items")
    if not isinstance(items, list):
        raise StepFailed("invalid_input", pointer="/items", detail="a list is expected")
    return items


def check_which(config: JsonObject) -> list[Issue]:
    """What is wrong with how a workflow is named."""
    issues: list[Issue] = []
    definition = config.get("definition")
    if not shapes.is_form(definition) and not (isinstance(definition, str) and definition.strip()):
        issues.append(shapes.wrong("/definition", "The key of a workflow is expected."))
    if "version" in config and "checksum" in config:
        issues.append(shapes.wrong("/checksum", "A version is told by its number or by its checksum, not by both."))
    return issues


def read_definition(config: JsonObject) -> str:
    """The key of the workflow. Raises `invalid_input`."""
    definition = config.get("definition")
    if not isinstance(definition, str) or not definition.strip():
        raise StepFailed("invalid_input", pointer="/definition", detail="the key of a workflow is expected")
    return definition


def read_base(config: JsonObject) -> JsonObject:
    """The input that the config gives. Raises `invalid_input`."""
    base = config.get("inputs")
    if base is not None and not isinstance(base, dict):
        raise StepFailed("invalid_input", pointer="/inputs", detail="an object is expected")
    without = config.get("without")
    return make_input(base or {}, [str(key) for key in without] if isinstance(without, list) else ())


def read_timeout(ctx: StepContext) -> Due:
    """The time limit of a wait, if there is one. Raises `invalid_input`."""
    raw = ctx.config.get("timeout")
    return None if raw is None else moments.read_due(raw, pointer="/timeout", now=ctx.now, timezone=ctx.timezone)
