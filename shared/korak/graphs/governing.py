"""The rules of publish about what holds for the whole graph: its trigger's inputs, its settings, its limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from korak.errors import Issue
from korak.graphs import durations, paths
from korak.graphs.document import Graph, GraphLimits, Node
from korak.graphs.inputs import get_input_schema, is_short
from korak.graphs.limiting import check_flow
from korak.graphs.paths import Malformed
from korak.graphs.schemas import check_schema, compile_schema
from korak.model import Json, JsonObject

DURATIONS = ("execution_timeout", "run_timeout")


def check_settings(graph: Graph, limits: GraphLimits) -> Iterator[Issue]:
    """The settings, but for the values in them."""
    settings = graph.settings
    if "timezone" in settings:
        yield from _check_timezone(settings["timezone"])
    for name in DURATIONS:
        yield from check_timeout(settings.get(name), f"/settings/{name}")
    yield from check_retry(settings.get("retry"), "/settings/retry", limits)
    yield from check_flow(settings.get("flow"), "/settings/flow")
    yield from _check_limits(cast("JsonObject", settings.get("limits") or {}), limits.run)
    yield from _check_actor(graph)


def check_retry(raw: Json, pointer: str, limits: GraphLimits, node: str | None = None) -> Iterator[Issue]:
    """The durations of a retry; more attempts than the cap are clamped when it runs, which is a warning (RT-3)."""
    if raw is None:
        return
    retry = cast("JsonObject", raw)
    given = cast("int", retry["max_attempts"])
    if given > limits.max_attempts:
        params: JsonObject = {"given": given, "limit": limits.max_attempts}
        yield Issue("retry_clamped", f"{pointer}/max_attempts", params, node, is_warning=True)
    for index, duration in enumerate(cast("list[Json]", retry.get("backoff") or [])):
        yield from check_duration(duration, f"{pointer}/backoff/{index}", node)


def check_duration(raw: Json, pointer: str, node: str | None = None) -> Iterator[Issue]:
    """A duration that is written out; nothing where there is none."""
    if raw is None:
        return
    try:
        durations.compile_duration(raw)
    except Malformed as error:
        yield error.issue.at(pointer, node=node)


def check_timeout(raw: Json, pointer: str, node: str | None = None) -> Iterator[Issue]:
    """A duration that leaves some time."""
    issues = list(check_duration(raw, pointer, node))
    yield from issues
    if raw is not None and not issues and durations.compile_duration(raw) == durations.Duration():
        yield Issue("invalid_duration", pointer, {"detail": "A time limit leaves some time."}, node)


def check_inputs(trigger: Node) -> Iterator[Issue]:
    """The schema of the declared inputs, and that each default fits its own."""
    declared = trigger.config.get("inputs")
    if not isinstance(declared, dict):
        return
    pointer = f"{trigger.pointer}/config/inputs"
    members: Mapping[str, Json] = declared if is_short(trigger.config) else {}
    strange = [name for name, member in members.items() if not isinstance(member, dict)]
    for name in strange:
        detail = 'An input is an object such as {"type": "string", "required": true}.'
        yield Issue("invalid_config", pointer + paths.pointer([name]), {"detail": detail}, trigger.id)
    for name, member in members.items():
        if isinstance(member, dict) and not isinstance(member.get("required", False), bool):
            at = pointer + paths.pointer([name, "required"])
            yield Issue("invalid_config", at, {"detail": "`required` is true or false here."}, trigger.id)
    if not strange:
        yield from _check_input_schema(trigger, pointer)


def _check_input_schema(trigger: Node, pointer: str) -> Iterator[Issue]:
    schema = cast("JsonObject", get_input_schema(trigger.config))
    prefix = "/properties" if is_short(trigger.config) else ""
    issues = check_schema(schema)
    for issue in issues:
        yield Issue(issue.code, pointer + issue.pointer.removeprefix(prefix), issue.params, trigger.id)
    if issues:
        return
    for name, member in cast("JsonObject", schema.get("properties") or {}).items():
        if not isinstance(member, dict) or "default" not in member:
            continue
        inner = member if "$defs" not in schema else {**member, "$defs": schema["$defs"]}
        at = pointer + ("" if prefix else "/properties") + paths.pointer([name, "default"])
        for issue in compile_schema(inner).check(member["default"]):
            yield issue.at(at, node=trigger.id)


def _check_timezone(name: Json) -> Iterator[Issue]:
    try:
        durations.get_zone(name)
    except Malformed as error:
        yield Issue("invalid_config", "/settings/timezone", {"detail": error.message})


def _check_limits(given: JsonObject, engine: Mapping[str, int | None]) -> Iterator[Issue]:
    for name, value in given.items():
        limit = engine.get(name)
        if limit is not None and cast("int", value) > limit:
            detail = f"{name} may only lower the engine's limit, which is {limit}."
            yield Issue("invalid_config", f"/settings/limits/{name}", {"detail": detail, "limit": limit})


def _check_actor(graph: Graph) -> Iterator[Issue]:
    """Nobody starts a cron or a webhook run, so there is nobody to act on behalf of."""
    trigger = graph.trigger
    if graph.settings.get("actor") != "on_behalf_of" or trigger is None:
        return
    on = trigger.config.get("on")
    for kind in on if isinstance(on, list) else [on]:
        for name in ("cron", "webhook"):
            if isinstance(kind, dict) and name in kind:
                yield Issue("actor_requires_user", "/settings/actor", {"on": name}, trigger.id)
