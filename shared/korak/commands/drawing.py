"""Instances as a person wants to see them: each attempt with its glyph, what is waited for, why it failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from korak.commands.arranging import FEW, Rest, arrange, part
from korak.commands.fitting import Fitted, Kept, Row
from korak.commands.glyphs import GLYPHS, draw_glyph
from korak.commands.hinting import list_hints
from korak.commands.kindred import draw_children, get_own
from korak.commands.noting import draw_note
from korak.commands.spans import get_between, read_time, show_span
from korak.commands.values import compact, draw_result
from korak.commands.wording import draw_deadline, draw_waits
from korak.model import InstanceStatus, StepRole

HASH = 12
"""Characters of a graph's hash that are shown."""


def draw_instance(instance: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], *, now: datetime) -> RenderableType:
    """One instance with its steps."""
    parts: list[RenderableType] = [_head(instance, now)]
    if steps:
        work = [step for step in steps if _get_role(step) == StepRole.STEP]
        hooks = [step for step in steps if _get_role(step) != StepRole.STEP]
        parts += [Text(), Padding(_draw_steps(instance, work, now), (0, 0, 0, 2))]
        if hooks:
            parts += [_draw_line(instance), Padding(_draw_steps(instance, hooks, now), (0, 0, 0, 2))]
    tail = [*draw_waits(instance, now), *draw_deadline(instance, now), *_list_ends(instance), *list_hints(instance)]
    if tail:
        parts += [Text(), *(Padding(line, (0, 0, 0, 2)) for line in tail)]
    return Group(*parts)


def draw_list(instances: Sequence[Mapping[str, Any]], *, now: datetime) -> RenderableType:
    """A line an instance."""
    if not instances:
        return Text("There are no instances.", "dim")
    rows = [_list_cells(instance, now) for instance in instances]
    return Fitted(("instance", "definition", "status", "age", "at"), rows, spare="status")


def _list_cells(instance: Mapping[str, Any], now: datetime) -> Row:
    at = ", ".join(map(str, instance.get("nodes") or ()))
    note = (instance.get("failure") or {}).get("code") or at
    return (
        draw_glyph(_get_status(instance)),
        Text(str(instance["id"])),
        Text(f"{instance.get('definition')} v{instance.get('version')}"),
        Text(_get_status(instance)),
        Text(show_span(get_between(instance.get("created_at"), now))),
        Text(str(note), "red" if instance.get("failure") else "dim"),
    )


def _show_run(instance: Mapping[str, Any]) -> str:
    """The id that its caller gave it, and which run of that it is."""
    if instance.get("business_id") is None:
        return ""
    number = instance.get("run", 1)
    return f"  {instance['business_id']}{f' run {number}' if number > 1 else ''}"


def _head(instance: Mapping[str, Any], now: datetime) -> RenderableType:
    status = _get_status(instance)
    glyph, style = GLYPHS.get(status, ("●", ""))
    end = read_time(instance.get("ended_at")) or now
    took = show_span(get_between(instance.get("created_at"), end))
    label = f" ({instance['version_label']})" if instance.get("version_label") else ""
    name = f"{instance.get('definition')} version {instance.get('version')}{label}{_show_run(instance)}"
    first = Text.assemble(
        (f"{glyph} {status}", f"bold {style}"),
        "  ",
        (str(instance["id"]), "bold"),
        f"  {name}",
        (f"  {took}{_tell_progress(instance)}", "dim"),
    )
    given = Text.assemble(("  input  ", "dim"), compact(instance.get("input")))
    return Group(first, given, *_list_origins(instance))


def _list_origins(instance: Mapping[str, Any]) -> Iterator[Text]:
    """Which graph it runs, what it belongs to, and its labels, which tell of a fork where it comes from."""
    root, parent = instance.get("root"), instance.get("parent")
    told = {
        "graph": str(instance.get("definition_hash") or "")[:HASH],
        "parent": parent,
        "root": root if parent and root != parent else None,
        "labels": ", ".join(map(str, instance.get("labels") or ())),
    }
    cells = [Text.assemble((f"{name}  ", "dim"), str(value)) for name, value in told.items() if value]
    if cells:
        yield Text.assemble("  ", Text("  ").join(cells))


def _tell_progress(instance: Mapping[str, Any]) -> str:
    """How many steps are done, where they are a line that isn't at its end."""
    progress = instance.get("progress") or {}
    index, total = progress.get("index", 0), progress.get("total", 0)
    return f"  {index} of {total} steps" if index < total else ""


def _draw_steps(instance: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], now: datetime) -> RenderableType:
    standing, left = part(steps)
    folded = left if len(left) > FEW else []
    lines = arrange(standing if folded else steps)
    own = _find_children(instance, lines)
    repeated = {_get_visit(step) for step in steps if step.get("attempt", 1) > 1}
    has_visits = {step["node"] for step in steps if step.get("visit", 1) > 1}
    rows: list[Row] = []
    for place, step in enumerate(lines):
        if isinstance(step, Rest):
            rows.append(_draw_rest(step))
            continue
        if folded and step["created_at"] > folded[0]["created_at"]:
            rows.append(_draw_left(folded))
            folded = []
        name = _indent(_get_name(step), step.get("branch"))
        if step["node"] in has_visits and not step.get("branch"):
            name = f"{name} #{step['visit']}"
        attempt = str(step.get("attempt", 1)) if _get_visit(step) in repeated else ""
        rows.append(_draw_step(instance, step, name, attempt, now))
        rows += draw_children(instance, own.get(place, ()), name, now, is_last=place == max(own, default=-1))
    return Fitted(("node", "type", "attempt", "took", ""), rows, spare="type")


def _find_children(instance: Mapping[str, Any], lines: Sequence[Any]) -> dict[int, list[Mapping[str, Any]]]:
    """The children of each step that is drawn, by its place: below the newest attempt of the visit."""
    newest = {key: place for place, step in enumerate(lines) if not isinstance(step, Rest) for key in _list_keys(step)}
    starters: dict[int, list[str]] = {}
    for key, place in newest.items():
        starters.setdefault(place, []).append(key)
    found = {place: get_own(instance, keys) for place, keys in sorted(starters.items())}
    return {place: children for place, children in found.items() if children}


def _draw_step(instance: Mapping[str, Any], step: Mapping[str, Any], name: str, attempt: str, now: datetime) -> Row:
    return (
        draw_glyph(str(step["status"])),
        Text(name, "bold"),
        _draw_type(step),
        Text(attempt),
        Text(show_span(_get_length(step, now))),
        draw_note(instance, step, now),
    )


def _draw_type(step: Mapping[str, Any]) -> Text:
    """The type; of a step that starts a run that run's definition, too."""
    told, given = str(step.get("type", "")), step.get("input")
    if told != "start_workflow" or not isinstance(given, dict) or "definition" not in given:
        return Text(told, "dim")
    return Kept(f"{told} {given['definition']}", "dim")


def _list_keys(step: Mapping[str, Any]) -> list[str]:
    """By what a child tells which step has started it: its visit, or its node where an older build has started it."""
    return [str(key) for key in (step.get("execution"), step["node"]) if key is not None]


def _get_visit(step: Mapping[str, Any]) -> tuple[str, str, Any]:
    """What the attempts of one visit share."""
    return step["node"], _get_role(step), step.get("visit")


def _draw_left(left: Sequence[Mapping[str, Any]]) -> Row:
    """What rewinds have left behind, in one line."""
    nodes = list(dict.fromkeys(_get_name(step) for step in left if not step.get("branch")))
    told = f"undone by a rewind: {', '.join(nodes)}"
    return Text("↶", "dim"), Text(f"{len(left):,} attempts", "dim"), Text(), Text(), Text(), Text(told, "dim")


def _draw_rest(rest: Rest) -> Row:
    """The bodies of a container that are only counted."""
    count = Text(f"{'  ' * rest.depth}{sum(rest.counts.values()):,} more", "dim")
    told = ", ".join(f"{count:,} {status}" for status, count in rest.counts.items())
    return Text(), count, Text(), Text(), Text(), Text(told, "dim")


def _draw_line(instance: Mapping[str, Any]) -> RenderableType:
    """What stands between the work of a run and what cleans up after it."""
    counts = instance.get("compensation") or {}
    told = ", ".join(f"{counts[name]} {name}" for name in ("pending", "completed", "failed") if counts.get(name))
    return Padding(Text(f"── cleaning up ──{f' {told} to undo' if told else ''}", "dim"), (0, 0, 0, 2))


def _get_name(step: Mapping[str, Any]) -> str:
    """A node, and what a hook does with it; what the whole run has isn't called by the id that no node can have."""
    node, role = str(step["node"]), _get_role(step)
    return node if role == StepRole.STEP else f"{role} {node}" if not node.startswith("$") else role


def _get_role(step: Mapping[str, Any]) -> str:
    return str(step.get("role") or StepRole.STEP)


def _indent(node: str, branch: str | None) -> str:
    """A step of a branch or an item, below its container."""
    return node if branch is None else f"{'  ' * (branch.count('/') + 1)}{node} [{branch}]"


def _tell_place(failure: Mapping[str, Any]) -> str:
    """The node that failed the run, and where it is a container the step inside that failed it."""
    node, params = failure.get("node"), failure.get("params") or {}
    if not node:
        return ""
    inner, branch = params.get("node"), params.get("branch")
    return f" at {node}, in {inner} [{branch}]" if inner and branch else f" at {node}"


def _list_ends(instance: Mapping[str, Any]) -> Iterator[RenderableType]:
    failure = instance.get("failure")
    if failure:
        yield Text.assemble(
            (f"failed{_tell_place(failure)}: ", "bold red"), f"{failure.get('message')} ({failure.get('code')})"
        )
    kept = instance.get("artifacts") or {}
    if kept.get("count"):
        more = f" and {kept['count'] - len(kept['keys'])} more" if kept["count"] > len(kept["keys"]) else ""
        yield Text.assemble(("artifacts ", "bold"), ", ".join(kept["keys"]) + more)
    if instance.get("cancel_reason"):
        yield Text.assemble(("cancelled: ", "bold"), str(instance["cancel_reason"]))
    if instance.get("status") == InstanceStatus.COMPLETED:
        yield draw_result(instance.get("result"))


def _get_status(instance: Mapping[str, Any]) -> str:
    return str(instance.get("status"))


def _get_length(step: Mapping[str, Any], now: datetime) -> timedelta | None:
    if not step.get("started_at"):
        return None
    return get_between(step["started_at"], read_time(step.get("finished_at")) or now)
