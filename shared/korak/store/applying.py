"""Writing what was decided: the changes of many instances in a handful of set-based statements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from korak.core.changes import Changes
from korak.core.rows import Child, Instance, StepRun, Wait
from korak.model import EventType, StepRole, StepStatus
from korak.store import reaching
from korak.store.database import Runner
from korak.store.statements import get_statement

DOCUMENTS = frozenset({"input", "output", "resume_signal"})
RARE = frozenset(
    {
        EventType.INSTANCE_FAILED,
        EventType.INSTANCE_CANCELLED,
        EventType.INSTANCE_PAUSED,
        EventType.INSTANCE_RESUMED,
        EventType.INSTANCE_RETRIED,
        EventType.INSTANCE_REWOUND,
    }
)
"""What is told of an instance when columns change that no step changes."""


def needs_transaction(batch: Iterable[Changes]) -> bool:
    """Whether the batch takes more than the one statement that records steps."""
    return any(
        changes.is_new
        or _is_rare(changes)
        or changes.waits
        or changes.new_waits
        or changes.deliveries
        or changes.new_deliveries
        or changes.failures
        or changes.scopes
        or changes.new_scopes
        or changes.closed_scopes
        or changes.new_compensations
        or changes.compensations
        or changes.outward is not None
        or changes.leavings is not None
        or changes.freed
        or changes.leaves
        or not all(is_begun_here(step) for step in changes.new_steps)
        or not all(is_closed_here(changes, step) for step in changes.steps)
        for changes in batch
    )


def is_begun_here(step: StepRun) -> bool:
    """Whether a new attempt is the first of its visit and runs where the step before it was recorded."""
    return (
        step.status is StepStatus.RUNNING
        and step.attempt == 1
        and step.role is StepRole.STEP
        and step.resume_signal is None
        and step.flow is None
    )


def is_closed_here(changes: Changes, step: StepRun) -> bool:
    """Whether an attempt does nothing but complete; it keeps every other column."""
    before = changes.before.steps.get(step.id)
    return step.status is StepStatus.COMPLETED and before is not None and before.status is StepStatus.RUNNING


async def apply(runner: Runner, batch: Sequence[Changes]) -> set[int]:
    """Write sealed changes; the ids of the instances that still stood where they were decided from.

    So must the holds that were asked. The others are not touched at all. In a transaction of the caller's where
    `needs_transaction` says so.
    """
    started = [changes.instance for changes in batch if changes.is_new]
    if started:
        await _start(runner, started)
    rows = await runner.fetch("record", **_spread(batch))
    moved = {row["id"] for row in rows} | {instance.id for instance in started}
    if needs_transaction(batch):
        await _apply_rest(runner, [changes for changes in batch if changes.instance.id in moved])
    return moved


async def _start(runner: Runner, started: Sequence[Instance]) -> None:
    await _write(runner, "instances_start", "instance", [each for each in started if not isinstance(each, Child)])
    await _write(runner, "children_start", "child", [each for each in started if isinstance(each, Child)])


def _spread(batch: Sequence[Changes]) -> dict[str, list[Any]]:
    groups = get_statement("record").groups
    closed = [step for changes in batch for step in changes.steps if is_closed_here(changes, step)]
    begun = [step for changes in batch for step in changes.new_steps if is_begun_here(step)]
    return {
        "change": [_get_change(changes) for changes in batch if not changes.is_new],
        "fresh": [changes.instance.id for changes in batch if changes.is_new],
        "step": [groups["step"].read(step) for step in closed],
        "begun": [groups["begun"].read(step) for step in begun],
        "event": [groups["event"].read(event) for changes in batch for event in changes.events],
    }


def _get_change(changes: Changes) -> tuple[Any, ...]:
    instance, before = changes.instance, changes.before.instance
    return (
        instance.id,
        before.lock_version,
        instance.status,
        None if instance.state is before.state else instance.state,
        None if instance.walk is before.walk else instance.walk,
        instance.result if instance.is_ended or instance.result is not before.result else None,
        instance.steps_count,
        instance.transitions_count,
        instance.next_seq,
        instance.closed_reason,
        instance.failure_code,
        instance.ended_at,
        instance.updated_at,
        changes.holds,
    )


def _get_step(changes: Changes, step: StepRun, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row with the documents that didn't change left out: they are kept as they are."""
    before = changes.before.steps.get(step.id)
    if before is None:
        return row
    columns = get_statement("steps_change").groups["step"].columns
    return tuple(
        None if name in DOCUMENTS and value is getattr(before, name) else value
        for name, value in zip(columns, row, strict=True)
    )


async def _apply_rest(runner: Runner, batch: Sequence[Changes]) -> None:
    rare = [changes.instance for changes in batch if _is_rare(changes) and not changes.is_new]
    if rare:
        await runner.fetch("instances_change", instance=_read("instances_change", "instance", rare))
    await _write(
        runner,
        "steps_add",
        "step",
        [step for changes in batch for step in changes.new_steps if not is_begun_here(step)],
    )
    read = get_statement("steps_change").groups["step"].read
    edited = [
        _get_step(changes, step, read(step))
        for changes in batch
        for step in changes.steps
        if not is_closed_here(changes, step)
    ]
    if edited:
        await runner.fetch("steps_change", step=edited)
    await _write_rewinds(runner, [changes for changes in batch if changes.undone is not None])
    await _write_scopes(runner, batch)
    await _write_compensations(runner, batch)
    await _write(runner, "waits_change", "wait", [wait for changes in batch for wait in changes.waits])
    new_waits = [wait for changes in batch for wait in changes.new_waits]
    if new_waits:
        await runner.fetch("waits_open", wait=_read("waits_open", "wait", new_waits), shape=list_shapes(new_waits))
    await _write(runner, "signals_take", "signal", [row for changes in batch for row in changes.deliveries])
    await _write(runner, "signals_send", "signal", [row for changes in batch for row in changes.new_deliveries])
    await _write(runner, "failures_keep", "failure", [row for changes in batch for row in changes.failures])
    await _write_left(runner, batch)
    await reaching.write(runner, batch, apply)


async def _write_left(runner: Runner, batch: Sequence[Changes]) -> None:
    """What steps leave beside their records. Artifacts go in the order of their keys: no two wait for each other."""
    left = [(changes.instance.id, changes.leavings) for changes in batch if changes.leavings is not None]
    artifacts = [artifact for _, leavings in left for artifact in leavings.artifacts]
    artifacts.sort(key=lambda artifact: (artifact.instance_id, artifact.key))
    await _write(runner, "artifacts_keep", "artifact", artifacts)
    carried = [row for _, leavings in left for row in leavings.carried]
    await _write(runner, "artifacts_carry", "carried", carried)
    closed = [(instance_id, execution) for instance_id, leavings in left for execution in leavings.closed_chunks]
    if closed:
        await runner.fetch("chunks_close", closed=closed)


async def _write_rewinds(runner: Runner, batch: Sequence[Changes]) -> None:
    if batch:
        undone = [(step_id, changes.instance.updated_at) for changes in batch for step_id in changes.undone or ()]
        kept = [(changes.instance.id, changes.instance.result) for changes in batch]
        await runner.fetch("rewind", undone=undone, kept=kept)


async def _write_scopes(runner: Runner, batch: Sequence[Changes]) -> None:
    """Adopt first, so that a body that goes on isn't begun anew; close last, so that nothing of it stays open."""
    adopted = [each for changes in batch for each in changes.adopted_scopes]
    if adopted:
        await runner.fetch("scopes_adopt", adopted=adopted)
    await _write(runner, "scopes_add", "scope", [scope for changes in batch for scope in changes.new_scopes])
    await _write(runner, "scopes_change", "scope", [scope for changes in batch for scope in changes.scopes])
    closed = [(step_id, changes.instance.updated_at) for changes in batch for step_id in changes.closed_scopes]
    if closed:
        await runner.fetch("scopes_close", closed=closed)


async def _write_compensations(runner: Runner, batch: Sequence[Changes]) -> None:
    name, rows = "compensations_keep", [row for changes in batch for row in changes.new_compensations]
    await _write(runner, name, "compensation", rows)
    retried = [changes.instance.id for changes in batch if changes.retries_undoing]
    if retried:
        await runner.fetch("compensations_retry", ids=retried)
    name, rows = "compensations_change", [row for changes in batch for row in changes.compensations]
    await _write(runner, name, "compensation", rows)


async def _write(runner: Runner, name: str, group: str, rows: Sequence[Any]) -> None:
    if rows:
        await runner.fetch(name, **{group: _read(name, group, rows)})


def _read(name: str, group: str, rows: Sequence[Any]) -> list[tuple[Any, ...]]:
    read = get_statement(name).groups[group].read
    return [read(row) for row in rows]


def list_shapes(waits: Iterable[Wait]) -> list[tuple[str, str | None, list[str]]]:
    """The sets of paths by which events find these waits, by owner and key."""
    shapes = {(wait.owner_scope, wait.event_key, _get_shape(wait)) for wait in waits if wait.match_digest}
    return [(owner, key, list(paths)) for owner, key, paths in sorted(shapes, key=repr)]


def _get_shape(wait: Wait) -> tuple[str, ...]:
    return tuple(sorted(wait.match or {}))


def _is_rare(changes: Changes) -> bool:
    return any(event.type in RARE for event in changes.events)
