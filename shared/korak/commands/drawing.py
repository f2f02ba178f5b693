"""Instances as a person wants to see them: each attempt with its glyph, what is waited for, why it failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from korak.chains.nesting import PLACE
from korak.commands.arranging import MOST, Rest, arrange
from korak.commands.fitting import Fitted, Row
from korak.commands.values import compact, draw_result
from korak.model import InstanceStatus, StepRole, StepStatus

GLYPHS: Final[Mapping[str, tuple[str, str]]] = {
    StepStatus.QUEUED: ("◌", "dim"),
    StepStatus.RUNNING: ("▶", "cyan"),
    StepStatus.WAITING: ("◷", "yellow"),
    StepStatus.COMPLETED: ("✓", "green"),
    StepStatus.FAILED: ("✗", "red"),
    StepStatus.CANCELLED: ("⊘", "dim"),
    "paused": ("‖", "magenta"),
}
UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def draw_instance(instance: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], *, now: datetime) -> RenderableType:
    """One instance with its steps."""
    parts: list[RenderableType] = [_head(instance, now)]
    if steps:
        work = [step for step in steps if _get_role(step) == StepRole.STEP]
        hooks = [step for step in steps if _get_role(step) != StepRole.STEP]
        parts += [Text(), Padding(_draw_steps(instance, work, now), (0, 0, 0, 2))]
        if hooks:
            parts += [_draw_line(instance), Padding(_draw_steps(instance, hooks, now), (0, 0, 0, 2))]
    tail = [*_draw_waits(instance, now), *_list_ends(instance)]
    if tail:
        parts += [Text(), *(Padding(line, (0, 0, 0, 2)) for line in tail)]
    return Group(*parts)


def draw_list(instances: Sequence[Mapping[str, Any]], *, now: datetime) -> RenderableType:
    """A line an instance."""
    if not instances:
        return Text("There are no instances.", "dim")
    rows = [_list_cells(instance, now) for instance in instances]
    return Fitted(("instance", "definition", "status", "age", "at"), rows, spare="status")


def show_span(span: timedelta | None) -> str:
    """A length of time in its two largest units."""
    if span is None:
        return ""
    seconds = span.total_seconds()
    if seconds < 0.001:
        return ""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    parts = []
    for size, unit in UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count:.0f} {unit}")
    return " ".join(parts[:2])


def _list_cells(instance: Mapping[str, Any], now: datetime) -> Row:
    at = ", ".join(map(str, instance.get("nodes") or ()))
    note = (instance.get("failure") or {}).get("code") or at
    return (
        _glyph(_get_status(instance)),
        Text(str(instance["id"])),
        Text(f"{instance.get('definition')} v{instance.get('version')}"),
        Text(_get_status(instance)),
        Text(show_span(_since(instance.get("created_at"), now))),
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
    end = _read(instance.get("ended_at")) or now
    took = show_span(_between(instance.get("created_at"), end))
    name = f"{instance.get('definition')} version {instance.get('version')}{_show_run(instance)}"
    first = Text.assemble(
        (f"{glyph} {status}", f"bold {style}"), "  ", (str(instance["id"]), "bold"), f"  {name}", (f"  {took}", "dim")
    )
    given = Text.assemble(("  input  ", "dim"), compact(instance.get("input")))
    return Group(first, given)


def _draw_steps(instance: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], now: datetime) -> RenderableType:
    lines = arrange(steps)
    last = {step["node"]: step for step in lines if not isinstance(step, Rest)}
    repeated = {_get_visit(step) for step in steps if step.get("attempt", 1) > 1}
    has_visits = {step["node"] for step in steps if step.get("visit", 1) > 1}
    rows: list[Row] = []
    for step in lines:
        if isinstance(step, Rest):
            rows.append(_draw_rest(step))
            continue
        name = _indent(_get_name(step), step.get("branch"))
        if step["node"] in has_visits and not step.get("branch"):
            name = f"{name} #{step['visit']}"
        attempt = str(step.get("attempt", 1)) if _get_visit(step) in repeated else ""
        rows.append(_draw_step(instance, step, name, attempt, now))
        if step is last[step["node"]]:
            rows += _draw_children(instance, step["node"], name, now)
    return Fitted(("node", "type", "attempt", "took", ""), rows, spare="type")


def _draw_step(instance: Mapping[str, Any], step: Mapping[str, Any], name: str, attempt: str, now: datetime) -> Row:
    return (
        _glyph(str(step["status"])),
        Text(name, "bold"),
        Text(str(step.get("type", "")), "dim"),
        Text(attempt),
        Text(show_span(_get_length(step, now))),
        _note(instance, step, now),
    )


def _get_visit(step: Mapping[str, Any]) -> tuple[str, str, Any]:
    """What the attempts of one visit share."""
    return step["node"], _get_role(step), step.get("visit")


def _draw_rest(rest: Rest) -> Row:
    """The bodies of a container that are only counted."""
    count = Text(f"{'  ' * rest.depth}{sum(rest.counts.values()):,} more", "dim")
    told = ", ".join(f"{count:,} {status}" for status, count in rest.counts.items())
    return Text(), count, Text(), Text(), Text(), Text(told, "dim")


def _draw_children(instance: Mapping[str, Any], node: str, above: str, now: datetime) -> Iterator[Row]:
    """The runs that a step has started, below its newest attempt."""
    children = instance.get("children") or ()
    own = [child for child in children if ((child.get("trigger") or {}).get("payload") or {}).get("node") == node]
    for child in own:
        yield _draw_child(child, instance, above, now)
    if own and instance.get("has_more_children"):
        indent = " " * (len(above) - len(above.lstrip()) + 2)
        told = Text(f"korak list --parent {instance['id']}", "dim")
        yield Text(), Text(f"{indent}and more", "dim"), Text(), Text(), Text(), told


def _draw_child(child: Mapping[str, Any], parent: Mapping[str, Any], above: str, now: datetime) -> Row:
    """A run that a step has started: its id, by which it is shown itself, how it stands, and what is its own."""
    indent = " " * (len(above) - len(above.lstrip()) + 2)
    took = _between(child.get("created_at"), _read(child.get("ended_at")) or now)
    own = _list_own(child, parent)
    failure = child.get("failure") or {}
    state = (str(failure.get("code")), "red") if failure else (_get_status(child), "dim")
    return (
        _glyph(_get_status(child)),
        Text(f"{indent}{child['id']}"),
        Text(str(child.get("definition")), "dim"),
        Text(),
        Text(show_span(took)),
        Text.assemble(f"{compact(own)}  " if own else "", state, f"  {failure.get('message') or ''}"),
    )


def _list_own(child: Mapping[str, Any], parent: Mapping[str, Any]) -> dict[str, Any]:
    """What a run was given that isn't just as its parent has it, by which it is told from the others."""
    has = {**(parent.get("input") or {}), **(parent.get("state") or {})}
    given = child.get("input") or {}
    return {name: value for name, value in given.items() if name != PLACE and (name, value) not in has.items()}


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


def _note(instance: Mapping[str, Any], step: Mapping[str, Any], now: datetime) -> Text:
    status, error = step["status"], step.get("error")
    if step.get("undone_at"):
        return Text("undone by a rewind", "dim")
    if error:
        return Text.assemble((str(error.get("code")), "red"), f"  {error.get('message', '')}")
    if status == StepStatus.QUEUED:
        due = _read(step.get("scheduled_for"))
        later = due is not None and due > now
        return Text(f"again in {show_span(due - now)}" if due and later else "queued", "yellow" if later else "dim")
    if status == StepStatus.WAITING:
        return Text("; ".join(_list_waits(instance, now, step)) or "waiting", "yellow")
    if status == StepStatus.RUNNING and step.get("progress") is not None:
        return Text.assemble(compact(step["progress"]), (f"  {_tell_beat(step, now)}", "dim"))
    if status != StepStatus.COMPLETED:
        return Text("")
    outcome = step.get("outcome")
    way = "" if outcome in (None, "next") else f"→ {outcome}  "
    output = compact(step.get("output")) if step.get("output") else ""
    return Text.assemble(way, (output, "dim"), no_wrap=True, overflow="ellipsis")


def _tell_beat(step: Mapping[str, Any], now: datetime) -> str:
    """How long ago a step said how far it is."""
    ago = show_span(_between(step.get("heartbeat_at"), now))
    return f"{ago} ago" if ago else ""


def _indent(node: str, branch: str | None) -> str:
    """A step of a branch or an item, below its container."""
    return node if branch is None else f"{'  ' * (branch.count('/') + 1)}{node} [{branch}]"


def _list_waits(instance: Mapping[str, Any], now: datetime, step: Mapping[str, Any] | None = None) -> Iterator[str]:
    for wait in instance.get("waiting_for") or ():
        if step is not None and (wait.get("node"), wait.get("branch")) != (step["node"], step.get("branch")):
            continue
        link = " or " if wait.get("mode") == "any" else ", "
        names = link.join(map(str, wait.get("remaining") or wait.get("names") or ()))
        due = _read(wait.get("due_at"))
        limit = f", due in {show_span(due - now)}" if due and due > now else ", due now" if due else ""
        path = f" [{wait['branch']}]" if wait.get("branch") else ""
        where = "" if step is not None or not wait.get("node") else f"at {wait['node']}{path} "
        yield f"{where}for {wait.get('kind')}{f' {names}' if names else ''}{limit}"


def _draw_waits(instance: Mapping[str, Any], now: datetime) -> Iterator[Text]:
    """What an instance waits for; what many items wait for isn't told for each."""
    lines = list(_list_waits(instance, now))
    for line in lines[:MOST]:
        yield Text.assemble(("waits ", "yellow"), line)
    if len(lines) > MOST:
        yield Text(f"and waits {len(lines) - MOST:,} times more", "dim")


def _list_ends(instance: Mapping[str, Any]) -> Iterator[RenderableType]:
    failure = instance.get("failure")
    if failure:
        node = f" at {failure['node']}" if failure.get("node") else ""
        yield Text.assemble((f"failed{node}: ", "bold red"), f"{failure.get('message')} ({failure.get('code')})")
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
    return _between(step["started_at"], _read(step.get("finished_at")) or now)


def _between(start: Any, end: datetime) -> timedelta | None:
    began = _read(start)
    return None if began is None else end - began


def _since(start: Any, now: datetime) -> timedelta | None:
    return _between(start, now)


def _read(moment: Any) -> datetime | None:
    return datetime.fromisoformat(moment) if isinstance(moment, str) else None


def _glyph(status: str) -> Text:
    glyph, style = GLYPHS.get(status, ("●", ""))
    return Text(glyph, style)
