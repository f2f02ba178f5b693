"""What completed steps wrote into the state, and where a run stood after each: told by its graph and its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from korak.core.failing import get_told
from korak.core.past import Line
from korak.core.rows import StepRun
from korak.errors import Conflict, KorakError
from korak.graphs.plans import Plan, PlannedNode
from korak.model import EventType, Json, JsonObject, StepStatus
from korak.steps.builtin.set_field import read_field

WROTE, REMOVED = "wrote", "removed"
"""Members of a completed step's event: keys that its output doesn't tell, and keys that were pruned after it."""


def list_saved(node: PlannedNode, output: JsonObject) -> JsonObject:
    """What of an output enters the state, as the node's `save` says; keys with a leading _ never do."""
    if node.save is None:
        return {}
    if node.save.key is not None:
        return {node.save.key: output}
    return drop_control(output)


def drop_control(output: JsonObject) -> JsonObject:
    """An output without its keys for control: those with a leading _."""
    return {key: value for key, value in output.items() if not key.startswith("_")}


def make_result(last: Json, scope_id: int | None) -> Json:
    """The last output as a result. That of a run is as public as its state; a body's is its container's to read."""
    return drop_control(last) if scope_id is None and isinstance(last, dict) else last


def keep(node: PlannedNode, patch: JsonObject | None, removed: Mapping[str, Json] | None = None) -> JsonObject:
    """What the event of a completed step must keep so that `list_written` and `list_removed` can tell it later.

    `patch` are keys that it wrote besides those of its `save`. Nothing for a step that only saves its output.
    """
    kept: JsonObject = {}
    if patch and _read_patch(node, {"new": None}) is None:
        kept[WROTE] = patch
    if removed:
        kept[REMOVED] = list(removed)
    return kept


def list_written(node: PlannedNode | None, output: JsonObject | None, told: Mapping[str, Any]) -> JsonObject:
    """The keys of the state, with their values, that a completed step wrote; `told` is its event's data."""
    if node is None:
        return {}
    patch = told.get(WROTE)
    if patch is None:
        patch = _read_patch(node, output or {}) or {}
    return {**patch, **list_saved(node, output or {})}


def list_removed(told: Mapping[str, Any]) -> list[str]:
    """The keys that were pruned from the state after a completed step."""
    return list(told.get(REMOVED) or ())


def _read_patch(node: PlannedNode, output: Mapping[str, Any]) -> JsonObject | None:
    """What a set_field wrote, where its output tells it: not where it wrote into an object that was there before."""
    if node.type != "set_field" or "new" not in output:
        return None
    try:
        names = read_field(node.raw.get("field"))
    except KorakError:
        return None
    new: Json = output["new"]
    if not names:
        return new if isinstance(new, dict) else {}
    return {names[0]: new} if len(names) == 1 else None


def note_writers(
    writers: JsonObject, node: PlannedNode, patch: JsonObject, saved: JsonObject, number: int, before: JsonObject
) -> JsonObject:
    """The last writer of each key that a step's output or a container's bodies wrote, by the number of its transition.

    What the start gave has none, and what set_field writes is the author's own: neither is ever pruned. Nor is what
    comes back from a run that was given the state, where it isn't what stood there `before` (spec 8).
    """
    if _is_joined(node):
        return {key: writer for key, writer in writers.items() if key not in saved or saved[key] == before.get(key)}
    if node.bodies:
        saved = {**patch, **saved}
    kept = {key: writer for key, writer in writers.items() if node.bodies or key not in patch}
    return {**kept, **dict.fromkeys(saved, number)}


def _is_joined(node: PlannedNode) -> bool:
    """Whether what it merges into the state is the result of another run."""
    is_merged = node.save is not None and node.save.key is None
    return node.type == "start_workflow" and is_merged and node.raw.get("wait") is True


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stood after a line of its history: its state, and what the walk behind it goes by.

    `ended` is what may be read of the nodes, `last` the newest output of a working step. `seq` is the line's.
    """

    seq: int
    state: JsonObject = field(default_factory=dict)
    loops: JsonObject = field(default_factory=dict)
    writers: JsonObject = field(default_factory=dict)
    transitions: int = 0
    last: JsonObject | None = None
    ended: Mapping[str, JsonObject] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Standing:
    """A line that no rewind has undone, and the position after it."""

    line: Line
    position: Position


def replay(plan: Plan, lines: Iterable[Line]) -> list[Standing]:
    """The lines that stand, with their positions; the first is the start. Ends of the run itself are left out.

    Raises Conflict("position_unknown") where the history doesn't begin with a start, or a rewind names no line.
    """
    standing: list[Standing] = []
    for line in lines:
        if line.type is EventType.INSTANCE_REWOUND:
            standing = [each for each in standing if each.line.seq <= int(line.told["seq"])]
        elif line.type is EventType.INSTANCE_STARTED:
            standing = [Standing(line, Position(line.seq, dict(line.told.get("state") or {})))]
        elif line.step is not None and standing:
            position = _move(plan, standing[-1].position, line, line.step)
            standing += [] if position is None else [Standing(line, position)]
    if not standing:
        raise Conflict("position_unknown")
    return standing


def _move(plan: Plan, before: Position, line: Line, step: StepRun) -> Position | None:
    """The position after a line; None where it moved nothing."""
    node = plan.nodes.get(step.node_id)
    if node is None or node.type == "end" or step.outcome is None:
        return None
    ended = {**before.ended, node.id: tell_ended(step)}
    if line.type is EventType.STEP_FAILED:
        return replace(before, seq=line.seq, ended=ended)
    output, made = step.output or {}, before.transitions + node.counts
    return Position(
        line.seq,
        apply_written(before.state, list_written(node, output, line.told), list_removed(line.told)),
        _turn(before.loops, node, step),
        _count_writers(before, node, line.told, output, made) if plan.settings.prune_after else {},
        made,
        output if is_work(node) else before.last,
        ended,
    )


def _turn(loops: JsonObject, node: PlannedNode, step: StepRun) -> JsonObject:
    """The loops' bookkeeping: a round that began is told by the loop's output, one that left is forgotten."""
    if node.type != "loop":
        return loops
    others = {name: kept for name, kept in loops.items() if name != node.id}
    return {**others, node.id: step.output} if step.outcome == "body" else others


def _count_writers(
    before: Position, node: PlannedNode, told: Mapping[str, Any], output: JsonObject, made: int
) -> JsonObject:
    saved = list_saved(node, output)
    patch = {**(told.get(WROTE) or _read_patch(node, output) or {})}
    writers = note_writers(before.writers, node, patch, saved, made, before.state)
    return {key: writer for key, writer in writers.items() if key not in list_removed(told)}


def is_work(node: PlannedNode) -> bool:
    """Whether the node's output counts as that of a working step."""
    return not node.is_pure or node.waits or node.bodies


def tell_ended(step: StepRun) -> JsonObject:
    """What values read of an ended attempt, as `steps.<id>`."""
    if step.status is StepStatus.COMPLETED:
        return {"output": step.output or {}, "outcome": step.outcome, "error": None}
    error = get_told(step.error_code or "", step.error_message, step.error_params, step.attempt)
    return {"output": None, "outcome": step.outcome, "error": error}


def apply_written(state: JsonObject, written: JsonObject, removed: Sequence[str]) -> JsonObject:
    """The state after a step."""
    if not written and not removed:
        return state
    return {key: value for key, value in {**state, **written}.items() if key not in removed}
