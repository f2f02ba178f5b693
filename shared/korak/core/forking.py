"""Forks: a run of its own that begins where another one stood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from korak.core import rewinding, undoing
from korak.core.changes import Carried
from korak.core.draft import Draft
from korak.core.opening import Opening, Owner, Version, open_instance
from korak.core.past import Line, Past
from korak.core.rows import StepRun
from korak.core.snapshot import Snapshot
from korak.errors import Conflict
from korak.model import CompensationStatus, EventType, InstanceStatus, Json, JsonObject

STARTED = "started"
"""A member of the event that begins a fork: the runs that bodies before its place had started, by the line's number."""

LABEL = "forked_from:"
"""With the ULID of the run that it came from, a label of every fork."""

COPIED = (
    "status", "attempt", "type_version", "outcome", "input", "output", "error_code", "error_message", "error_params",
    "error_retryable", "error_category", "started_at", "finished_at", "created_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Copy:
    """A line of the other run's history, written anew as the `seq`-th of the fork's, about the attempt `twin`."""

    line: Line
    seq: int
    twin: StepRun | None


def fork(draft: Draft, ulid: str, to: str | None, actor: JsonObject | None) -> Snapshot:
    """Tell the run that another one begins where it stood behind a completed step; that other one, not begun yet.

    The run itself goes on as if nothing had been. Raises Conflict as `rewinding.find` and `replay` do, and where
    something that the fork's state would say has been undone.
    """
    target = rewinding.find(draft, rewinding.list_standing(draft), to)
    _check_undone(draft, target.line.seq)
    where = rewinding.describe(target)
    draft.record(EventType.INSTANCE_FORKED, None, {"fork": ulid, "to": where, "actor": actor})
    made = open_instance(_open(draft, ulid, actor), draft.policy, draft.now)
    made.instance.labels = list(dict.fromkeys(made.instance.labels))
    made.past = draft.snapshot.past
    return made


def begin(draft: Draft, source: str, to: str | None, actor: JsonObject | None) -> None:
    """Begin the new run: it has the steps that the other one had completed, with the runs that they had started and the
    artifacts that they had left, and goes on behind the last of them.
    """
    standing = rewinding.list_standing(draft)
    target = rewinding.find(draft, standing, to)
    draft.move_instance(InstanceStatus.RUNNING)
    draft.instance.started_at = draft.now
    copies = [_repeat(draft, each.line) for each in standing if each.line.seq <= target.line.seq]
    visits = _count_visits(copies)
    draft.instance.steps_count = sum(visits.values())
    rewinding.restore(draft, target.position)
    draft.set_walk("visits", {**visits})
    told: JsonObject = {"source": source, "to": rewinding.describe(target), "actor": actor}
    draft.record(EventType.INSTANCE_FORKED, None, {**told, **_list_begun(rewinding.get_past(draft), copies)})
    _carry(draft, copies, source)
    rewinding.go_on(draft, target)


def _check_undone(draft: Draft, until: int) -> None:
    """What stands at a place mustn't have been undone, or be about to be by a run that is cleaning up.

    Who is told of the first such step knows how far to go back.
    """
    past, is_owed = rewinding.get_past(draft), undoing.is_owed(draft)
    for each in past.compensated:
        is_kept = each.status is CompensationStatus.KEPT and not is_owed
        if not is_kept and past.stands(each.seq, until):
            raise Conflict("step_undone", node=each.node, visit=each.visit)


def _open(draft: Draft, ulid: str, actor: JsonObject | None) -> Opening:
    source = draft.instance
    version = Version(source.definition_id, source.version_id, source.definition_hash, draft.plan)
    labels = [label for label in source.labels if not label.startswith(LABEL)]
    starter = (actor or {}).get("user")
    return Opening(
        ulid,
        version,
        Owner(source.owner_scope, source.owner_type, source.owner_id),
        source.input,
        trigger=source.trigger_type,
        trigger_payload=source.trigger_payload,
        starter=source.starter_id if starter is None else str(starter),
        labels=(*labels, f"{LABEL}{source.ulid}"),
        priority=source.priority,
    )


def _repeat(draft: Draft, line: Line) -> _Copy:
    """Write a line of the other run's history anew, with the attempt that it is about."""
    twin = None if line.step is None else _repeat_step(draft, line.step)
    seq = draft.instance.next_seq
    draft.record(line.type, twin, {**line.told} or None)
    return _Copy(line, seq, twin)


def _repeat_step(draft: Draft, step: StepRun) -> StepRun:
    twin = draft.add_step(draft.plan.nodes[step.node_id], visit=step.visit)
    for name in COPIED:
        setattr(twin, name, getattr(step, name))
    draft.steps.pop(twin.id)
    return twin


def _count_visits(copies: Sequence[_Copy]) -> dict[str, int]:
    """Each node's newest visit."""
    visits: dict[str, int] = {}
    for twin in (each.twin for each in copies):
        if twin is not None:
            visits[twin.node_id] = max(twin.visit, visits.get(twin.node_id, 0))
    return visits


def _list_begun(past: Past, copies: Sequence[_Copy]) -> JsonObject:
    """What bodies had started: their steps aren't the fork's, and what other steps had started their outputs tell."""
    until = copies[-1].line.seq
    begun: list[Json] = [
        {"seq": _find(copies, each.seq).seq, "ids": list(each.ulids)}
        for each in past.begun
        if past.stands(each.seq, until)
    ]
    return {STARTED: begun} if begun else {}


def _carry(draft: Draft, copies: Sequence[_Copy], source: str) -> None:
    """Take artifacts along: those from outside, and those of visits that stand, as left by their copies."""
    past, until = rewinding.get_past(draft), copies[-1].line.seq
    for each in past.artifacts:
        if each.seq is None or past.stands(each.seq, until):
            twin = None if each.seq is None else _find(copies, each.seq).twin
            step_run_id = None if twin is None else twin.id
            draft.leave().carried.append(Carried(source, each.key, draft.instance.id, step_run_id))


def _find(copies: Sequence[_Copy], seq: int) -> _Copy:
    """The line that an event led to: that of its own visit, or of the container around it."""
    return next(each for each in copies if each.line.seq >= seq)
