"""Reading snapshots: lock the instances, then look at what stands below them, in statements younger than the locks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from korak.core.counters import DONE, Counters, Pages
from korak.core.failing import get_told
from korak.core.rows import Compensation, Delivery, Instance, Scope, StepRun, Wait
from korak.core.snapshot import Kept, Policy, Snapshot
from korak.graphs.hooks import ON_DEADLINE
from korak.model import ClosedReason, JsonObject, ScopeStatus, StepRole, StepStatus
from korak.store import pasts
from korak.store.database import Runner
from korak.store.plans import Plans
from korak.store.rows import read


async def lock(runner: Runner, instance_ids: Iterable[int]) -> set[int]:
    """Lock the instances that nobody else holds, in id order; which ones that were."""
    rows = await runner.fetch("instances_lock", ids=sorted(set(instance_ids)))
    return {row["id"] for row in rows}


class Loader:
    """Loads snapshots. `plans` keeps the compiled graphs of versions, `policy` is the engine's own defaults."""

    def __init__(self, plans: Plans, policy: Policy) -> None:
        self._plans = plans
        self._policy = policy

    async def load(
        self,
        runner: Runner,
        instance_ids: Iterable[int],
        now: datetime,
        *,
        closed: Sequence[int] = (),
        backward: Sequence[int] = (),
    ) -> dict[int, Snapshot]:
        """The snapshots of locked instances, by id. `closed` are steps that a result came for, be they ended or not.

        `backward` are instances whose past is wanted too.
        """
        ids = sorted(set(instance_ids))
        if not ids:
            return {}
        rows = await runner.fetch("instances_load", ids=ids)
        instances = {row["id"]: read(Instance, row) for row in rows}
        plans = await self._plans.get(runner, {instance.version_id for instance in instances.values()})
        snapshots = {
            instance.id: Snapshot(instance, plans[instance.version_id], self._policy) for instance in instances.values()
        }
        await _load_steps(runner, ids, closed, snapshots)
        await _load_scopes(runner, ids, snapshots)
        await _load_flows(runner, [snapshot for snapshot in snapshots.values() if snapshot.plan.has_flow])
        for row in await runner.fetch("waits_load", ids=ids):
            wait = read(Wait, row)
            snapshots[wait.instance_id].waits[wait.id] = wait
        for row in await runner.fetch("signals_load", ids=ids):
            delivery = read(Delivery, row)
            snapshots[delivery.instance_id].deliveries.append(delivery)
        await _load_compensations(runner, snapshots)
        await _load_ended(runner, snapshots)
        await _load_kept(runner, snapshots, now)
        await pasts.load(runner, [snapshots[each] for each in backward if each in snapshots])
        return snapshots


async def _load_steps(
    runner: Runner, ids: Sequence[int], closed: Sequence[int], snapshots: Mapping[int, Snapshot]
) -> None:
    inside = _list_inside(snapshots.values())
    others = [instance_id for instance_id in ids if instance_id not in inside]
    rows = await runner.fetch("steps_load", ids=others, closed=list(closed)) if others else []
    if inside:
        nodes = _list_outermost(snapshots, inside)
        rows = [*rows, *await runner.fetch("steps_inside", node=nodes, ids=list(inside), closed=list(closed))]
    for row in rows:
        step = read(StepRun, row)
        snapshot = snapshots[step.instance_id]
        if step.status is not None and step.status.is_live:
            snapshot.steps[step.id] = step
        elif step.status is StepStatus.CANCELLED:
            snapshot.cancelled[step.id] = step
        if has_ended(snapshot.instance, step) and _is_newer(step, snapshot.failed):
            snapshot.failed = step


def has_ended(instance: Instance, step: StepRun) -> bool:
    """Whether a failed run may have ended at this attempt: it has failed, or it stood there as the time was over."""
    is_out_of_time = instance.closed_reason is ClosedReason.DEADLINE and step.node_id == instance.failed_node_id
    is_it = step.status is StepStatus.FAILED or (step.status is StepStatus.CANCELLED and is_out_of_time)
    return is_it and step.role is StepRole.STEP and step.scope_id is None and step.outcome is None


async def _load_flows(runner: Runner, snapshots: Sequence[Snapshot]) -> None:
    """Only instances whose graph has limits have keys."""
    steps = {
        step.id: step
        for snapshot in snapshots
        for step in (*snapshot.steps.values(), *snapshot.halted.values(), snapshot.failed)
        if step is not None
    }
    if steps:
        for row in await runner.fetch("flows_load", ids=sorted(steps)):
            steps[row["id"]].flow = row["flow"]


async def _load_scopes(runner: Runner, ids: Sequence[int], snapshots: Mapping[int, Snapshot]) -> None:
    """Only instances whose graph has containers have any."""
    if not any(snapshot.plan.has_containers for snapshot in snapshots.values()):
        return
    containers = [
        _get_container(step, snapshot.policy.pages)
        for snapshot in snapshots.values()
        for step in snapshot.steps.values()
        if step.counters
    ]
    halted: dict[int, int] = {}
    for row in await runner.fetch("scopes_load", ids=ids, container=containers):
        scope = read(Scope, row)
        snapshots[scope.instance_id].scopes[scope.id] = scope
        if scope.halted_step_run_id is not None and scope.status is ScopeStatus.PENDING:
            halted[scope.halted_step_run_id] = scope.id
    for row in await runner.fetch("steps_halted", ids=sorted(halted)) if halted else ():
        step = read(StepRun, row)
        snapshots[step.instance_id].halted[halted[step.id]] = step


async def _load_compensations(runner: Runner, snapshots: Mapping[int, Snapshot]) -> None:
    """Only instances whose graph has compensations have any."""
    ids = [instance_id for instance_id, snapshot in snapshots.items() if snapshot.plan.has_compensations]
    for row in await runner.fetch("compensations_load", ids=ids) if ids else ():
        compensation = read(Compensation, row)
        snapshots[compensation.instance_id].compensations[compensation.seq] = compensation


def _get_container(step: StepRun, pages: Pages) -> tuple[int, int, bool, int]:
    counters = Counters.from_json(step.counters or {})
    is_whole = counters.verdict == DONE or counters.total <= pages.small or step.node_type != "for_each"
    return step.id, counters.next_index, is_whole, counters.get_room(pages, is_asked_for=step.ready_at is not None)


def _list_inside(snapshots: Iterable[Snapshot]) -> set[int]:
    """The open instances whose graph has containers: what has ended in these isn't looked at."""
    return {
        snapshot.instance.id
        for snapshot in snapshots
        if snapshot.plan.has_containers and not snapshot.instance.is_ended
    }


def _list_outermost(snapshots: Mapping[int, Snapshot], ids: Iterable[int]) -> list[tuple[int, str]]:
    return [
        (instance_id, name)
        for instance_id in ids
        for name in (
            *(node.id for node in snapshots[instance_id].plan.nodes.values() if node.container is None),
            *([ON_DEADLINE] if snapshots[instance_id].plan.settings.on_deadline else []),
        )
    ]


def _is_newer(step: StepRun, other: StepRun | None) -> bool:
    """By visit and attempt: ids come from blocks of several processes and tell nothing of time."""
    return other is None or (other.visit, other.attempt) < (step.visit, step.attempt)


async def _load_ended(runner: Runner, snapshots: Mapping[int, Snapshot]) -> None:
    scopes = [
        scope.id
        for snapshot in snapshots.values()
        for scope in snapshot.scopes.values()
        if scope.status is ScopeStatus.RUNNING or scope.id in snapshot.halted
    ]
    inside = {instance_id for instance_id, snapshot in snapshots.items() if snapshot.plan.has_containers}
    others = [instance_id for instance_id in snapshots if instance_id not in inside]
    rows = await runner.fetch("ended_load", ids=others) if others else []
    if inside:
        nodes = _list_outermost(snapshots, inside)
        rows = [*rows, *await runner.fetch("ended_inside", node=nodes, scopes=scopes)]
    for row in rows:
        snapshots[row["instance_id"]].ended[(row["scope_id"], row["node_id"])] = _get_ended(row)


def _get_ended(row: Mapping[str, Any]) -> JsonObject:
    if row["status"] == StepStatus.COMPLETED:
        return {"output": row["output"] or {}, "outcome": row["outcome"], "error": None}
    error = get_told(row["error_code"], row["error_message"], row["error_params"], row["attempt"])
    return {"output": None, "outcome": row["outcome"], "error": error}


async def _load_kept(runner: Runner, snapshots: Mapping[int, Snapshot], now: datetime) -> None:
    looking = [
        (wait.instance_id, wait.step_run_id, wait.owner_scope, wait.event_key, get_holds(wait.match or {}))
        for snapshot in snapshots.values()
        for wait in snapshot.waits.values()
        if wait.looks_back and (step := snapshot.steps.get(wait.step_run_id)) is not None and step.probe is not None
    ]
    if not looking:
        return
    owners = {step_id: instance_id for instance_id, step_id, *_ in looking}
    for row in await runner.fetch("kept_load", wait=looking, now=now):
        snapshot = snapshots[owners[row["step_run_id"]]]
        kept = Kept(row["source_id"], row["name"], row["payload"], row["created_at"])
        snapshot.kept.setdefault(row["step_run_id"], []).append(kept)


def get_holds(match: JsonObject) -> JsonObject:
    """What a payload that fits must contain, as far as containment can say it: the paths of names alone."""
    holds: JsonObject = {}
    for path, value in match.items():
        names = path.split(".")
        if all(name.replace("_", "a").replace("-", "a").isalnum() for name in names):
            _put(holds, names, value)
    return holds


def _put(holds: JsonObject, names: Sequence[str], value: Any) -> None:
    for name in names[:-1]:
        inner = holds.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        holds = inner
    holds[names[-1]] = value
