"""What must hold after every step (DESIGN section 12), as far as it is the core's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from korak.core import transitions
from korak.core.changes import Changes
from korak.core.counters import Counters, Pages
from korak.core.facts import Finished, HandedBack, Lost
from korak.core.rooms import Demand, FlowKey, list_demands
from korak.core.rows import Scope, StepRun, Wait
from korak.core.snapshot import Snapshot
from korak.graphs.limiting import FlowRule
from korak.model import (
    FlowKind,
    InstanceStatus,
    Json,
    JsonObject,
    Probe,
    ScopeStatus,
    StepRole,
    StepStatus,
    WaitKind,
    WaitStatus,
)
from tests.simulation import history
from tests.simulation.containing import check_containers, check_kin, check_pause
from tests.simulation.undoing import check_undoing, check_view
from tests.support.memory import Family, Memory
from tests.support.rooms import Place

Row = TypeVar("Row", StepRun, Wait, Scope)

STAMPS = {"ready_at", "sent_at", "parked_for"}
"""What others than the holder of the lock write."""

NAMES = {f"step.{name}" for name in transitions.STEP.values()} | {
    f"instance.{name}" for name in transitions.INSTANCE.values()
}


def check_changes(changes: Changes) -> None:
    """The changes of one decision are whole: every new row has its id, and what is claimed runs."""
    assert set(changes.transitions) <= NAMES
    for step in (*changes.new_steps, *changes.steps):
        assert step.id > 0
    assert all(grant.step.status is StepStatus.RUNNING for grant in changes.claimed)
    assert all(step.ready_at is not None for step in changes.ready)
    assert set(changes.after.steps) == {step.id for step in changes.after.steps.values()}


def check_after(memory: Memory, changes: Changes) -> None:
    """What an engine keeps is what stands there; but for stamps, which others write without the lock."""
    after, stands = changes.after, memory.load_rows(changes.instance.id)
    assert vars(after.instance) == vars(stands.instance)
    # What the bodies have ended that a retry has just put back is loaded with them, by the claim that starts them.
    ended = {place: what for place, what in stands.ended.items() if place[0] is None or place[0] in after.scopes}
    assert after.instance.is_ended or after.ended == ended, (after.ended, ended)
    _compare(after.steps, stands.steps)
    _compare(after.waits, stands.waits)
    _compare(_find_running(after), _find_running(stands))
    check_view(changes, stands)


def _compare(after: Mapping[int, Row], stands: Mapping[int, Row]) -> None:
    assert after.keys() == stands.keys(), (after, stands)
    for key, row in after.items():
        one, other = vars(row), vars(stands[key])
        assert one == other or _read(one) == _read(other), (row, stands[key])


def _read(row: JsonObject) -> JsonObject:
    others = {*STAMPS, "input"} if row.get("counters") else STAMPS
    return {name: value for name, value in row.items() if name not in others}


def _find_running(snapshot: Snapshot) -> dict[int, Scope]:
    return {key: row for key, row in snapshot.scopes.items() if row.status is ScopeStatus.RUNNING}


def check_family(memory: Memory, before: Family | None, changes: Changes, *, is_whole: bool) -> None:
    """Invariants 1 to 4 and 6 for one instance that has just moved: of its history what is new, or all of it."""
    family = memory.families[changes.instance.id]
    _check_tokens(family, changes)
    check_kin(memory, family, changes)
    check_pause(changes)
    _check_waits(family)
    check_undoing(memory, family)
    if before is None or is_whole:
        history.check_whole(memory, family)
    else:
        history.check_moved(memory, before, changes)


def check_holds(memory: Memory, changes: Changes) -> None:
    """Nothing begins that is held, however old what its engine knows of holds is."""
    key = memory.plans[changes.instance.version_id].key
    begun = [grant.step for grant in changes.claimed if grant.step.role is StepRole.STEP]
    assert not any(memory.holds.cover(step, key) for step in begun), begun


def check_room(memory: Memory) -> None:
    """Of a key never more runs at once than its limit says; only what runs, and a run that was let in, holds room."""
    taken: Counter[FlowKey] = Counter()
    limits: dict[FlowKey, int] = {}
    places: set[Place] = set()
    for family in memory.families.values():
        for place, demands in _list_holding(memory, family):
            for demand in demands:
                taken[demand.key] += demand.weight
                limits[demand.key] = demand.limit
                places.add(place)
    assert all(count <= limits[key] for key, count in taken.items()), (taken, limits)
    assert set(memory.rooms.slots) == places, (set(memory.rooms.slots), places)


def _list_holding(memory: Memory, family: Family) -> Iterator[tuple[Place, list[Demand]]]:
    plan, instance = memory.plans[family.instance.version_id], family.instance
    if not plan.has_flow or instance.is_ended:
        return
    kept: Any = (instance.walk or {}).get("flow") or {}
    of_run = dict(zip(kept.get("keys", ()), plan.settings.flow, strict=False)) if kept.get("is_in") else {}
    for step in family.live:
        if step.status is StepStatus.RUNNING and step.role is StepRole.STEP:
            rules = zip(plan.nodes[step.node_id].flow, step.flow or (), strict=False)
            own = [each for rule, name in rules for each in _demand(rule, name, step) if name not in of_run]
            yield (instance.id, step.id), list({demand.key: demand for demand in reversed(own)}.values())
    any_step = next(iter(family.steps.values()))
    yield (instance.id, None), [each for name, rule in of_run.items() for each in _demand(rule, name, any_step)]


def _demand(rule: FlowRule, name: str, step: StepRun) -> list[Demand]:
    demands = list_demands(rule, name, step, is_of_run=False, is_inline=False)
    return [demand for demand in demands if demand.key.kind is FlowKind.CONCURRENCY]


def _check_tokens(family: Family, changes: Changes) -> None:
    """2 and 3: an open scope has one live step, which something will move; an ended one has none and no wait."""
    instance = family.instance
    live = [step for step in family.live if step.role is StepRole.STEP]
    if instance.is_ended:
        assert not live, live
        assert all(wait.kind is WaitKind.RETRY for wait in family.open_waits)
    check_containers(family, live, changes)
    if instance.is_ended:
        return
    for step in live:
        assert _is_driven(family, step, changes.before.policy.pages), step
    retried = {wait.step_run_id for wait in family.open_waits if wait.kind is WaitKind.RETRY}
    is_running = any(
        step.status is StepStatus.RUNNING or (step.status is StepStatus.QUEUED and step.id not in retried)
        for step in live
    )
    assert instance.status is (InstanceStatus.RUNNING if is_running else InstanceStatus.WAITING)
    tokens = [step.claim_token for step in family.live if step.status is StepStatus.RUNNING]
    assert len(set(tokens)) == len(tokens)


def _is_driven(family: Family, step: StepRun, pages: Pages) -> bool:
    waits = [wait for wait in family.open_waits if wait.step_run_id == step.id]
    match step.status:
        case StepStatus.RUNNING:
            return step.lease_until is not None and step.engine_id is not None
        case StepStatus.WAITING if step.counters is not None:
            counters = Counters.from_json(step.counters)
            is_held = family.instance.paused_at is not None and counters.has_debt(pages)
            return counters.running > 0 or step.ready_at is not None or is_held
        case StepStatus.WAITING if not waits:
            is_owed = step.ready_at is not None or family.instance.paused_at is not None
            return step.probe is Probe.RESUME and is_owed
        case StepStatus.WAITING:
            return all(wait.kind is not WaitKind.RETRY for wait in waits)
        case _:
            is_parked = step.parked_for is not None
            if step.parked_for == "pause":
                return family.instance.paused_at is not None
            return step.ready_at is not None or is_parked or any(wait.kind is WaitKind.RETRY for wait in waits)


def _check_waits(family: Family) -> None:
    """A pause stops every clock; an open wait belongs to a live attempt."""
    live = {step.id: step for step in family.live}
    for wait in family.open_waits:
        assert wait.step_run_id in live, wait
        is_stopped = family.instance.paused_at is not None and live[wait.step_run_id].role is StepRole.STEP
        if not wait.is_date:
            assert wait.status is (WaitStatus.SUSPENDED if is_stopped else WaitStatus.PENDING), wait


def check_holder(snapshot: Snapshot, fact: Finished | Lost | HandedBack) -> None:
    """5: only who holds the token is heard."""
    assert snapshot.steps[fact.step].claim_token == fact.token


def check_nothing_missed(memory: Memory, family: Family) -> None:
    """4: nobody waits for what lies there, or was kept, and fits. A step that is on its way to be resumed, be it parked
    for a limit, is given that when it waits again.
    """
    there = [
        (row.name, row.payload, _get_execution(family, row.step_run_id))
        for row in family.signals.values()
        if row.taken_at is None
    ]
    seen = {row.source_id for row in family.signals.values()}
    kept: list[tuple[str | None, Json, str | None]] = [
        (emit.name, emit.payload, None) for emit in memory.emits if emit.source_id not in seen
    ]
    waiting = [wait for wait in family.open_waits if family.steps[wait.step_run_id].status is StepStatus.WAITING]
    for wait in waiting:
        lies = there + (kept if wait.looks_back else [])
        mine = (None, _get_execution(family, wait.step_run_id))
        fitting = [
            payload
            for name, payload, visit in lies
            if name == wait.event_key and visit in mine and _fits(wait.match or {}, payload)
        ]
        assert not fitting or wait.payload is not None, (wait, fitting)


def _get_execution(family: Family, step_run_id: int | None) -> str | None:
    """The visit that something is for; None where it is anybody's."""
    return None if step_run_id is None else family.steps[step_run_id].execution_id


def _fits(match: JsonObject, payload: Json) -> bool:
    return isinstance(payload, dict) and match.items() <= payload.items() if match else True
