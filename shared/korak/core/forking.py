"""Forks: a run of its own that begins where another one stood."""

from __future__ import annotations

from collections.abc import Iterable

from korak.core import rewinding
from korak.core.draft import Draft
from korak.core.opening import Opening, Owner, Version, open_instance
from korak.core.past import Line
from korak.core.rows import StepRun
from korak.core.snapshot import Snapshot
from korak.model import EventType, InstanceStatus, JsonObject

LABEL = "forked_from:"
"""With the ULID of the run that it came from, a label of every fork."""

COPIED = (
    "status", "attempt", "type_version", "outcome", "input", "output", "error_code", "error_message", "error_params",
    "error_retryable", "error_category", "started_at", "finished_at", "created_at",
)  # fmt: skip


def fork(draft: Draft, ulid: str, to: str | None, actor: JsonObject | None) -> Snapshot:
    """Tell the run that another one begins where it stood behind a completed step; that other one, not begun yet.

    The run itself goes on as if nothing had been. Raises Conflict as `rewinding.find` and `replay` do.
    """
    target = rewinding.find(draft, rewinding.list_standing(draft), to)
    where = rewinding.describe(target)
    draft.record(EventType.INSTANCE_FORKED, None, {"fork": ulid, "to": where, "actor": actor})
    made = open_instance(_open(draft, ulid, actor), draft.policy, draft.now)
    made.instance.labels = list(dict.fromkeys(made.instance.labels))
    made.past = draft.snapshot.past
    return made


def begin(draft: Draft, source: str, to: str | None, actor: JsonObject | None) -> None:
    """Begin the new run: it has the steps that the other one had completed, and goes on behind the last of them."""
    standing = rewinding.list_standing(draft)
    target = rewinding.find(draft, standing, to)
    draft.move_instance(InstanceStatus.RUNNING)
    draft.instance.started_at = draft.now
    visits = _repeat_all(draft, [each.line for each in standing if each.line.seq <= target.line.seq])
    draft.instance.steps_count = sum(visits.values())
    rewinding.restore(draft, target.position)
    draft.set_walk("visits", {**visits})
    told: JsonObject = {"source": source, "to": rewinding.describe(target), "actor": actor}
    draft.record(EventType.INSTANCE_FORKED, None, told)
    rewinding.go_on(draft, target)


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


def _repeat_all(draft: Draft, lines: Iterable[Line]) -> dict[str, int]:
    """Write lines of the other run's history anew, with the attempts that they are about; each node's newest visit."""
    visits: dict[str, int] = {}
    for line in lines:
        twin = None if line.step is None else _repeat(draft, line.step)
        draft.record(line.type, twin, {**line.told} or None)
        if twin is not None:
            visits[twin.node_id] = max(twin.visit, visits.get(twin.node_id, 0))
    return visits


def _repeat(draft: Draft, step: StepRun) -> StepRun:
    twin = draft.add_step(draft.plan.nodes[step.node_id], visit=step.visit)
    for name in COPIED:
        setattr(twin, name, getattr(step, name))
    draft.steps.pop(twin.id)
    return twin
