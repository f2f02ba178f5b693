"""Ids for new rows, taken from the sequences in blocks before the transaction, so that one statement writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from ulid import ULID

from korak.core.changes import Carried, Changes, spread
from korak.core.rows import Artifact, Compensation, Delivery, Event, Failure, Scope, StepRun, Wait
from korak.store.database import Runner

Row = TypeVar("Row", StepRun, Wait, Scope)

BLOCK = 2_000
TABLES = ("workflow_instances", "workflow_step_runs", "workflow_waits", "workflow_scopes")


class Ids:
    """Blocks of ids, one table each. What a crash leaves unused is a gap, which means nothing.

    Each process has blocks of its own, so an id tells nothing of a row's age: it only parts those of one moment.
    """

    def __init__(self, block: int = BLOCK) -> None:
        self._block = block
        self._free: dict[str, list[int]] = {table: [] for table in TABLES}

    async def reserve(self, runner: Runner, batch: Iterable[Changes]) -> None:
        """Have enough for every new row of the batch."""
        wanted = dict.fromkeys(TABLES, 0)
        for changes in spread(batch):
            wanted["workflow_instances"] += changes.is_new
            wanted["workflow_step_runs"] += len(changes.new_steps)
            wanted["workflow_waits"] += len(changes.new_waits)
            wanted["workflow_scopes"] += len(changes.new_scopes)
        for table, count in wanted.items():
            if len(self._free[table]) < count:
                rows = await runner.fetch("ids_take", table=table, count=max(count, self._block))
                self._free[table][:0] = [row["id"] for row in reversed(rows)]

    def take(self, table: str) -> int:
        """The next id of a table, higher than those before; `reserve` has seen to it that there is one."""
        return self._free[table].pop()


def seal(changes: Changes, ids: Ids) -> None:
    """Give every new row its id and every new attempt its ULID, wherever the changes name them. Idempotent."""
    for each in spread((changes,)):
        _seal(each, ids)


def _seal(changes: Changes, ids: Ids) -> None:
    if changes.is_new and changes.instance.id == 0:
        _seal_instance(changes, ids.take("workflow_instances"))
    given: dict[int, int] = {}
    fresh = [step for step in changes.new_steps if step.id < 0]
    for step, ulid in zip(fresh, sorted(str(ULID()) for _ in fresh), strict=True):
        own, step.id = step.id, ids.take("workflow_step_runs")
        given[own] = step.id
        step.ulid = step.ulid or ulid
        step.execution_id = step.execution_id or step.ulid
    _seal_waits(changes, ids)
    if given:
        _rename(changes, given)
    if changes.new_scopes:
        _seal_scopes(changes, ids)
    if changes.new_steps or changes.new_waits or changes.new_scopes:
        _index(changes)


def _seal_waits(changes: Changes, ids: Ids) -> None:
    given: dict[int | None, int] = {}
    for wait in changes.new_waits:
        if wait.id < 0:
            own, wait.id = wait.id, ids.take("workflow_waits")
            given[own] = wait.id
    for row in changes.new_deliveries if given else ():
        row.wait_id = given.get(row.wait_id, row.wait_id)


def _rename(changes: Changes, given: dict[int, int]) -> None:
    rows: tuple[Wait | Event | Failure | Delivery | Scope | Compensation | Carried, ...]
    rows = (*changes.new_waits, *changes.events, *changes.failures, *changes.new_deliveries)
    rows = (*rows, *changes.new_scopes, *changes.scopes, *changes.after.scopes.values(), *changes.new_compensations)
    rows = (*rows, *(changes.leavings.carried if changes.leavings else ()))
    for row in rows:
        if row.step_run_id is not None and row.step_run_id < 0:
            row.step_run_id = given[row.step_run_id]
    for step in changes.new_steps:
        if step.parent_step_run_id is not None:
            step.parent_step_run_id = given.get(step.parent_step_run_id, step.parent_step_run_id)
    changes.closed_scopes = [given.get(step_id, step_id) for step_id in changes.closed_scopes]
    if changes.undone is not None:
        changes.undone = [given.get(step_id, step_id) for step_id in changes.undone]
    changes.adopted_scopes = [
        (before, given.get(after, after), decided) for before, after, decided in changes.adopted_scopes
    ]


def _seal_scopes(changes: Changes, ids: Ids) -> None:
    given: dict[int | None, int] = {}
    for scope in changes.new_scopes:
        if scope.id < 0:
            own, scope.id = scope.id, ids.take("workflow_scopes")
            given[own] = scope.id
    for scope in changes.new_scopes:
        scope.parent_scope_id = given.get(scope.parent_scope_id, scope.parent_scope_id)
    for step in (*changes.new_steps, *changes.steps):
        step.scope_id = given.get(step.scope_id, step.scope_id)
    for row in changes.new_compensations:
        row.scope_id = given.get(row.scope_id, row.scope_id)
    after = changes.after
    after.ended = {(given.get(place, place), node): what for (place, node), what in after.ended.items()}


def _seal_instance(changes: Changes, instance_id: int) -> None:
    changes.instance.id = instance_id
    rows: tuple[StepRun | Wait | Event | Failure | Scope | Delivery | Artifact | Carried | Compensation, ...]
    rows = (*changes.new_steps, *changes.new_waits, *changes.events, *changes.failures, *changes.new_scopes)
    rows = (*rows, *changes.new_compensations, *changes.new_deliveries)
    if changes.leavings is not None:
        rows = (*rows, *changes.leavings.artifacts, *changes.leavings.carried)
    for row in rows:
        row.instance_id = instance_id


def _index(changes: Changes) -> None:
    after = changes.after
    after.steps = _by_id(after.steps.values())
    after.waits = _by_id(after.waits.values())
    after.scopes = _by_id(after.scopes.values())


def _by_id(rows: Iterable[Row]) -> dict[int, Row]:
    return {row.id: row for row in rows}
